//! `chain params`: shows and changes the governed parameters.

use crate::{
    args::HeightArg,
    commands::{
        account::Inclusion,
        transaction::{self, Signer},
    },
    complete,
    context::{Context, Deadline},
    error::{CliError, Exit, nearest},
    output::{Document, Row, columns, fields, or_dash},
};
use clap::Subcommand;
use clap_complete::ArgValueCandidates;
use cowboy_devnet::{
    client::BlockAt,
    topology::GOVERNANCE,
    types::{GovernedParameter, HashText, PendingSetting, Setting},
};
use cowboy_engine::{
    chain::transaction::{Payload, SetParameter, SetPhase, UpdateTimerConfig},
    presence::{Phase, PhaseError},
    primitives::Height,
    timer::{Governed, Key, ParameterError, Proposal, ProposedValue, proposals::propose},
};
use serde::Serialize;
use std::{collections::BTreeMap, ops::RangeInclusive};

#[derive(Debug, Subcommand)]
pub enum Params {
    /// Every governed parameter, or one
    Get {
        /// Its name in a topology, its key on the chain, or the end of either, such as
        /// lane_timer_cycles
        #[arg(add = ArgValueCandidates::new(complete::parameters))]
        key: Option<String>,
    },
    /// Change governed parameters, from the next block or a given height on
    ///
    /// All of them change together, or none does. Values are numbers, except for policy, which is
    /// eip1559, fifo or gba-auction, and migration.phase, which is shadow, hot-path or sunset and
    /// can only be set alone. Changes that the chain would refuse are refused before they cost a
    /// fee.
    Set {
        /// Names or keys, or their endings, with values: lane_timer_cycles=400000 policy=fifo; or
        /// one name and one value
        #[arg(required = true, value_name = "KEY=VALUE")]
        #[arg(add = ArgValueCandidates::new(complete::settings))]
        settings: Vec<String>,
        /// The first block with these values: 120 or +10 (from now) [default: the next one]
        #[arg(long, value_name = "HEIGHT")]
        at: Option<HeightArg>,
        /// The account that governs: a name, or an address whose key is in the devnet's folder
        #[arg(long, value_name = "ACCOUNT", default_value = GOVERNANCE)]
        #[arg(add = ArgValueCandidates::new(complete::accounts))]
        from: String,
        /// Check the change and show its effect; send nothing
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        inclusion: Inclusion,
    },
}

/// Parameters that were set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Set {
    changes: Vec<ChangedParameter>,
    /// Absent in a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    transaction: Option<HashText>,
    /// The height of the block with the transaction.
    height: Option<u64>,
    /// The first block with the new values.
    from: Option<u64>,
}

/// A parameter that was set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct ChangedParameter {
    key: String,
    /// Its previous value.
    before: Setting,
    value: Setting,
}

impl Params {
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        let (devnet, client) = cx.devnet_and_client()?;
        match self {
            Self::Get { key: None } => cx.ui.list(&client.governance().await?),
            Self::Get { key: Some(key) } => {
                let all = client.governance().await?;
                cx.ui.document(&find(all, &key)?)
            }
            Self::Set { settings, at, from, dry_run, inclusion } => {
                let settings = split(&settings)?;
                let all = client.governance().await?;
                let at = match at {
                    Some(at) => Some(first_block(at.resolve(&client).await?)?),
                    None => None,
                };
                // Refuse here what the chain would refuse, before it costs a fee.
                let (payload, changes) = change(&all, &settings, at)?;
                check(&all, client.head().await?.height, &payload)?;
                if dry_run {
                    let (transaction, height) = (None, None);
                    return cx.ui.document(&Set { changes, transaction, height, from: at });
                }
                let signer = Signer::find(&devnet, &from)?;
                let deadline = Deadline::after(inclusion.timeout);
                let executed =
                    transaction::execute(cx.ui, &client, &signer, payload, deadline).await?;
                let transaction = executed.transaction;
                let (hash, height) = (Some(transaction.hash), transaction.height);
                let from = at.or(height.map(|height| height + 1));
                cx.ui.document(&Set { changes, transaction: hash, height, from })
            }
        }
    }
}

fn split(typed: &[String]) -> Result<Vec<(&str, &str)>, CliError> {
    if let [key, value] = typed
        && !key.contains('=')
    {
        return Ok(vec![(key, value)]);
    }
    let pair = |one: &'_ String| {
        let what = format!("`{one}` is not KEY=VALUE");
        let hint = "for example: cowboyctl chain params set lane_timer_cycles=400000";
        CliError::new(Exit::Usage, what).hint(hint)
    };
    typed.iter().map(|one| one.split_once('=').ok_or_else(|| pair(one))).collect()
}

fn first_block(at: BlockAt) -> Result<u64, CliError> {
    match at {
        BlockAt::Height(height) => Ok(height),
        BlockAt::Latest => {
            Err(CliError::new(Exit::Usage, "latest is not a future height")
                .hint("say which: --at +10"))
        }
    }
}

/// The payload that sets the typed values, and the changes it makes.
fn change(
    all: &[GovernedParameter],
    settings: &[(&str, &str)],
    at: Option<u64>,
) -> Result<(Payload, Vec<ChangedParameter>), CliError> {
    let mut changes: Vec<ChangedParameter> = Vec::new();
    let mut proposed = Vec::new();
    let mut phase = None;
    for (key, typed) in settings {
        let GovernedParameter { key, value: before, choices, min, max, .. } =
            find(all.to_vec(), key)?;
        if changes.iter().any(|change| change.key == key) {
            let what = format!("ParameterRepeated: {key} is given two values");
            return Err(CliError::new(Exit::Rejected, what));
        }
        let value = if key == Phase::KEY {
            let known: Phase = typed
                .parse()
                .map_err(|error: PhaseError| CliError::new(Exit::Usage, error.to_string()))?;
            phase = Some(known);
            Setting::Word(known.to_string())
        } else if let (Some(min), Some(max)) = (min, max) {
            let number = number(&key, typed, min..=max)?;
            proposed.push(ProposedValue { key: key.clone(), value: number });
            Setting::Number(number)
        } else if choices.is_empty() {
            let what = format!("ParameterFixed: {key} is {before} and was fixed at genesis");
            let hint = "another value needs another chain: a topology of its own";
            return Err(CliError::new(Exit::Rejected, what).hint(hint));
        } else {
            let place = choices.iter().position(|choice| choice == typed).ok_or_else(|| {
                let known = choices.join(", ");
                let what = format!("`{typed}` is not a value of {key}: expected one of {known}");
                CliError::new(Exit::Usage, what)
            })?;
            proposed.push(ProposedValue { key: key.clone(), value: place as u64 });
            Setting::Word((*typed).to_owned())
        };
        changes.push(ChangedParameter { key, before, value });
    }
    let payload = match (phase, proposed.as_slice(), at) {
        (Some(phase), [], None) => Payload::SetPhase(SetPhase { phase }),
        (Some(_), ..) => {
            let what = format!("{} can only change alone, from the next block on", Phase::KEY);
            return Err(CliError::new(Exit::Usage, what).hint("set it alone, without --at"));
        }
        (None, [ProposedValue { key, value }], None) => {
            Payload::SetParameter(SetParameter { key: key.clone(), value: *value })
        }
        (None, ..) => Payload::SysUpdateTimerConfig(UpdateTimerConfig {
            settings: proposed,
            height: at.map(Height::new),
        }),
    };
    Ok((payload, changes))
}

/// Checks, as the chain would do now, whether the proposed values fit together, and fit the pending
/// ones. Does not check a proposal with keys that this program does not know.
fn check(all: &[GovernedParameter], head: u64, payload: &Payload) -> Result<(), CliError> {
    let (settings, at) = match payload {
        Payload::SetParameter(SetParameter { key, value }) => {
            (vec![ProposedValue { key: key.clone(), value: *value }], None)
        }
        Payload::SysUpdateTimerConfig(UpdateTimerConfig { settings, height }) => {
            (settings.clone(), *height)
        }
        _ => return Ok(()),
    };
    if settings.iter().any(|setting| Key::named(&setting.key).is_err()) {
        return Ok(());
    }
    let mut now = Governed::default();
    let mut pending: BTreeMap<u64, Vec<ProposedValue>> = BTreeMap::new();
    for GovernedParameter { key, value, choices, pending: later, .. } in all {
        let numbered = |setting: &Setting| match setting {
            Setting::Number(number) => Some(*number),
            Setting::Word(word) => {
                choices.iter().position(|choice| choice == word).map(|place| place as u64)
            }
        };
        let Some(value) = numbered(value).filter(|_| Key::named(key).is_ok()) else { continue };
        // This program has other bounds for the value, so only the chain can judge it.
        if now.set(key, value).is_err() {
            return Ok(());
        }
        for one in later {
            if let Some(value) = numbered(&one.value) {
                pending
                    .entry(one.height)
                    .or_default()
                    .push(ProposedValue { key: key.clone(), value });
            }
        }
    }
    let pending: Vec<_> = pending
        .into_iter()
        .map(|(height, settings)| Proposal { height: Height::new(height), by: None, settings })
        .collect();
    let next = Height::new(head).next();
    let proposal = Proposal { height: at.unwrap_or(next), by: None, settings };
    let refused = |error: ParameterError| CliError::new(Exit::Rejected, error.to_string());
    propose(now, &pending, next, &proposal).map(drop).map_err(refused)
}

fn number(key: &str, typed: &str, range: RangeInclusive<u64>) -> Result<u64, CliError> {
    let (min, max) = (range.start(), range.end());
    let value: u64 = typed.parse().map_err(|_| {
        let what =
            format!("`{typed}` is not a value of {key}: expected a number from {min} to {max}");
        CliError::new(Exit::Usage, what)
    })?;
    if !range.contains(&value) {
        let what = format!("ParameterOutOfRange: {key} is from {min} to {max}, not {value}");
        return Err(CliError::new(Exit::Rejected, what));
    }
    Ok(value)
}

/// The parameter with this key, or the only one whose key ends with it.
fn find(mut all: Vec<GovernedParameter>, key: &str) -> Result<GovernedParameter, CliError> {
    let is_whole = |parameter: &GovernedParameter| parameter.key == key || parameter.name == key;
    if let Some(found) = all.iter().position(is_whole) {
        return Ok(all.swap_remove(found));
    }
    let both = |parameter: &GovernedParameter| [parameter.name.clone(), parameter.key.clone()];
    let names: Vec<_> = all.iter().flat_map(both).collect();
    all.retain(|parameter| ends(&parameter.key, key) || ends(&parameter.name, key));
    let keys: Vec<_> = all.iter().map(|parameter| parameter.key.clone()).collect();
    match (all.pop(), keys.as_slice()) {
        (Some(only), [_]) => Ok(only),
        (Some(_), keys) => {
            let what = format!("several parameters end with `{key}`: {}", keys.join(", "));
            Err(CliError::new(Exit::Usage, what).hint("give more of the key"))
        }
        (None, _) => {
            let what = format!("UnknownParameter: no parameter is or ends with `{key}`");
            let hint = "list them: cowboyctl chain params get";
            let error = CliError::new(Exit::NotFound, what).hint(hint);
            // Compare with whole names and keys, and with their last parts.
            let parts =
                names.iter().flat_map(|key| [Some(key.as_str()), key.rsplit([':', '.']).next()]);
            Err(error.detail(match nearest(key, parts.flatten()) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => {
                    // Every other one is a key.
                    let names: Vec<_> = names.iter().step_by(2).map(String::as_str).collect();
                    format!("known: {}", names.join(", "))
                }
            }))
        }
    }
}

/// Whether a key ends with `ending`, at the boundary of a part.
fn ends(key: &str, ending: &str) -> bool {
    key.strip_suffix(ending).is_some_and(|rest| rest.ends_with([':', '.']))
}

impl Row for GovernedParameter {
    columns! { self;
        "name" => self.name.clone(),
        ">value" => self.value.to_string(),
        "unit" => self.unit.clone(),
        ">genesis" => self.genesis.to_string(),
        ">least" => or_dash(self.min),
        ">most" => or_dash(self.max),
        "pending" => or_dash(pending(self)),
        "source" => self.source.clone(),
        "meaning" => self.about.clone(),
    }
    const LEAST: &'static [&'static str] =
        &["source", "meaning", "genesis", "least", "most", "unit"];

    fn id(&self) -> String {
        self.name.clone()
    }
}

fn pending(parameter: &GovernedParameter) -> Option<String> {
    let one = |setting: &PendingSetting| format!("{} from {}", setting.value, setting.height);
    let all: Vec<_> = parameter.pending.iter().map(one).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

impl Document for GovernedParameter {
    fn text(&self) -> String {
        let range = match (self.min, self.max) {
            (Some(min), Some(max)) => format!("{min} to {max}"),
            _ => self.choices.join(", "),
        };
        let mut lines = vec![
            ("name", self.name.clone()),
            ("key", self.key.clone()),
            ("value", self.value.to_string()),
            ("unit", self.unit.clone()),
        ];
        lines.extend(self.since.map(|since| ("since block", since.to_string())));
        lines.extend(pending(self).map(|pending| ("pending", pending)));
        lines.push(("at genesis", self.genesis.to_string()));
        lines.push(("range", range));
        lines.push(("source", self.source.clone()));
        lines.push(("meaning", self.about.clone()));
        fields(&lines)
    }

    fn id(&self) -> String {
        self.value.to_string()
    }
}

impl Document for Set {
    fn text(&self) -> String {
        let mut lines = Vec::new();
        if let [ChangedParameter { key, before, value }] = self.changes.as_slice() {
            lines.extend([("key", key.clone()), ("before", before.to_string())]);
            lines.push(("value", value.to_string()));
        } else {
            lines.extend(self.changes.iter().map(|ChangedParameter { key, before, value }| {
                (key.as_str(), format!("{value}, before {before}"))
            }));
        }
        lines.extend(self.from.map(|from| ("holds from", from.to_string())));
        let none = || "none: a dry run".to_owned();
        let transaction = self.transaction.map_or_else(none, |hash| hash.to_string());
        lines.push(("transaction", transaction));
        fields(&lines)
    }

    fn id(&self) -> String {
        let keys: Vec<_> = self.changes.iter().map(|changed| changed.key.as_str()).collect();
        keys.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cowboy_devnet::topology::field_of;
    use cowboy_engine::job::SeedRule;

    fn parameter(key: &str, choices: &[&str]) -> GovernedParameter {
        let number = choices.is_empty();
        GovernedParameter {
            key: key.to_owned(),
            name: field_of(key),
            value: Setting::Number(7),
            genesis: Setting::Number(7),
            unit: "cycles".to_owned(),
            source: "CIP-5".to_owned(),
            min: number.then_some(1),
            max: number.then_some(9),
            choices: choices.iter().map(|choice| (*choice).to_owned()).collect(),
            since: None,
            pending: Vec::new(),
            about: String::new(),
        }
    }

    #[test]
    fn what_is_typed_becomes_one_transaction() {
        let all = [
            parameter("system:cip1:policy", &["eip1559", "fifo", "gba-auction"]),
            parameter("system:cip5:lane_timer_cycles", &[]),
            parameter(Phase::KEY, &["shadow", "hot-path", "sunset"]),
            GovernedParameter { min: None, max: None, ..parameter(SeedRule::KEY, &[]) },
        ];
        let typed = |typed: &[&str], at| {
            let typed: Vec<_> = typed.iter().map(|&one| one.to_owned()).collect();
            change(&all, &split(&typed)?, at).map(|(payload, _)| payload)
        };
        let lane = |value| ProposedValue { key: "system:cip5:lane_timer_cycles".to_owned(), value };
        let policy = |value| ProposedValue { key: "system:cip1:policy".to_owned(), value };
        let update = |settings, height: Option<u64>| {
            let height = height.map(Height::new);
            Payload::SysUpdateTimerConfig(UpdateTimerConfig { settings, height })
        };
        for (one, at, expected) in [
            (&["lane_timer_cycles", "3"][..], Some(40), update(vec![lane(3)], Some(40))),
            (&["lane_timer_cycles=3", "policy=fifo"], None, update(vec![lane(3), policy(1)], None)),
            (&["policy=gba-auction"], Some(9), update(vec![policy(2)], Some(9))),
            (&["phase=sunset"], None, Payload::SetPhase(SetPhase { phase: Phase::Sunset })),
        ] {
            assert_eq!(typed(one, at).unwrap(), expected);
        }
        for (one, at, expected) in [
            (&["lane_timer_cycles"][..], None, "`lane_timer_cycles` is not KEY=VALUE"),
            (&["policy=lifo"], None, "`lifo` is not a value of system:cip1:policy: expected one"),
            (&["lane_timer_cycles=x"], None, "expected a number from 1 to 9"),
            (&["lane_timer_cycles=10"], None, "ParameterOutOfRange: "),
            (&["policy=fifo", "policy=fifo"], None, "ParameterRepeated: system:cip1:policy "),
            (&["phase=sunset", "policy=fifo"], None, "migration.phase can only change alone"),
            (&["phase=sunset"], Some(9), "migration.phase can only change alone"),
            (&["selection.seed=parent"], None, "selection.seed is 7 and was fixed at genesis"),
        ] {
            let error = typed(one, at).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    /// Values that conflict with current or pending ones of other parameters are refused before
    /// they are sent.
    #[test]
    fn values_that_do_not_go_together_are_refused_before_they_are_sent() {
        let mut overlap = parameter("system:cip11:overlap_blocks", &[]);
        overlap.value = Setting::Number(32);
        overlap.pending =
            vec![PendingSetting { height: 50, value: Setting::Number(100), by: None }];
        let mut epoch = parameter("system:cip11:subset_epoch_blocks", &[]);
        epoch.value = Setting::Number(8_192);
        let all = [overlap, epoch, parameter(Phase::KEY, &["shadow", "hot-path", "sunset"])];
        let checked = |value, at: Option<u64>| {
            let key = "system:cip11:subset_epoch_blocks".to_owned();
            let height = at.map(Height::new);
            let settings = vec![ProposedValue { key, value }];
            let update = UpdateTimerConfig { settings, height };
            check(&all, 20, &Payload::SysUpdateTimerConfig(update))
                .map_err(|error| error.to_string())
        };
        assert_eq!(checked(101, Some(50)), Ok(()));
        for (value, at, expected) in [
            (32, Some(30), "ParameterConflict: system:cip11:overlap_blocks would be 32, not below"),
            (64, Some(30), "which would be 64, from block 50 on, with what is pending"),
            (64, Some(20), "ActivationInPast: block 20 has begun; 21 is the first"),
        ] {
            let error = checked(value, at).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
        let unknown = SetParameter { key: "system:cip99:new".to_owned(), value: 0 };
        check(&all, 20, &Payload::SetParameter(unknown)).unwrap();
    }

    #[test]
    fn keys_are_known_by_their_last_parts() {
        let key = "system:cip1:priority_tier_multipliers.fast";
        for ending in
            ["fast", "priority_tier_multipliers.fast", "cip1:priority_tier_multipliers.fast"]
        {
            assert!(ends(key, ending), "{ending}");
        }
        for other in ["ast", "multipliers.fast", "", "slow"] {
            assert!(!ends(key, other), "{other}");
        }
        assert!(!ends("system:cip5:max_cycles_per_fire", "per_fire"));
    }
}

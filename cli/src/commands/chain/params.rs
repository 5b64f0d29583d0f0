//! `chain params`: the governed parameters.

use crate::{
    commands::{
        account::Inclusion,
        transaction::{self, Signer},
    },
    complete,
    context::{Context, Deadline},
    error::{CliError, Exit, nearest},
    output::{Document, Row, fields},
};
use clap::Subcommand;
use clap_complete::ArgValueCandidates;
use cowboy_devnet::{
    api::types::{GovernedParameter, HashText, Setting},
    client::Client,
    topology::GOVERNANCE,
};
use cowboy_engine::{
    chain::transaction::{Payload, SetParameter, SetPhase},
    presence::{Phase, PhaseError},
};
use serde::Serialize;

#[derive(Debug, Subcommand)]
pub enum Params {
    /// Every governed parameter, or one
    Get {
        /// Its key, or the end of it: lane_timer_cycles
        #[arg(add = ArgValueCandidates::new(complete::parameters))]
        key: Option<String>,
    },
    /// Give a governed parameter another value, from the next block on
    ///
    /// All are numbers but for migration.phase, which is shadow, hot-path or sunset.
    Set {
        /// Its key, or the end of it: lane_timer_cycles
        #[arg(add = ArgValueCandidates::new(complete::parameters))]
        key: String,
        /// Its value
        value: String,
        /// The account that governs: a name, or an address whose key is in the devnet's folder
        #[arg(long, value_name = "ACCOUNT", default_value = GOVERNANCE)]
        #[arg(add = ArgValueCandidates::new(complete::accounts))]
        from: String,
        #[command(flatten)]
        inclusion: Inclusion,
    },
}

/// A parameter that was set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Set {
    key: String,
    /// Its value until then.
    before: Setting,
    value: Setting,
    transaction: HashText,
    /// The block that set it: it holds from the next one on.
    height: Option<u64>,
}

impl Params {
    /// Runs the command.
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        let devnet = cx.running(None)?;
        let client = cx.client_of(&devnet)?;
        match self {
            Self::Get { key: None } => cx.ui.list(&client.governance().await?),
            Self::Get { key: Some(key) } => cx.ui.document(&find(&client, &key).await?),
            Self::Set { key, value, from, inclusion } => {
                let signer = Signer::find(&devnet, &from)?;
                let parameter = find(&client, &key).await?;
                // What the chain would refuse is refused before it costs a fee.
                let (payload, value) = change(&parameter, &value)?;
                let GovernedParameter { key, value: before, .. } = parameter;
                let deadline = Deadline::after(inclusion.timeout);
                let executed =
                    transaction::execute(cx.ui, &client, &signer, payload, deadline).await?;
                let transaction = executed.transaction;
                let (hash, height) = (transaction.hash, transaction.height);
                cx.ui.document(&Set { key, before, value, transaction: hash, height })
            }
        }
    }
}

/// What gives a parameter the value typed, and that value.
fn change(parameter: &GovernedParameter, typed: &str) -> Result<(Payload, Setting), CliError> {
    let GovernedParameter { key, min, max, choices, .. } = parameter;
    if key == Phase::KEY {
        let phase: Phase = typed
            .parse()
            .map_err(|error: PhaseError| CliError::new(Exit::Usage, error.to_string()))?;
        return Ok((Payload::SetPhase(SetPhase { phase }), Setting::Word(phase.to_string())));
    }
    let (Some(min), Some(max)) = (min, max) else {
        let what = format!("{key} is one of {}: this cowboyctl cannot set it", choices.join(", "));
        return Err(CliError::failed(what));
    };
    let value: u64 = typed.parse().map_err(|_| {
        let what = format!("`{typed}` is no value of {key}: expected a number");
        CliError::new(Exit::Usage, what)
    })?;
    if !(*min..=*max).contains(&value) {
        let what = format!("ParameterOutOfRange: {key} is from {min} to {max}, not {value}");
        return Err(CliError::new(Exit::Rejected, what));
    }
    let payload = Payload::SetParameter(SetParameter { key: key.clone(), value });
    Ok((payload, Setting::Number(value)))
}

/// The parameter of this key, or the only one whose key ends so.
async fn find(client: &Client, key: &str) -> Result<GovernedParameter, CliError> {
    let mut all = client.governance().await?;
    if let Some(found) = all.iter().position(|parameter| parameter.key == key) {
        return Ok(all.swap_remove(found));
    }
    let names: Vec<_> = all.iter().map(|parameter| parameter.key.clone()).collect();
    all.retain(|parameter| ends(&parameter.key, key));
    let keys: Vec<_> = all.iter().map(|parameter| parameter.key.clone()).collect();
    match (all.pop(), keys.as_slice()) {
        (Some(only), [_]) => Ok(only),
        (Some(_), keys) => {
            let what = format!("several parameters end with `{key}`: {}", keys.join(", "));
            Err(CliError::new(Exit::Usage, what).hint("give more of the key"))
        }
        (None, _) => {
            let what = format!("UnknownParameter: no parameter is `{key}` or ends so");
            let hint = "see which there are: cowboyctl chain params get";
            let error = CliError::new(Exit::NotFound, what).hint(hint);
            // By its whole key, or by its last part.
            let parts =
                names.iter().flat_map(|key| [Some(key.as_str()), key.rsplit([':', '.']).next()]);
            match nearest(key, parts.flatten()) {
                Some(meant) => Err(error.detail(format!("did you mean `{meant}`?"))),
                None => Err(error),
            }
        }
    }
}

/// Whether a key ends with this, at the border of a part.
fn ends(key: &str, ending: &str) -> bool {
    key.strip_suffix(ending).is_some_and(|rest| rest.ends_with([':', '.']))
}

impl Row for GovernedParameter {
    const HEADER: &'static [&'static str] =
        &["key", ">value", ">genesis", ">least", ">most", "meaning"];

    fn cells(&self) -> Vec<String> {
        let bound =
            |bound: Option<u64>| bound.map_or_else(|| "-".to_owned(), |bound| bound.to_string());
        vec![
            self.key.clone(),
            self.value.to_string(),
            self.genesis.to_string(),
            bound(self.min),
            bound(self.max),
            self.about.clone(),
        ]
    }

    fn id(&self) -> String {
        self.key.clone()
    }
}

impl Document for GovernedParameter {
    fn text(&self) -> String {
        let range = match (self.min, self.max) {
            (Some(min), Some(max)) => format!("{min} to {max}"),
            _ => self.choices.join(", "),
        };
        let mut lines = vec![("key", self.key.clone()), ("value", self.value.to_string())];
        if let Some(since) = self.since {
            lines.push(("since block", since.to_string()));
        }
        lines.push(("at genesis", self.genesis.to_string()));
        lines.push(("range", range));
        lines.push(("meaning", self.about.clone()));
        fields(&lines)
    }

    fn id(&self) -> String {
        self.value.to_string()
    }
}

impl Document for Set {
    fn text(&self) -> String {
        let mut lines = vec![
            ("key", self.key.clone()),
            ("before", self.before.to_string()),
            ("value", self.value.to_string()),
        ];
        if let Some(height) = self.height {
            lines.push(("holds from", (height + 1).to_string()));
        }
        lines.push(("transaction", self.transaction.to_string()));
        fields(&lines)
    }

    fn id(&self) -> String {
        self.key.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

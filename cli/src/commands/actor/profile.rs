//! `actor profile`: what a call spends, by line of the modules that it runs.

use super::{call::succeeded, python};
use crate::{
    args::HeightArg,
    complete,
    context::Context,
    error::{CliError, Exit},
    output::{Document, any_table, fields, paragraphs, share, short},
};
use clap::Args;
use clap_complete::ArgValueCandidates;
use cowboy_devnet::{
    client::Client,
    types::{AddressText, Bytes, CallProfile, DryRun, DryRunRequest, StoreQuery, Text, TracedCall},
};
use cowboy_engine::primitives::{Address, Wei};
use serde::Serialize;
use std::{cmp::Reverse, collections::BTreeMap, fmt::Write as _, fs, path::PathBuf};

/// Actors whose sources are asked for.
const MOST_SOURCES: usize = 32;

/// `actor profile`.
#[derive(Debug, Args)]
pub struct ProfileCall {
    /// The actor: a name, its address or enough of its beginning, or latest
    #[arg(add = ArgValueCandidates::new(complete::actors))]
    actor: String,
    /// The handler to call
    handler: String,
    #[command(flatten)]
    payload: python::CallPayload,
    /// The caller: an account's name, or any address
    #[arg(long, value_name = "ACCOUNT", default_value = "dev-0")]
    #[arg(add = ArgValueCandidates::new(complete::accounts))]
    from: String,
    /// Amount to send with the call: 1.5cby, or wei
    #[arg(long, value_name = "AMOUNT", default_value = "0")]
    value: Wei,
    /// Run on the state after this block, one of the last 256 [default: the newest]
    #[arg(long, value_name = "HEIGHT")]
    at: Option<HeightArg>,
    /// Also write the stacks to this file, one per line with its cycles, for tools that draw flame
    /// graphs
    #[arg(long, value_name = "FILE")]
    folded: Option<PathBuf>,
    /// Maximum number of lines to show, of those that spend most
    #[arg(long, default_value_t = 20)]
    limit: usize,
}

/// What a call spent, by line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Profiled {
    actor: AddressText,
    handler: String,
    /// The block on whose state it ran.
    at: u64,
    /// Whether the call would succeed.
    success: bool,
    /// The total, without the intrinsic part of a transaction.
    cycles: u64,
    /// Likewise.
    cells: u64,
    /// The number of calls: its own, those inside it, and messages.
    calls: usize,
    /// Lines, those that spent most cycles first. They add up to the total.
    lines: Vec<ProfiledLine>,
    /// How many of them the text shows.
    #[serde(skip)]
    shown: usize,
}

/// What a line spent in all its executions, without functions of its module that it called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct ProfiledLine {
    actor: AddressText,
    /// The function, or what else it was: `loading` of the module, `calls`: finding handlers, and
    /// their results as JSON. An actor in Python has a row for each handler.
    function: String,
    /// The line of the actor's source; absent for what belongs to no line.
    line: Option<u32>,
    /// How often the line's first operation ran.
    times: u64,
    cycles: u64,
    cells: u64,
    /// The text of the line, if the actor's source was asked for: that of the first 32 actors is.
    source: Option<String>,
}

impl ProfileCall {
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        let client = cx.client()?;
        let payload = self.payload.bytes(&client, &self.actor).await?;
        let request = DryRunRequest {
            sender: self.from,
            handler: self.handler,
            payload: Text(Bytes(payload)),
            value: Text(self.value),
            cycles: None,
            cells: None,
            timer_allowance: None,
            at: HeightArg::past(self.at, &client).await?,
            ask_agent: Some(false),
            trace: None,
            profile: Some(true),
            source: None,
        };
        let tried = client.dry_run(&self.actor, &request).await?;
        let names = Names::of(&client, &tried).await?;
        if let Some(file) = &self.folded {
            fs::write(file, folded(&tried.calls, &names))
                .map_err(|error| CliError::file(Exit::Failed, file, &error))?;
        }
        cx.ui.document(&Profiled::of(&tried, &names, self.limit))?;
        succeeded(&tried)
    }
}

/// Names and sources of actors.
struct Names(BTreeMap<Address, (String, String)>);

impl Names {
    async fn of(client: &Client, tried: &DryRun) -> Result<Self, CliError> {
        let mut names = BTreeMap::new();
        for call in &tried.calls {
            if names.len() < MOST_SOURCES && !names.contains_key(&*call.actor) {
                let query =
                    StoreQuery { limit: Some(1), at: Some(tried.at), ..StoreQuery::default() };
                let actor = client.actor(&call.actor.to_string(), &query).await?;
                let name = actor.name.unwrap_or_else(|| short(&call.actor));
                names.insert(*call.actor, (name, actor.source));
            }
        }
        Ok(Self(names))
    }

    fn name(&self, actor: &Address) -> String {
        self.0.get(actor).map_or_else(|| short(actor), |(name, _)| name.clone())
    }

    fn line(&self, actor: &Address, line: u32) -> Option<String> {
        let (_, source) = self.0.get(actor)?;
        source.lines().nth(line as usize - 1).map(|text| text.trim().to_owned())
    }
}

/// What a call spent itself: not the calls inside it, whose usage is part of its own.
fn own(calls: &[TracedCall], index: usize) -> (u64, u64) {
    let usage = &calls[index].usage;
    let inside = calls.iter().filter(|call| call.inside && call.by == Some(index as u64));
    inside.fold((usage.cycles, usage.cells), |(cycles, cells), call| {
        (cycles.saturating_sub(call.usage.cycles), cells.saturating_sub(call.usage.cells))
    })
}

impl Profiled {
    fn of(tried: &DryRun, names: &Names, shown: usize) -> Self {
        let mut sums: BTreeMap<(Address, Option<u32>, String), [u64; 3]> = BTreeMap::new();
        let mut add = |actor, function: &str, line, spent: [u64; 3]| {
            let sum = sums.entry((actor, line, function.to_owned())).or_default();
            for (sum, more) in sum.iter_mut().zip(spent) {
                *sum += more;
            }
        };
        for (index, call) in tried.calls.iter().enumerate() {
            let loading = call.usage.by_cause.loading;
            match &call.profile {
                None => {
                    let (cycles, cells) = own(&tried.calls, index);
                    add(*call.actor, &call.handler, None, [1, cycles, cells]);
                }
                Some(CallProfile { spots, outside_cycles, outside_cells }) => {
                    if loading > 0 {
                        add(*call.actor, "loading", None, [1, loading, 0]);
                    }
                    add(*call.actor, "calls", None, [1, *outside_cycles, *outside_cells]);
                    for spot in spots {
                        let spent = [spot.times, spot.cycles, spot.cells];
                        add(*call.actor, &spot.function, Some(spot.line), spent);
                    }
                }
            }
        }
        let line = |(place, spent): ((Address, Option<u32>, String), [u64; 3])| {
            let ((actor, line, function), [times, cycles, cells]) = (place, spent);
            let source = line.and_then(|line| names.line(&actor, line));
            ProfiledLine { actor: actor.into(), function, line, times, cycles, cells, source }
        };
        let mut lines: Vec<_> = sums.into_iter().map(line).collect();
        lines.sort_by_key(|line| Reverse(line.cycles));
        Self {
            actor: tried.actor,
            handler: tried.handler.clone(),
            at: tried.at,
            success: tried.success,
            cycles: tried.usage.cycles,
            cells: tried.usage.cells,
            calls: tried.calls.len(),
            lines,
            shown,
        }
    }
}

/// A line per stack: its frames with ; between them, a space, its cycles.
fn folded(calls: &[TracedCall], names: &Names) -> String {
    let mut text = String::new();
    let mut roots: Vec<String> = Vec::with_capacity(calls.len());
    for (index, call) in calls.iter().enumerate() {
        let frame = format!("{}.{}", names.name(&call.actor), call.handler).replace(';', ",");
        let by = call.by.and_then(|by| roots.get(usize::try_from(by).ok()?));
        let root = by.map_or_else(|| frame.clone(), |by| format!("{by};{frame}"));
        roots.push(root.clone());
        let mut stack = |frames: &str, cycles: u64| {
            if cycles > 0 {
                writeln!(text, "{frames} {cycles}").expect("a string takes all");
            }
        };
        let Some(profile) = &call.profile else {
            stack(&root, own(calls, index).0);
            continue;
        };
        stack(&format!("{root};loading"), call.usage.by_cause.loading);
        stack(&root, profile.outside_cycles);
        let mut stacks: Vec<String> = Vec::with_capacity(profile.spots.len());
        for spot in &profile.spots {
            let by = spot.by.and_then(|by| stacks.get(usize::try_from(by).ok()?));
            let frames = format!("{};{}:{}", by.unwrap_or(&root), spot.function, spot.line);
            stack(&frames, spot.cycles);
            stacks.push(frames);
        }
    }
    text
}

impl Document for Profiled {
    fn text(&self) -> String {
        let several = self.lines.iter().any(|line| line.actor != self.actor);
        let mut header =
            vec![">cycles", ">share", ">cells", ">times", ">line", "function", "source"];
        if several {
            header.insert(4, "actor");
        }
        let rows = self.lines.iter().take(self.shown).map(|line| {
            let mut row = vec![
                line.cycles.to_string(),
                share(line.cycles, self.cycles),
                line.cells.to_string(),
                line.times.to_string(),
                line.line.map(|line| line.to_string()).unwrap_or_default(),
                line.function.clone(),
                line.source.clone().unwrap_or_default(),
            ];
            if several {
                row.insert(4, short(&line.actor));
            }
            row
        });
        let left = self.lines.len().saturating_sub(self.shown);
        paragraphs([
            fields(&[
                ("actor", self.actor.to_string()),
                ("handler", self.handler.clone()),
                ("state", format!("after block {}", self.at)),
                ("calls", self.calls.to_string()),
                ("cycles", self.cycles.to_string()),
                ("cells", self.cells.to_string()),
            ]),
            any_table(&header, rows),
            match left {
                0 => String::new(),
                left => format!("{left} more lines: give a greater --limit"),
            },
        ])
    }

    fn id(&self) -> String {
        self.cycles.to_string()
    }
}

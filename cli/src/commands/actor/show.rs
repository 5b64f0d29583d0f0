//! Text output for actors and the effects of their calls.

use crate::{
    commands::{timer::allowance, transaction::reason},
    output::{
        Document, Row, amount, any_rows, any_table, columns, fields, named, or_dash, paragraphs,
        short, table,
    },
};
use cowboy_devnet::types::{
    Actor, ActorReceipt, ActorSummary, CyclesByCause, DryRun, Fee, Handler, LogLine, TracedCall,
    Usage, WaitingContinuation,
};
use cowboy_engine::chain::Language;
use serde_json::Value;

impl Row for ActorSummary {
    columns! { self;
        "actor" => self.actor.to_string(),
        "name" => or_dash(self.name.clone()),
        "deployer" => self.deployer_name.clone().unwrap_or_else(|| self.deployer.to_string()),
        ">deployed at" => self.deployed_at.to_string(),
        ">balance" => amount(*self.balance),
    }
    const LEAST: &'static [&'static str] = &["deployed at", "name"];

    fn id(&self) -> String {
        self.actor.to_string()
    }
}

/// The signature of each handler, and its line.
pub fn handler_rows(handlers: &[Handler]) -> impl Iterator<Item = Vec<String>> {
    handlers.iter().map(|handler| {
        let signature = format!("{}({})", handler.name, handler.parameters.join(", "));
        vec![signature, handler.line.to_string()]
    })
}

impl Document for Actor {
    fn text(&self) -> String {
        let in_python = self.language == Language::Python.name();
        let head = fields(&[
            ("actor", named(self.name.as_deref(), &self.actor)),
            ("deployer", named(self.deployer_name.as_deref(), &self.deployer)),
            ("code", self.code.to_string()),
            ("deployed at", self.deployed_at.to_string()),
            ("balance", amount(*self.balance)),
            match in_python {
                false => ("retained", format!("{} bytes", self.retained)),
                true => ("owner", self.owner.to_string()),
            },
        ]);
        let state = self.state.iter().map(|e| vec![e.key.clone(), brief(&e.value)]);
        let waiting = self.continuations.iter().map(|waiting| {
            let WaitingContinuation { cid, handler, job_id, submitted_at, deadline } = waiting;
            let (at, until) = (submitted_at.to_string(), deadline.to_string());
            vec![short(cid), handler.clone(), job_id.to_string(), at, until]
        });
        let more = |next: &String| format!("more: --from '{next}', or a greater --limit");
        paragraphs([
            head,
            match in_python {
                false => table(&["handler", ">line"], handler_rows(&self.handlers)),
                true => String::new(),
            },
            any_table(&["continuation", "resumes", "job", ">submitted at", ">deadline"], waiting),
            any_table(&["key", "value"], state),
            self.next.as_ref().map(more).unwrap_or_default(),
        ])
    }

    fn id(&self) -> String {
        self.actor.to_string()
    }
}

impl Document for DryRun {
    fn text(&self) -> String {
        let mut lines = vec![
            ("actor", self.actor.to_string()),
            ("handler", self.handler.clone()),
            ("sender", self.sender.to_string()),
            ("state", format!("after block {}", self.at)),
        ];
        if let Some(reason) = reason(self.error.as_deref(), self.message.as_deref()) {
            lines.push(("error", reason));
        }
        if self.success {
            lines.push(("result", result(self.result.as_ref())));
        }
        lines.push(("calls", self.deliveries.to_string()));
        lines.push(("cycles", divided(self.usage.cycles, causes(&self.usage))));
        lines.push(("cells", self.usage.cells.to_string()));
        let value = |value: &Option<Value>| or_dash(value.as_ref().map(brief));
        let changes = self.changes.iter().map(|change| {
            let (before, after) = (value(&change.before), value(&change.after));
            vec![short(&change.actor), change.key.clone(), before, after]
        });
        let timers = allowance::told(&self.events).into_iter().map(|timer| {
            let payer = if timer.fee_payer == timer.actor { "the actor" } else { "the caller" };
            let (id, actor) = (short(&timer.timer_id), short(&timer.actor));
            let cost = amount(*timer.max_cost);
            vec![id, actor, timer.height.to_string(), payer.to_owned(), cost]
        });
        paragraphs([
            fields(&lines),
            any_table(&["actor", "key", "before", "after"], changes),
            any_table(&["timer", "actor", ">height", "payer", ">costs at most"], timers),
            any_table(&["call", ">cycles", ">cells", "outcome", "changes"], call_tree(&self.calls)),
            receipt_log(&self.log),
            any_rows(&self.events),
        ])
    }

    fn id(&self) -> String {
        result(self.result.as_ref())
    }
}

/// Calls below those that made them, in the order in which they began.
fn call_tree(calls: &[TracedCall]) -> Vec<Vec<String>> {
    let made_by = |by: Option<u64>| {
        let made = (0_u64..).zip(calls).filter(move |(_, call)| call.by == by);
        made.collect::<Vec<_>>().into_iter().rev()
    };
    let mut rows = Vec::new();
    let mut open: Vec<_> = made_by(None).map(|(index, call)| (0, index, call)).collect();
    while let Some((depth, index, call)) = open.pop() {
        open.extend(made_by(Some(index)).map(|(index, call)| (depth + 1, index, call)));
        let how = match (depth, call.inside) {
            (0, _) => "",
            (_, true) => "└ ",
            (_, false) => "└ message ",
        };
        let payload = if call.payload.is_null() { String::new() } else { brief(&call.payload) };
        let indent = "  ".repeat(depth);
        let outcome = match (&call.error, &call.result) {
            (Some(error), _) => error.lines().next().unwrap_or_default().to_owned(),
            (None, returned) => result(returned.as_ref()),
        };
        let changes = call.changes.iter().map(|change| {
            let value = |value: &Option<Value>| or_dash(value.as_ref().map(brief));
            format!("{}: {} → {}", change.key, value(&change.before), value(&change.after))
        });
        rows.push(vec![
            format!("{indent}{how}{} {}({payload})", short(&call.actor), call.handler),
            call.usage.cycles.to_string(),
            call.usage.cells.to_string(),
            outcome,
            changes.collect::<Vec<_>>().join(", "),
        ]);
    }
    rows
}

/// What actors did, as fields of the transaction that paid for it.
pub fn receipt_fields(
    receipt: &ActorReceipt,
    success: bool,
    fee: Option<&Fee>,
) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    if success && receipt.deliveries > 0 {
        lines.push(("result", result(receipt.result.as_ref())));
    }
    if receipt.deliveries > 0 {
        lines.push(("calls", receipt.deliveries.to_string()));
    }
    let usage = &receipt.usage;
    let (cycles, cells) = fee.map_or((usage.cycles, usage.cells), |fee| (fee.cycles, fee.cells));
    let unused = fee.map_or(0, |fee| fee.unused);
    let intrinsic = cycles.saturating_sub(usage.cycles).saturating_sub(unused);
    let causes = [("intrinsic", intrinsic)].into_iter().chain(causes(usage));
    let causes = causes.chain([("bought and not used", unused)]);
    lines.push(("cycles", divided(cycles, causes)));
    let bytes = cells.saturating_sub(usage.cells);
    lines.push(("cells", divided(cells, [("transaction", bytes), ("actors", usage.cells)])));
    lines
}

/// Log lines as a table; empty if `lines` is.
pub fn receipt_log(lines: &[LogLine]) -> String {
    let rows = lines.iter().map(|line| vec![short(&line.actor), line.text.clone()]);
    any_table(&["actor", "log"], rows)
}

fn causes(usage: &Usage) -> [(&'static str, u64); 7] {
    let CyclesByCause { loading, evaluation, data, heap, storage, effects, hashing } =
        usage.by_cause;
    [
        ("loading", loading),
        ("evaluation", evaluation),
        ("data", data),
        ("heap", heap),
        ("storage", storage),
        ("effects", effects),
        ("hashing", hashing),
    ]
}

fn divided(all: u64, parts: impl IntoIterator<Item = (&'static str, u64)>) -> String {
    let parts = parts.into_iter().filter(|(_, part)| *part > 0);
    let parts: Vec<_> = parts.map(|(name, part)| format!("{name} {part}")).collect();
    match parts.as_slice() {
        [] => all.to_string(),
        parts => format!("{all} ({})", parts.join(", ")),
    }
}

pub fn result(value: Option<&Value>) -> String {
    value.map_or_else(|| "null".to_owned(), Value::to_string)
}

/// The longest value shown in a table, in characters; JSON output is not cut.
const VALUE_CHARS: usize = 80;

pub fn brief(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(VALUE_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

//! What the prompt prints.

use super::super::show::{brief, result};
use crate::output::{Document, any_table, data, grouped, or_dash, short, table};
use cowboy_devnet::types::{Actor, DryRun, StateChange, TracedCall};
use serde::Serialize;
use serde_json::Value;

/// Maximum number of lines about what an evaluation would change; JSON output has all.
const MAX_LINES: usize = 20;

/// What was typed, and the dry run that evaluated it. Nothing of it was sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Evaluated {
    /// What was typed.
    pub input: String,
    /// The dry run of a function that has what was typed. `result` is the expression's value, for
    /// an actor in Python as the text of its `repr`; it is null for statements.
    #[serde(flatten)]
    pub ran: DryRun,
    /// Whether there was an expression.
    #[serde(skip)]
    pub has_value: bool,
    /// Whether the value is text to be printed as it is.
    #[serde(skip)]
    pub is_text: bool,
    /// Whether people are told what it would change.
    #[serde(skip)]
    pub is_told: bool,
}

impl Evaluated {
    fn value(&self) -> Option<String> {
        let value = self.ran.result.as_ref();
        self.has_value.then(|| match value {
            Some(Value::String(text)) if self.is_text => text.clone(),
            value => result(value),
        })
    }

    /// What it would change, with a line for each.
    fn effects(&self) -> Vec<String> {
        let DryRun { actor, usage, log, events, changes, calls, .. } = &self.ran;
        let change = |change: &StateChange| {
            let value = |value: &Option<Value>| or_dash(value.as_ref().map(brief));
            let of = match change.actor == *actor {
                true => String::new(),
                false => format!("{} ", short(&change.actor)),
            };
            format!("{of}{}: {} → {}", change.key, value(&change.before), value(&change.after))
        };
        let call = |call: &TracedCall| {
            let how = if call.inside { "call" } else { "message" };
            let payload = if call.payload.is_null() { String::new() } else { brief(&call.payload) };
            format!("{how} to {} {}({payload})", short(&call.actor), call.handler)
        };
        let told = events.iter().filter(|event| event.kind != "ActorCalled");
        let lines: Vec<_> = changes
            .iter()
            .map(change)
            .chain(calls.iter().skip(1).map(call))
            .chain(told.map(|event| format!("{} {}", event.kind, data(&event.data))))
            .chain(log.iter().map(|line| format!("log {}", line.text)))
            .collect();
        let cycles = grouped(usage.cycles.into());
        let cells = match usage.cells {
            1 => "1 cell".to_owned(),
            cells => format!("{} cells", grouped(cells.into())),
        };
        let left_out = lines.len().saturating_sub(MAX_LINES);
        let head = format!("  not sent: {cycles} cycles, {cells}");
        let mut told = vec![head];
        told.extend(lines.into_iter().take(MAX_LINES).map(|line| format!("    {line}")));
        if left_out > 0 {
            told.push(format!("    {left_out} more, which --output json has"));
        }
        told
    }
}

impl Document for Evaluated {
    fn text(&self) -> String {
        if !self.is_told {
            return self.id();
        }
        // An actor's text must not move the cursor.
        let line = |line: &str| line.replace(char::is_control, "\u{fffd}");
        let value = self.value().into_iter();
        let value = value.flat_map(|value| value.lines().map(line).collect::<Vec<_>>());
        let effects = self.effects().into_iter().map(|effect| line(&effect));
        value.chain(effects).collect::<Vec<_>>().join("\n")
    }

    fn id(&self) -> String {
        self.value().unwrap_or_default()
    }
}

/// An actor, of which people see the part of the store.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct ShownStore(pub Actor);

impl Document for ShownStore {
    fn text(&self) -> String {
        let rows = self.0.state.iter().map(|entry| vec![entry.key.clone(), brief(&entry.value)]);
        let shown = any_table(&["key", "value"], rows);
        match &self.0.next {
            Some(next) => format!("{shown}\nmore: :store PREFIX; the next key is {next}"),
            None => shown,
        }
    }

    fn id(&self) -> String {
        self.0.state.iter().map(|entry| entry.key.as_str()).collect::<Vec<_>>().join("\n")
    }
}

/// An actor, of which people see the handlers.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct ShownHandlers(pub Actor);

impl Document for ShownHandlers {
    fn text(&self) -> String {
        let rows = super::super::show::handler_rows(&self.0.handlers);
        table(&["handler", ">line"], rows)
    }

    fn id(&self) -> String {
        self.0.handlers.iter().map(|handler| handler.name.as_str()).collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cowboy_devnet::types::{CyclesByCause, LogLine, Text, Usage};
    use cowboy_engine::primitives::Address;
    use serde_json::json;

    fn evaluated(value: Value, log: &[&str], is_told: bool) -> Evaluated {
        let by_cause = CyclesByCause {
            loading: 0,
            evaluation: 1_200,
            data: 0,
            heap: 0,
            storage: 0,
            effects: 0,
            hashing: 0,
        };
        let (actor, other) = (Text(Address([0xac; 20])), Text(Address([0xad; 20])));
        let change = |actor, key: &str, after| StateChange {
            actor,
            key: key.to_owned(),
            before: None,
            after: Some(after),
        };
        let ran = DryRun {
            actor,
            handler: "repl__".to_owned(),
            sender: other,
            at: 7,
            success: true,
            result: Some(value),
            result_bytes: None,
            error: None,
            message: None,
            usage: Usage { cycles: 1_200, cells: 3, by_cause },
            deliveries: 1,
            log: log.iter().map(|text| LogLine { actor, text: (*text).to_owned() }).collect(),
            events: Vec::new(),
            changes: vec![change(actor, "n", json!(1)), change(other, "m", json!("x"))],
            calls: Vec::new(),
        };
        let input = "f()".to_owned();
        Evaluated { input, ran, has_value: true, is_text: true, is_told }
    }

    #[test]
    fn people_see_below_a_value_what_is_not_sent() {
        let shown = evaluated(json!("a\n\u{1b}[2J"), &["b\u{7}\nc"], true).text();
        let other = Address([0xad; 20]);
        let expected = format!(
            "a\n\u{fffd}[2J\n  not sent: 1,200 cycles, 3 cells\n    n: - → 1\n    \
             {other} m: - → \"x\"\n    log b\u{fffd}\u{fffd}c"
        );
        assert_eq!(shown, expected);
        assert_eq!(evaluated(json!({"a": 1}), &["b"], false).text(), "{\"a\":1}");
        let many = evaluated(json!(1), &["line"; 30], true).text();
        assert!(many.ends_with("\n    12 more, which --output json has"), "{many}");
        assert_eq!(many.lines().count(), 1 + 1 + MAX_LINES + 1);
    }
}

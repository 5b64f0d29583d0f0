//! `sim replay`: prints each block and each fault of a run.

use super::run::{keep_panics, one, violated_error};
use crate::{
    context::Context,
    error::CliError,
    output::{Format, Row, columns, millis, to_ms},
};
use cowboy_simulation::{play::Line, script::Script};
use serde::Serialize;

/// An event of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Step {
    /// Milliseconds since the start, on the simulation's clock.
    time_ms: u64,
    /// The newest height at that time; for a block its own.
    height: u64,
    /// `block`, `fault`, `heal` or `fabricated`.
    #[cfg_attr(test, schema(value_type = String))]
    kind: &'static str,
    /// The event in a few words.
    what: String,
}

impl From<Line> for Step {
    fn from(line: Line) -> Self {
        let Line { time, height, kind, what, .. } = line;
        Self { time_ms: to_ms(time), height: height.get(), kind, what }
    }
}

impl Row for Step {
    columns! { self;
        ">time" => format!("{:>9}", millis(self.time_ms)),
        ">height" => format!("{:>6}", self.height),
        "kind" => format!("{:5}", self.kind),
        "what" => self.what.clone(),
    }

    fn id(&self) -> String {
        self.height.to_string()
    }
}

pub fn show(
    cx: &Context,
    name: &str,
    script: &Script,
    seed: u64,
    until: Option<u64>,
) -> Result<(), CliError> {
    keep_panics();
    let streams = matches!(cx.ui.format(), Format::Table | Format::Jsonl);
    let (mut kept, mut told) = (Vec::new(), Ok(()));
    let outcome = one(name, script, seed, until, &mut |line| {
        let step = Step::from(line);
        if !streams {
            kept.push(step);
        } else if told.is_ok() {
            told = cx.ui.record(&step);
        }
    })?;
    told?;
    if !streams {
        cx.ui.list(&kept)?;
    }
    if let Some(violation) = &outcome.violation {
        return Err(violated_error(violation, seed, None));
    }
    if let Some(digest) = outcome.digest.filter(|_| until.is_none()) {
        cx.ui.note(&format!("every invariant holds; digest {digest}"));
    }
    Ok(())
}

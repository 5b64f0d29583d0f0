//! `actor check`: tells whether a module would deploy, without a devnet.

use super::{
    analysis,
    module::{BLOCK, ModuleSource},
    python,
    show::handler_rows,
};
use crate::{
    context::Context,
    error::CliError,
    output::{Document, any_table, fields, paragraphs, warn},
};
use clap::Args;
use cowboy_devnet::types::{Handler, Usage};
use cowboy_engine::{
    actor::{self, ActorParams},
    fees::meter,
};
use serde::Serialize;
use std::path::PathBuf;

/// `actor check`.
#[derive(Debug, Args)]
pub struct Check {
    /// The module's file, in Python if its name ends in .py; - for the standard input
    file: PathBuf,
}

/// A module that would deploy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Checked {
    file: String,
    /// Always true, because a module that would be refused is an error.
    valid: bool,
    /// The handlers that can be called.
    handlers: Vec<Handler>,
    /// The tests that `actor test` runs.
    tests: Vec<String>,
    /// Length of the source in bytes.
    bytes: usize,
    /// Bytes of heap that every validator keeps.
    retained: u64,
    /// What a deployment uses, without the intrinsic part of its transaction.
    usage: Usage,
    /// Cycles of the whole transaction.
    cycles: u64,
}

impl Check {
    pub fn run(&self, cx: &Context) -> Result<(), CliError> {
        let source = ModuleSource::read(&self.file)?;
        if python::is_python(&self.file) {
            return analysis::run(cx, &source);
        }
        let (usage, module) = source.load(&ActorParams::default(), BLOCK)?;
        let handlers: Vec<Handler> = module.handlers().into_iter().map(Into::into).collect();
        if handlers.is_empty() {
            warn("nothing can be called: a handler is a function of a context and a payload");
        }
        cx.ui.document(&Checked {
            file: source.file(),
            valid: true,
            handlers,
            tests: module.tests().into_iter().map(|test| test.name).collect(),
            bytes: source.text.len(),
            retained: module.retained(),
            usage: usage.into(),
            cycles: usage.cycles() + meter::INTRINSIC_CYCLES,
        })
    }
}

impl Document for Checked {
    fn text(&self) -> String {
        let limits = actor::Limits::default();
        let head = fields(&[
            ("module", format!("{}: would deploy", self.file)),
            ("source", format!("{} of {} bytes", self.bytes, limits.source)),
            ("retained", format!("{} bytes", self.retained)),
            ("cycles", format!("{}, {} of them loading", self.cycles, self.usage.cycles)),
            ("tests", self.tests.len().to_string()),
        ]);
        let handlers = any_table(&["handler", ">line"], handler_rows(&self.handlers));
        paragraphs([head, handlers])
    }

    fn id(&self) -> String {
        let names: Vec<_> = self.handlers.iter().map(|handler| handler.name.as_str()).collect();
        names.join("\n")
    }
}

//! A module's file, loaded in the same way as on the chain.

use super::{failure, python};
use crate::{
    args,
    error::{CliError, Exit},
};
use cowboy_engine::{
    actor::{ActorParams, Budget, Error, Module, Position, Usage},
    chain::{Language, actors::load},
    fees::meter,
};
use std::path::{Path, PathBuf};

/// The maximum that a transaction can buy for work on actors: a whole block's capacity.
pub const BLOCK: Budget = Budget {
    cycles: meter::MAX_BLOCK_CYCLES - meter::INTRINSIC_CYCLES,
    cells: meter::MAX_BLOCK_CELLS,
};

#[derive(Debug)]
pub struct ModuleSource {
    file: PathBuf,
    pub text: String,
}

impl ModuleSource {
    /// Reads a file; - is the standard input.
    pub fn read(file: &Path) -> Result<Self, CliError> {
        let text = String::from_utf8(args::input(file, meter::MAX_BLOCK_CELLS)?);
        let text = text.map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            CliError::new(Exit::Usage, format!("{}: not UTF-8 at byte {at}", file.display()))
        })?;
        if text.trim().is_empty() {
            let what = format!("{}: empty: a module needs at least one handler", args::shown(file));
            return Err(CliError::new(Exit::Usage, what)
                .hint("see one: examples/actors, or docs/actors.md"));
        }
        Ok(Self { file: file.to_owned(), text })
    }

    /// The text, to run in place of a module in this language.
    pub fn in_place_of(self, language: Language) -> Result<String, CliError> {
        if python::is_python(&self.file) == (language == Language::Python) {
            return Ok(self.text);
        }
        let (name, end) = match language {
            Language::Python => ("Python", "ends in .py"),
            Language::Starlark => ("the dialect of docs/actors.md", "does not end in .py"),
        };
        let what = format!("{}: the actor is in {name}", self.file());
        Err(CliError::new(Exit::Usage, what).hint(format!("name a file that {end}")))
    }

    pub fn file(&self) -> String {
        self.file.display().to_string()
    }

    pub fn place(&self, at: Position) -> String {
        format!("{}:{at}", self.file.display())
    }

    /// Loads the module as a deployment does; the error tells where it is refused.
    pub fn load(&self, params: &ActorParams, budget: Budget) -> Result<(Usage, Module), CliError> {
        let (usage, module) = load(&self.text, params, budget);
        match module {
            Ok(module) => Ok((usage, module)),
            Err(error) => Err(self.refused(error)),
        }
    }

    fn refused(&self, error: Error) -> CliError {
        let at = error.at;
        let refused = failure(&Error { at: None, ..error }.to_string());
        let Some(at) = at else {
            return CliError { what: format!("{}: {}", self.file(), refused.what), ..refused };
        };
        let line = self.text.lines().nth(at.line as usize - 1).unwrap_or_default().trim();
        let shown: String = line.chars().take(100).collect();
        let detail = refused.detail.or((!shown.is_empty()).then_some(shown));
        CliError { what: format!("{}: {}", self.place(at), refused.what), detail, ..refused }
    }
}

//! `actor check FILE.py`: what is wrong with an actor in Python, found without a devnet.
//!
//! Two things are done in the machine that also runs the actors: a program of ours, the modules in
//! `check/`, reads the source, and the actor's module is loaded.

use super::module::ModuleSource;
use crate::{
    context::Context,
    error::{CliError, Exit},
    output::{Document, fields, paragraphs},
};
use cowboy_devnet::machines;
use cowboy_engine::{
    actor,
    chain::params::PythonTerms,
    primitives::Hash,
    pvm::{Pvm as _, PvmCall},
};
use cowboy_pvm::guest::importable;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The names and sources of these modules in `check/`.
macro_rules! modules {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("check/", $name, ".py")))),*]
    };
}

/// The program that reads an actor's source: each module comes after those that it imports. The
/// docs of the last one list the rules.
const MODULES: &[(&str, &str)] = modules! {
    "check_tree"
    "check_machine"
    "check_findings"
    "check_names"
    "check_functions"
    "check_module"
    "check_devnet"
    "check_imports"
    "check_floats"
    "check_state"
    "check_reach"
    "check_purity"
    "check_calls"
    "check_reader"
    "check_decorators"
    "check_classes"
    "check_handlers"
    "check_continuations"
    "check_main"
};
/// The module that knows what actors can import.
const MACHINE: &str = "check_machine";

/// Loads `MODULES`. Actors can import neither them nor `sys`. A syntax error in one would look for
/// its file, which no name of this kind has.
const LOADER: &str = r#"
import inspect
import types

for name, source in MODULES:
    module = types.ModuleType(name)
    inspect.sys.modules[name] = module
    exec(compile(source, "\ud800", "exec", dont_inherit=True), module.__dict__)
check = module.check
check.__module__ = __name__
"#;
const HANDLER: &str = "check";
/// Fuel for the program: some ten seconds.
const FUEL: u64 = 100_000_000_000;

/// A module in Python that was checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct CheckedPython {
    file: String,
    /// Whether there is no finding that is an error.
    valid: bool,
    /// Length of the source in bytes.
    bytes: usize,
    /// Cycles of loading the module, a fresh instance included; absent if it does not load.
    loading: Option<u64>,
    findings: Vec<SourceFinding>,
}

/// Something that is wrong, or may be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct SourceFinding {
    /// From 1; 0 for the whole module.
    line: u32,
    /// From 1; 0 for the whole line.
    column: u32,
    /// The rule's name.
    rule: String,
    severity: FindingSeverity,
    what: String,
    /// What to do.
    fix: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum FindingSeverity {
    /// The chain or the SDK refuses it.
    Error,
    /// It may be meant.
    Warning,
}

/// Checks a module. Fails if it has an error.
pub fn run(cx: &Context, source: &ModuleSource) -> Result<(), CliError> {
    let checked = check(source)?;
    cx.ui.document(&checked)?;
    let errors = checked.findings.iter().filter(|found| found.severity == FindingSeverity::Error);
    match errors.count() {
        0 => Ok(()),
        count => Err(CliError::new(Exit::Invalid, format!("{}: {count} errors", checked.file))),
    }
}

fn check(source: &ModuleSource) -> Result<CheckedPython, CliError> {
    let machine = machines::local()?;
    let program = program();
    let payload = source.text.as_bytes();
    let call = PvmCall { source: &program, handler: HANDLER, payload, fuel: FUEL };
    let broken = |why: String| CliError::failed(format!("{}: not checked: {why}", source.file()));
    let answer = machine.compute(&call).result.map_err(|error| broken(error.to_string()))?;
    let mut findings: Vec<SourceFinding> =
        serde_json::from_slice(&answer).map_err(|error| broken(error.to_string()))?;
    let terms = PythonTerms::on(Hash::ZERO);
    let loaded = machine.load(&source.text, FUEL);
    let loading = match loaded.result {
        Ok(_) => Some(terms.instance + loaded.fuel.div_ceil(terms.fuel_per_cycle)),
        // Syntax errors are among the findings already.
        Err(error) => {
            if !findings.iter().any(|found| found.severity == FindingSeverity::Error) {
                let (rule, fix) = ("does-not-load".to_owned(), "see the traceback".to_owned());
                let (what, severity) = (error.to_string(), FindingSeverity::Error);
                findings.push(SourceFinding { line: 0, column: 0, rule, severity, what, fix });
            }
            None
        }
    };
    let valid = findings.iter().all(|found| found.severity != FindingSeverity::Error);
    Ok(CheckedPython { file: source.file(), valid, bytes: source.text.len(), loading, findings })
}

/// The source of the program. JSON's lists and texts are also Python's.
fn program() -> String {
    let names: Vec<_> = importable().collect();
    let names = format!("IMPORTABLE = frozenset({})\n", json!(names));
    let of = |&(name, source): &(&str, &str)| match name == MACHINE {
        true => [name.to_owned(), names.clone() + source],
        false => [name.to_owned(), source.to_owned()],
    };
    let modules: Vec<_> = MODULES.iter().map(of).collect();
    format!("MODULES = {}\n{LOADER}", json!(modules))
}

impl Document for CheckedPython {
    fn text(&self) -> String {
        let limit = actor::Limits::default().source;
        let verdict = if self.valid { "loads" } else { "has errors" };
        let mut rows = vec![
            ("module", format!("{}: {verdict}", self.file)),
            ("source", format!("{} of {limit} bytes", self.bytes)),
        ];
        rows.extend(self.loading.map(|cycles| ("loading", format!("{cycles} cycles"))));
        let findings = self.findings.iter().map(|found| {
            let SourceFinding { line, column, rule, severity, what, fix } = found;
            let severity = match severity {
                FindingSeverity::Error => "error",
                FindingSeverity::Warning => "warning",
            };
            format!("{}:{line}:{column}: {severity}: {what} [{rule}]\n    {fix}", self.file)
        });
        paragraphs([fields(&rows), findings.collect::<Vec<_>>().join("\n")])
    }

    fn id(&self) -> String {
        let rules: Vec<_> = self.findings.iter().map(|found| found.rule.as_str()).collect();
        rules.join("\n")
    }
}

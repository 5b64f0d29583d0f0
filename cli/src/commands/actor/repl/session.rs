//! What a prompt knows, and how it answers a line.

use super::{
    super::{call::Call, failure, module::ModuleSource, python},
    answer::{Evaluated, ShownHandlers, ShownStore},
    assembly::{Assembly, TypedPiece, host_functions},
    command::{self, PromptCommand},
};
use crate::{
    args::HeightArg,
    commands::{account::Inclusion, transaction::reason},
    context::Context,
    error::{CliError, Exit},
    output::{Document, Format, LEAST_ID, cut},
};
use cowboy_devnet::{
    client::Client,
    types::{Actor, Bytes, DryRunRequest, StoreQuery, Text},
};
use cowboy_engine::{chain::Language, primitives::Wei};
use serde_json::Value;
use std::{path::PathBuf, time::Duration};

/// Maximum number of statements that are kept.
const MAX_KEPT: usize = 200;

/// The prompt's actor, and what was set and assigned.
#[derive(Debug)]
pub struct Session {
    cx: Context,
    client: Client,
    /// The actor's address.
    actor: String,
    /// Its name, or enough of its address.
    name: String,
    language: Language,
    /// Its handlers when it was last asked about.
    handlers: Vec<String>,
    /// A file whose module is evaluated, and its text.
    file: Option<(PathBuf, String)>,
    at: Option<u64>,
    from: String,
    kept: Vec<TypedPiece>,
    timeout: Duration,
    /// Whether a person types, who is told more.
    is_typed: bool,
}

/// Whether the prompt goes on after a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    Line,
    End,
}

impl Session {
    pub async fn new(
        cx: &Context,
        actor: &str,
        from: String,
        inclusion: Inclusion,
        is_typed: bool,
    ) -> Result<Self, CliError> {
        // Each answer is one of many documents.
        let cx = Context { ui: cx.ui.lined(), ..cx.clone() };
        let client = cx.client()?;
        let mut session = Self {
            cx,
            client,
            actor: actor.to_owned(),
            name: String::new(),
            language: Language::Starlark,
            handlers: Vec::new(),
            file: None,
            at: None,
            from,
            kept: Vec::new(),
            timeout: inclusion.timeout,
            is_typed,
        };
        let known = session.known(one()).await?;
        session.actor = known.actor.to_string();
        session.name = known.name.unwrap_or_else(|| cut(&session.actor, LEAST_ID + 4));
        session.language = python::language(&known.language);
        Ok(session)
    }

    /// The actor in the state that is chosen.
    async fn known(&mut self, query: StoreQuery) -> Result<Actor, CliError> {
        let query = StoreQuery { at: self.at, ..query };
        let known = self.client.actor(&self.actor, &query).await?;
        self.handlers = known.handlers.iter().map(|handler| handler.name.clone()).collect();
        Ok(known)
    }

    pub fn prompt(&self) -> String {
        let file = if self.file.is_some() { "*" } else { "" };
        match self.at {
            Some(height) => format!("{}{file}@{height}> ", self.name),
            None => format!("{}{file}> ", self.name),
        }
    }

    /// The words that complete a line.
    pub fn words(&self) -> Vec<String> {
        let functions = match self.language {
            Language::Starlark => host_functions(),
            Language::Python => Vec::new(),
        };
        let commands = command::words().map(str::to_owned);
        commands.chain(self.handlers.iter().cloned()).chain(functions).collect()
    }

    pub async fn command(&mut self, line: &str) -> Result<Next, CliError> {
        match PromptCommand::read(line)? {
            PromptCommand::Quit => return Ok(Next::End),
            PromptCommand::Help => self.say(&command::help()),
            PromptCommand::Call { handler, payload } => {
                self.begin()?;
                self.call(handler, payload).run(&self.cx).await?;
            }
            PromptCommand::Try { handler, payload } => {
                let at = self.at.map(HeightArg::At);
                let source = self.file.as_ref().map(|(_, text)| text.clone());
                self.begin()?;
                self.call(handler, payload).traced(at).run_on(&self.cx, source).await?;
            }
            PromptCommand::Store(prefix) => {
                let query = StoreQuery { prefix, ..StoreQuery::default() };
                let known = self.known(query).await?;
                self.answer(&ShownStore(known))?;
            }
            PromptCommand::Handlers => {
                if self.language == Language::Python {
                    let what = "only the machine knows the handlers of an actor in Python";
                    return Err(CliError::new(Exit::Usage, what)
                        .hint("its source has them: cowboyctl actor show ACTOR --output json"));
                }
                let known = self.known(one()).await?;
                self.answer(&ShownHandlers(known))?;
            }
            PromptCommand::At(height) => {
                self.at = HeightArg::past(Some(height), &self.client).await?;
            }
            PromptCommand::With(Some(file)) => self.read(file)?,
            PromptCommand::With(None) => self.file = None,
            PromptCommand::Reload(file) => {
                let file = file.or_else(|| self.file.as_ref().map(|(file, _)| file.clone()));
                let none = || {
                    CliError::new(Exit::Usage, ":reload: there is no file to read again")
                        .hint("name one: :with FILE")
                };
                self.read(file.ok_or_else(none)?)?;
            }
            PromptCommand::From(account) => {
                self.client.account(&account).await?;
                self.from = account;
            }
            PromptCommand::Forget => {
                let count = std::mem::take(&mut self.kept).len();
                self.say(&format!("forgot {count} {}", if count == 1 { "line" } else { "lines" }));
            }
        }
        Ok(Next::Line)
    }

    /// Evaluates with the module in a file from now on.
    pub fn read(&mut self, file: PathBuf) -> Result<(), CliError> {
        let text = ModuleSource::read(&file)?.in_place_of(self.language)?;
        self.say(&format!("evaluates with {}; :call calls the deployed code", file.display()));
        self.file = Some((file, text));
        Ok(())
    }

    fn call(&self, handler: String, payload: Option<String>) -> Call {
        Call::of(self.actor.clone(), handler, payload, self.from.clone(), self.timeout)
    }

    /// Evaluates a piece on the state that is chosen. Its statements are kept if it succeeds.
    pub async fn evaluate(&mut self, typed: TypedPiece) -> Result<(), CliError> {
        let deployed = self.known(one()).await?.source;
        let module = self.file.as_ref().map_or(deployed.as_str(), |(_, text)| text);
        let assembly = Assembly::new(module, self.language, &self.kept, &typed);
        let request = DryRunRequest {
            sender: self.from.clone(),
            handler: assembly.handler.clone(),
            payload: Text(Bytes::default()),
            value: Text(Wei::ZERO),
            cycles: None,
            cells: None,
            timer_allowance: None,
            at: self.at,
            ask_agent: Some(false),
            trace: Some(true),
            profile: None,
            source: Some(assembly.source.clone()),
        };
        let mut ran = self.client.dry_run(&self.actor, &request).await?;
        if !ran.success {
            let reason = reason(ran.error.as_deref(), ran.message.as_deref()).unwrap_or_default();
            let error = failure(&assembly.relocated(&reason, &self.actor));
            let is_json = reason.contains("JSON") && self.language == Language::Starlark;
            return Err(match error.hint {
                None if is_json => error.hint("a value is shown as JSON; otherwise: repr(VALUE)"),
                _ => error,
            });
        }
        let is_text = self.language == Language::Python;
        if is_text {
            let text = ran.result_bytes.as_ref().map(|bytes| &bytes.0.0);
            let text = text.map(|bytes| String::from_utf8_lossy(bytes).into_owned());
            ran.result = text.filter(|_| typed.has_value()).map(Value::String);
        }
        let (input, has_value) = (typed.text().to_owned(), typed.has_value());
        self.answer(&Evaluated { input, ran, has_value, is_text, is_told: self.is_typed })?;
        if let Some(kept) = typed.kept() {
            if self.kept.len() == MAX_KEPT {
                let what = format!("at most {MAX_KEPT} lines with names are kept; not this one");
                return Err(CliError::new(Exit::Usage, what).hint("forget them: :forget"));
            }
            self.kept.push(kept);
        }
        Ok(())
    }

    /// Prints one of the prompt's documents; nothing for people if it has no text.
    fn answer(&self, document: &impl Document) -> Result<(), CliError> {
        if self.cx.ui.is_for_people() && document.text().is_empty() {
            return Ok(());
        }
        self.begin()?;
        self.cx.ui.document(document)
    }

    /// Separates YAML documents.
    fn begin(&self) -> Result<(), CliError> {
        let ui = self.cx.ui;
        match ui.format() {
            Format::Yaml if !ui.is_for_people() => ui.plain(b"---\n"),
            _ => Ok(()),
        }
    }

    /// Tells a person something that is not an answer.
    fn say(&self, text: &str) {
        if self.is_typed {
            self.cx.ui.note(text);
        }
    }
}

/// A query about an actor that asks for little of its store.
fn one() -> StoreQuery {
    StoreQuery { limit: Some(1), ..StoreQuery::default() }
}

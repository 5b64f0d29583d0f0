//! `actor deploy`: loads a module here first, then deploys it on the chain.

use super::{
    module::ModuleSource,
    python::{self, PythonOptions},
    with_margin,
};
use crate::{
    commands::{
        account::Inclusion,
        naming::Naming,
        transaction::{self, Author, TransactionLimits},
    },
    context::{Context, Deadline},
    error::CliError,
    output::{Document, amount, fields, named},
};
use clap::Args;
use cowboy_devnet::types::{
    AddressText, AmountText, HashText, NamedKind, Text, Transaction, Usage,
};
use cowboy_engine::{
    actor::Budget,
    chain::{ActorCode, Language, Payload, transaction::DeployActor},
    fees::meter,
    primitives::Address,
};
use serde::Serialize;
use std::path::PathBuf;

/// `actor deploy`.
#[derive(Debug, Args)]
pub struct Deploy {
    /// The module's file, in Python if its name ends in .py; - for the standard input
    file: PathBuf,
    #[command(flatten)]
    author: Author,
    #[command(flatten)]
    naming: Naming,
    #[command(flatten)]
    inclusion: Inclusion,
    #[command(flatten)]
    python: PythonOptions,
}

/// A deployed actor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Deployed {
    /// Its address.
    actor: AddressText,
    /// Its name, if it has one.
    name: Option<String>,
    /// The account that deployed it.
    deployer: AddressText,
    /// That account's name, if the devnet knows it.
    deployer_name: Option<String>,
    /// keccak256 of its source.
    code: HashText,
    /// The names of its handlers; only a Starlark module's are known.
    handlers: Vec<String>,
    /// The transaction that deployed it.
    transaction: HashText,
    /// The height of the block that deployed it.
    deployed_at: Option<u64>,
    /// What loading it used and what it keeps; absent if the devnet does not report it.
    usage: Option<Usage>,
    /// The fee that was paid.
    fee: Option<AmountText>,
}

impl Deploy {
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        if python::is_python(&self.file) {
            return self.run_python(cx).await;
        }
        let source = ModuleSource::read(&self.file)?;
        let (devnet, client) = cx.devnet_and_client()?;
        let signer = self.author.signer(&devnet, &client).await?;
        self.naming.check(&client, NamedKind::Actor).await?;
        // Refuse here what the chain would refuse, before it costs a fee.
        let parameters = client.parameters().await?;
        let most = Budget {
            cycles: parameters.cycle_limit.saturating_sub(meter::INTRINSIC_CYCLES),
            cells: parameters.cell_limit,
        };
        let (used, module) = source.load(&parameters.actors.into(), most)?;
        let budget = with_margin(used.cycles(), used.cells);
        let code = ActorCode::hash(Language::Starlark, &source.text);
        let payload = Payload::DeployActor(DeployActor { source: source.text });
        let deadline = Deadline::after(self.inclusion.timeout);
        let limits = TransactionLimits { budget: Some(budget), ..TransactionLimits::default() };
        let executed =
            transaction::settle(cx.ui, &client, &signer, payload, limits, deadline).await?;
        let transaction = executed.succeeded()?;
        let actor = Address::of_actor(&signer.address(), executed.nonce);
        let name = self.naming.give(&client, NamedKind::Actor, &actor).await?;
        let handlers = module.handlers().into_iter().map(|handler| handler.name).collect();
        cx.ui.document(&Deployed::of((actor, name), transaction, Text(code), handlers))
    }
}

impl Deploy {
    /// Deploys a module in Python, which only the chain loads.
    async fn run_python(self, cx: &Context) -> Result<(), CliError> {
        let source = ModuleSource::read(&self.file)?;
        let (devnet, client) = cx.devnet_and_client()?;
        let signer = self.author.signer(&devnet, &client).await?;
        self.naming.check(&client, NamedKind::Actor).await?;
        if client.parameters().await?.python.is_none() {
            return Err(python::no_machine());
        }
        let code = ActorCode::hash(Language::Python, &source.text);
        let (deployment, budget) = self.python.deployment(source.text)?;
        let payload = Payload::DeployPython(deployment.clone());
        let deadline = Deadline::after(self.inclusion.timeout);
        let limits = TransactionLimits { budget: Some(budget), ..TransactionLimits::default() };
        let executed =
            transaction::settle(cx.ui, &client, &signer, payload, limits, deadline).await?;
        let transaction = executed.succeeded()?;
        let actor = deployment.address(&signer.address(), executed.nonce);
        let name = self.naming.give(&client, NamedKind::Actor, &actor).await?;
        cx.ui.document(&Deployed::of((actor, name), transaction, Text(code), Vec::new()))
    }
}

impl Deployed {
    fn of(
        (actor, name): (Address, Option<String>),
        transaction: &Transaction,
        code: HashText,
        handlers: Vec<String>,
    ) -> Self {
        Self {
            actor: actor.into(),
            name,
            deployer: transaction.acted_as.unwrap_or(transaction.sender),
            deployer_name: transaction
                .sender_name
                .clone()
                .filter(|_| transaction.acted_as.is_none()),
            code,
            handlers,
            transaction: transaction.hash,
            deployed_at: transaction.height,
            usage: transaction.actor.as_ref().map(|receipt| receipt.usage),
            fee: transaction.fee.as_ref().map(|fee| Text(fee.burned.saturating_add(*fee.tip))),
        }
    }
}

impl Document for Deployed {
    fn text(&self) -> String {
        let mut lines = vec![
            ("actor", named(self.name.as_deref(), &self.actor)),
            ("deployer", named(self.deployer_name.as_deref(), &self.deployer)),
            ("code", self.code.to_string()),
            ("handlers", self.handlers.join(", ")),
            ("transaction", self.transaction.to_string()),
        ];
        lines.extend(self.deployed_at.map(|height| ("deployed at", height.to_string())));
        if let Some(usage) = &self.usage {
            lines.push(("loading", format!("{} cycles, {} cells", usage.cycles, usage.cells)));
        }
        lines.extend(self.fee.as_ref().map(|fee| ("fee", amount(**fee))));
        fields(&lines)
    }

    fn id(&self) -> String {
        self.actor.to_string()
    }
}

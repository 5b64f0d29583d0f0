//! Signs transactions with the devnet's own account keys, and follows them into a block.

use crate::{
    complete,
    context::{Context, Deadline},
    error::{CliError, Exit, nearest},
    output::Ui,
};
use clap::Args;
use clap_complete::ArgValueCandidates;
use cowboy_devnet::{
    api::funding,
    client::{Client, ClientError},
    orchestrator::home::DevnetHome,
    topology::{GOVERNANCE, Name},
    types::{
        AddressText, Bytes, ErrorCode, Text, Transaction, TransactionRequest, TransactionStatus,
    },
};
use cowboy_engine::{
    actor::Budget,
    chain::transaction::{ActAs, ActedPayload, Payload, Transaction as Unsigned},
    primitives::{Address, Hash, SecretKey, Shortfall, Wei, keccak256},
};
use std::time::Duration;

/// Maximum number of attempts to sign a transaction if other ones take its nonce.
const NONCE_ATTEMPTS: u32 = 32;

/// A pending transaction is submitted again after this many blocks, to the validators that then
/// run. In a healthy chain two blocks suffice: one to propose it, and one already under way.
const RESEND_BLOCKS: u64 = 3;

/// Options for the account that a command acts for.
#[derive(Debug, Args)]
pub struct Author {
    /// The account that signs and pays: a name, or an address whose key is in the devnet's folder
    #[arg(long, value_name = "ACCOUNT", default_value = "dev-0")]
    #[arg(add = ArgValueCandidates::new(complete::accounts))]
    pub from: String,
    #[command(flatten)]
    acting: Acting,
}

/// The option to act for an account without its key.
#[derive(Debug, Args)]
pub struct Acting {
    /// Act for this account, a name or an address, without its key: governance signs and pays the
    /// fee, and the receipt says so
    #[arg(long = "as", value_name = "ACCOUNT", conflicts_with = "from")]
    #[arg(add = ArgValueCandidates::new(complete::accounts))]
    acting_as: Option<String>,
}

impl Author {
    /// The account with its own key.
    pub const fn of(from: String) -> Self {
        Self { from, acting: Acting { acting_as: None } }
    }

    pub async fn signer(&self, devnet: &DevnetHome, client: &Client) -> Result<Signer, CliError> {
        match self.acting.signer(devnet, client).await? {
            Some(signer) => Ok(signer),
            None => Signer::find(devnet, &self.from),
        }
    }

    /// The account, by name or address.
    pub fn account(&self) -> &str {
        self.acting.acting_as.as_deref().unwrap_or(&self.from)
    }
}

impl Acting {
    pub async fn signer(
        &self,
        devnet: &DevnetHome,
        client: &Client,
    ) -> Result<Option<Signer>, CliError> {
        match &self.acting_as {
            Some(account) => Signer::acting_as(devnet, client, account).await.map(Some),
            None => Ok(None),
        }
    }
}

/// Blocks that are made at once for a transaction: one may be under way without it.
const AT_ONCE_BLOCKS: u64 = 2;
/// Time after which the block time applies again all the same.
const AT_ONCE: Duration = Duration::from_secs(5);

/// An account whose key is available.
#[derive(Debug)]
pub struct Signer {
    key: SecretKey,
    own: Address,
    /// The account that it acts for by a power.
    acting_as: Option<Address>,
}

impl Signer {
    /// Governance, acting for an account whose key need not be there.
    pub async fn acting_as(
        devnet: &DevnetHome,
        client: &Client,
        account: &str,
    ) -> Result<Self, CliError> {
        let governance = Self::find(devnet, GOVERNANCE)?;
        let acting_as = Some(address_of(client, account).await?);
        Ok(Self { acting_as, ..governance })
    }

    /// The account with this name or address, if its key is in the devnet's folder.
    pub fn find(devnet: &DevnetHome, account: &str) -> Result<Self, CliError> {
        let unknown = || {
            let names = devnet.accounts().unwrap_or_default();
            let hint = match nearest(account, names.iter().map(Name::as_str)) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => "list the accounts: cowboyctl account ls".to_owned(),
            };
            CliError::new(Exit::NotFound, format!("there is no key for account `{account}`"))
                .detail(format!("keys are in {}", devnet.accounts_path().display()))
                .hint(hint)
        };
        if let Ok(address) = account.parse::<Address>() {
            for name in devnet.accounts()? {
                let key = devnet.account_key(&name)?.filter(|key| key.address() == address);
                if let Some(key) = key {
                    return Ok(Self::of(key));
                }
            }
            return Err(unknown());
        }
        let name: Name = account.parse().map_err(|_| unknown())?;
        devnet.account_key(&name)?.map(Self::of).ok_or_else(unknown)
    }

    pub fn of(key: SecretKey) -> Self {
        let own = key.address();
        Self { key, own, acting_as: None }
    }

    /// A hash that only the account's secret determines: keccak256 of a domain, the secret and
    /// parts of a fixed length.
    pub fn derive(&self, domain: &[u8], parts: &[&[u8]]) -> Hash {
        let secret = self.key.to_bytes();
        keccak256(&[&[domain, &secret], parts].concat())
    }

    /// The account that it acts for: its own, unless it has the power to act for another.
    pub fn address(&self) -> Address {
        self.acting_as.unwrap_or(self.own)
    }

    fn payload(&self, payload: Payload) -> Payload {
        match self.acting_as {
            Some(account) => {
                Payload::ActAs(ActAs { account, payload: ActedPayload(Box::new(payload)) })
            }
            None => payload,
        }
    }
}

pub async fn address_of(client: &Client, account: &str) -> Result<Address, CliError> {
    match account.parse() {
        Ok(address) => Ok(address),
        Err(_) => Ok(*client.account(account).await?.address),
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub struct TransactionLimits {
    /// Cycles and cells on top of the intrinsic part, if the payload's use is metered.
    pub budget: Option<Budget>,
    /// The maximum that timers scheduled by it may ever take from the sender; `None` is nothing.
    pub timer_allowance: Option<Wei>,
    /// Whether its block is made without waiting for the block time.
    pub at_once: bool,
}

/// A transaction that is in a finalized block, or never will be.
#[derive(Debug)]
pub struct Executed {
    pub transaction: Transaction,
    pub nonce: u64,
}

impl Executed {
    /// The transaction, if it succeeded; else a rejection.
    pub fn succeeded(&self) -> Result<&Transaction, CliError> {
        match self.transaction.status {
            TransactionStatus::Success => Ok(&self.transaction),
            _ => Err(rejection(&self.transaction)),
        }
    }
}

/// Signs, submits, and waits until the transaction is in a finalized block. One that is included
/// without effect is a rejection.
pub async fn execute(
    ui: Ui,
    client: &Client,
    signer: &Signer,
    payload: Payload,
    deadline: Deadline,
) -> Result<Executed, CliError> {
    let executed =
        settle(ui, client, signer, payload, TransactionLimits::default(), deadline).await?;
    executed.succeeded()?;
    Ok(executed)
}

/// Executes a power of governance in a block that is made at once.
pub async fn empowered(
    cx: &Context,
    payload: Payload,
    deadline: Deadline,
) -> Result<Executed, CliError> {
    empowered_within(cx, payload, None, deadline).await
}

/// Like [`empowered`], for a payload whose use is metered.
pub async fn empowered_within(
    cx: &Context,
    payload: Payload,
    budget: Option<Budget>,
    deadline: Deadline,
) -> Result<Executed, CliError> {
    let (devnet, client) = cx.devnet_and_client()?;
    let signer = Signer::find(&devnet, GOVERNANCE)?;
    let limits = TransactionLimits { budget, at_once: true, ..TransactionLimits::default() };
    let executed = settle(cx.ui, &client, &signer, payload, limits, deadline).await?;
    executed.succeeded()?;
    Ok(executed)
}

/// Signs, submits, and waits until the transaction's outcome is known.
pub async fn settle(
    ui: Ui,
    client: &Client,
    signer: &Signer,
    payload: Payload,
    limits: TransactionLimits,
    deadline: Deadline,
) -> Result<Executed, CliError> {
    deadline
        .wait_for(ui, "the transaction's block", async |wait| {
            let mut blocks = client.follow(None);
            blocks.connect().await?;
            let Sent { hash, nonce, request } = submit(client, signer, payload, limits).await?;
            if limits.at_once {
                // Without it the transaction takes a block time longer.
                let _ = client.advance(AT_ONCE_BLOCKS, AT_ONCE).await;
            }
            let hash = hash.to_string();
            wait.saw(format!("{hash} in the mempool"));
            let mut sent_at = None;
            loop {
                let height = wait.next(client, &mut blocks).await?.height;
                let transaction = match client.transaction(&hash).await {
                    Ok(transaction) => transaction,
                    // The validators that had it have stopped.
                    Err(error) if error.code() == Some(ErrorCode::NotFound) => {
                        client.submit(&request).await?;
                        sent_at = Some(height);
                        continue;
                    }
                    Err(error) => return Err(error.into()),
                };
                let status = transaction.status;
                wait.saw(format!("{hash} {} at block {height}", status.name()));
                match status {
                    TransactionStatus::Pending => {
                        if height >= *sent_at.get_or_insert(height) + RESEND_BLOCKS {
                            // If this is refused, the next block has the transaction or tells why.
                            let _ = client.submit(&request).await;
                            sent_at = Some(height);
                        }
                    }
                    TransactionStatus::Success
                    | TransactionStatus::Failed
                    | TransactionStatus::Skipped
                    | TransactionStatus::Dropped => return Ok(Executed { transaction, nonce }),
                }
            }
        })
        .await
}

/// The reason of a failure, with the error's name because scripts look for it.
pub fn reason(error: Option<&str>, message: Option<&str>) -> Option<String> {
    match (error, message) {
        (Some(name), Some(message)) if !message.starts_with(name) => {
            Some(format!("{name}: {message}"))
        }
        (name, message) => message.or(name).map(str::to_owned),
    }
}

fn rejection(transaction: &Transaction) -> CliError {
    let reason = reason(transaction.error.as_deref(), transaction.message.as_deref());
    let reason = reason.unwrap_or_else(|| "without a reason".to_owned());
    let outcome = match transaction.status {
        TransactionStatus::Failed => "failed".to_owned(),
        status => format!("was {}", status.name()),
    };
    let hint = match Shortfall::in_text(&reason) {
        Some(short) => {
            let is_sender = short.payer == *transaction.sender;
            let name = transaction.sender_name.as_deref().filter(|_| is_sender);
            funding(&short, name)
        }
        None => format!("see it: cowboyctl chain tx {}", transaction.hash),
    };
    let error = CliError::new(Exit::Rejected, reason)
        .detail(format!("transaction {} {outcome}", transaction.hash))
        .hint(hint);
    CliError { name: transaction.error.clone(), ..error }
}

/// A transaction that a mempool has accepted.
struct Sent {
    hash: Hash,
    nonce: u64,
    request: TransactionRequest,
}

async fn submit(
    client: &Client,
    signer: &Signer,
    payload: Payload,
    limits: TransactionLimits,
) -> Result<Sent, CliError> {
    let parameters = client.parameters().await?;
    let next_nonce = async |account: Address| -> Result<u64, ClientError> {
        let account = client.account(&AddressText::from(account).to_string()).await?;
        Ok(account.next_nonce)
    };
    let payload = signer.payload(payload);
    let mut attempt = 1;
    loop {
        let nonce = next_nonce(signer.own).await?;
        let acting_nonce = next_nonce(signer.address()).await?;
        let mut transaction = Unsigned::with_limits(
            parameters.chain_id.0.0,
            nonce,
            *parameters.cycle_basefee,
            *parameters.cell_basefee,
            payload.clone(),
        );
        if let Some(budget) = limits.budget {
            transaction = transaction.buying(budget);
        }
        if let Some(allowance) = limits.timer_allowance {
            transaction = transaction.allowing(allowance);
        }
        let signed = transaction.sign(&signer.key);
        let request = TransactionRequest { transaction: Text(Bytes(signed.to_bytes())) };
        match client.submit(&request).await {
            Ok(accepted) if !accepted.known => {
                // The payload takes effect with the nonce of the account that it acts for.
                let nonce = match signer.acting_as {
                    Some(account) if account != signer.own => acting_nonce,
                    Some(_) => nonce + 1,
                    None => nonce,
                };
                return Ok(Sent { hash: *accepted.hash, nonce, request });
            }
            // Another command sent the identical transaction first with this nonce: retry, so that
            // both happen.
            Ok(_) if attempt < NONCE_ATTEMPTS => attempt += 1,
            Ok(accepted) => {
                let message = format!("another command used nonce {nonce} for the same thing");
                return Err(CliError::new(Exit::Rejected, message)
                    .detail(format!("transaction {}", accepted.hash))
                    .hint("run fewer commands for the account at once"));
            }
            Err(error) if attempt < NONCE_ATTEMPTS && is_nonce_taken(&error) => attempt += 1,
            Err(error) => return Err(error.into()),
        }
    }
}

/// Whether another transaction of the account took the nonce between asking for it and using it.
fn is_nonce_taken(error: &ClientError) -> bool {
    match error {
        ClientError::Refused(detail) => {
            let name = detail.name.as_deref().unwrap_or_default();
            detail.code == ErrorCode::Rejected
                && matches!(name, "NonceTooLow" | "NonceTooHigh" | "Underpriced")
        }
        _ => false,
    }
}

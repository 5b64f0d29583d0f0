//! Signing transactions with the devnet's own account keys, and seeing them into a block.

use super::chain::status as name_of;
use crate::{
    context::Deadline,
    error::{CliError, Exit},
    output::Ui,
};
use cowboy_devnet::{
    api::types::{
        Account, AddressText, Bytes, ErrorCode, Text, Transaction, TransactionRequest,
        TransactionStatus,
    },
    client::{Client, ClientError},
    orchestrator::home::DevnetHome,
    topology::Name,
};
use cowboy_engine::{
    chain::transaction::{Payload, Transaction as Unsigned},
    primitives::{Address, Hash, SecretKey},
};

/// How often a transaction is signed anew because another one took its nonce meanwhile.
const NONCE_ATTEMPTS: u32 = 5;

/// An account whose key is at hand.
#[derive(Debug)]
pub struct Signer {
    key: SecretKey,
    address: Address,
}

impl Signer {
    /// The account of this name or address, where its key is in the devnet's folder.
    pub fn find(devnet: &DevnetHome, account: &str) -> Result<Self, CliError> {
        let unknown = || {
            CliError::new(Exit::NotFound, format!("there is no key for account `{account}`"))
                .detail(format!("keys are in {}", devnet.accounts_path().display()))
                .hint("see which accounts there are: cowboyctl account ls")
        };
        if let Ok(address) = account.parse::<Address>() {
            for name in devnet.accounts()? {
                let key = devnet.account_key(&name)?.filter(|key| key.address() == address);
                if let Some(key) = key {
                    return Ok(Self { key, address });
                }
            }
            return Err(unknown());
        }
        let name: Name = account.parse().map_err(|_| unknown())?;
        let key = devnet.account_key(&name)?.ok_or_else(unknown)?;
        let address = key.address();
        Ok(Self { key, address })
    }

    /// The account's address.
    pub fn address(&self) -> Address {
        self.address
    }
}

/// The address that a name or an address means.
pub async fn address_of(client: &Client, account: &str) -> Result<Address, CliError> {
    match account.parse() {
        Ok(address) => Ok(address),
        Err(_) => Ok(*client.account(account).await?.address),
    }
}

/// A transaction that is in a finalized block and did what it says.
#[derive(Debug)]
pub struct Executed {
    /// The transaction and its receipt.
    pub transaction: Transaction,
    /// The nonce that it was signed with.
    pub nonce: u64,
}

/// Signs, submits, and waits until the transaction is in a finalized block. One that is there
/// without effect is a rejection.
pub async fn execute(
    ui: Ui,
    client: &Client,
    signer: &Signer,
    payload: Payload,
    deadline: Deadline,
) -> Result<Executed, CliError> {
    deadline
        .wait_for(ui, "the transaction's block", async |wait| {
            let mut blocks = client.follow(None);
            blocks.connect().await?;
            let (hash, nonce) = submit(client, signer, payload).await?;
            let hash = hash.to_string();
            wait.saw(format!("{hash} in the mempool"));
            loop {
                let notice = blocks.next().await?;
                let transaction = client.transaction(&hash).await?;
                let status = transaction.status;
                wait.saw(format!("{hash} {} at block {}", name_of(status), notice.height));
                match status {
                    TransactionStatus::Pending => {}
                    TransactionStatus::Success => return Ok(Executed { transaction, nonce }),
                    TransactionStatus::Failed
                    | TransactionStatus::Skipped
                    | TransactionStatus::Dropped => return Err(rejection(&transaction)),
                }
            }
        })
        .await
}

fn rejection(transaction: &Transaction) -> CliError {
    let reason = [&transaction.message, &transaction.error].into_iter().flatten().next();
    let reason = reason.map_or("without a reason", String::as_str);
    let outcome = name_of(transaction.status);
    CliError::new(Exit::Rejected, reason)
        .detail(format!("transaction {} was {outcome}", transaction.hash))
        .hint(format!("see it: cowboyctl chain tx {}", transaction.hash))
}

/// Hands the signed transaction to the mempool; returns its hash and nonce.
async fn submit(
    client: &Client,
    signer: &Signer,
    payload: Payload,
) -> Result<(Hash, u64), CliError> {
    let parameters = client.parameters().await?;
    let address = AddressText::from(signer.address()).to_string();
    let mut attempt = 1;
    loop {
        let Account { next_nonce: nonce, .. } = client.account(&address).await?;
        let signed = Unsigned::with_limits(
            parameters.chain_id.0.0,
            nonce,
            *parameters.cycle_basefee,
            *parameters.cell_basefee,
            payload.clone(),
        )
        .sign(&signer.key);
        let request = TransactionRequest { transaction: Text(Bytes(signed.to_bytes())) };
        match client.submit(&request).await {
            Ok(accepted) => return Ok((*accepted.hash, nonce)),
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
                && (name.contains("Nonce") || name.contains("Replacement"))
        }
        _ => false,
    }
}

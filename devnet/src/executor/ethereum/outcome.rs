//! The result of an `eth_send` job: JSON that is the same whichever node gave the receipt.
//!
//! Nodes agree on what a receipt says and not on how: fields come in any order, and some add
//! their own (`l1Fee`, `revertReason`, a log's `blockTimestamp`). Here the fields are those of the
//! execution API, in a fixed order, quantities as 0x-hex without leading zeros. Those of blobs
//! stand in receipts of blob transactions alone, as some nodes write them into all.

use alloy_provider::network::AnyTransactionReceipt;
use serde::Serialize;

/// The type of transactions that carry blobs (EIP-4844).
const BLOBS: u8 = 3;

/// What a job returns.
#[derive(Serialize)]
pub(super) struct Outcome {
    transaction_hash: String,
    receipt: Receipt,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Receipt {
    r#type: String,
    /// 0x1, or 0x0 where the transaction was reverted.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<String>,
    /// In place of a status, before Byzantium.
    #[serde(skip_serializing_if = "Option::is_none")]
    root: Option<String>,
    transaction_hash: String,
    transaction_index: String,
    block_hash: String,
    block_number: String,
    from: String,
    to: Option<String>,
    contract_address: Option<String>,
    gas_used: String,
    cumulative_gas_used: String,
    effective_gas_price: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    blob_gas_used: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blob_gas_price: Option<String>,
    logs_bloom: String,
    logs: Vec<Log>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Log {
    address: String,
    topics: Vec<String>,
    data: String,
    block_hash: String,
    block_number: String,
    transaction_hash: String,
    transaction_index: String,
    log_index: String,
    removed: bool,
}

fn hex(bytes: impl AsRef<[u8]>) -> String {
    format!("0x{}", hex::encode(bytes))
}

fn quantity(number: impl Into<u128>) -> String {
    format!("{:#x}", number.into())
}

impl Outcome {
    /// `None`: the receipt is of no block yet.
    pub(super) fn of(receipt: &AnyTransactionReceipt) -> Option<Self> {
        let transaction_hash = hex(receipt.transaction_hash);
        let transaction_index = quantity(receipt.transaction_index?);
        let block_hash = hex(receipt.block_hash?);
        let block_number = quantity(receipt.block_number?);
        let envelope = &receipt.inner.inner;
        let consensus = &envelope.inner.receipt;
        let logs = consensus.logs.iter().map(|log| {
            Some(Log {
                address: hex(log.address()),
                topics: log.topics().iter().map(hex).collect(),
                data: hex(&log.data().data),
                block_hash: block_hash.clone(),
                block_number: block_number.clone(),
                transaction_hash: transaction_hash.clone(),
                transaction_index: transaction_index.clone(),
                log_index: quantity(log.log_index?),
                removed: false,
            })
        });
        let logs = logs.collect::<Option<_>>()?;
        let root = consensus.status.as_post_state();
        let blobs = envelope.r#type == BLOBS;
        let receipt = Receipt {
            r#type: quantity(envelope.r#type),
            status: root.is_none().then(|| quantity(consensus.status.coerce_status())),
            root: root.map(hex),
            from: hex(receipt.from),
            to: receipt.to.map(hex),
            contract_address: receipt.contract_address.map(hex),
            gas_used: quantity(receipt.gas_used),
            cumulative_gas_used: quantity(consensus.cumulative_gas_used),
            effective_gas_price: quantity(receipt.effective_gas_price),
            blob_gas_used: receipt.blob_gas_used.filter(|_| blobs).map(quantity),
            blob_gas_price: receipt.blob_gas_price.filter(|_| blobs).map(quantity),
            logs_bloom: hex(envelope.inner.logs_bloom),
            logs,
            transaction_hash: transaction_hash.clone(),
            transaction_index,
            block_hash,
            block_number,
        };
        Some(Self { transaction_hash, receipt })
    }
}

//! The result of an `eth_send` job: JSON that is the same whichever node gave the receipt.
//!
//! Nodes agree on a receipt's content but not on its form: fields come in any order, some nodes add
//! their own (`l1Fee`, `revertReason`, a log's `blockTimestamp`), and hex comes in either case.
//! Reading a receipt into [`Receipt`] and writing it again gives the fields of the execution API in
//! a fixed order, with data in lower case and quantities as 0x-hex without leading zeros.
//! [`Outcome::of`] unifies the fields on blobs, the state root and logs.

use super::BLOBS;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

#[derive(Serialize)]
pub(super) struct Outcome {
    transaction_hash: Data<32>,
    receipt: Receipt,
}

/// A transaction's receipt, as returned by `eth_getTransactionReceipt`.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Receipt {
    r#type: Quantity,
    /// 0x1, or 0x0 if the transaction was reverted.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Quantity>,
    /// Instead of a status, before Byzantium.
    #[serde(skip_serializing_if = "Option::is_none")]
    root: Option<Data<32>>,
    transaction_hash: Data<32>,
    transaction_index: Option<Quantity>,
    block_hash: Option<Data<32>>,
    block_number: Option<Quantity>,
    from: Data<20>,
    to: Option<Data<20>>,
    contract_address: Option<Data<20>>,
    gas_used: Quantity,
    cumulative_gas_used: Quantity,
    effective_gas_price: Option<Quantity>,
    /// The name of the price in nodes older than EIP-1559.
    #[serde(skip_serializing)]
    gas_price: Option<Quantity>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blob_gas_used: Option<Quantity>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blob_gas_price: Option<Quantity>,
    logs_bloom: Data<256>,
    logs: Vec<ReceiptLog>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReceiptLog {
    address: Data<20>,
    topics: Vec<Data<32>>,
    data: HexBytes,
    block_hash: Option<Data<32>>,
    block_number: Option<Quantity>,
    transaction_hash: Option<Data<32>>,
    transaction_index: Option<Quantity>,
    log_index: Option<Quantity>,
    #[serde(default)]
    removed: bool,
}

impl Receipt {
    /// The number of its block; `None` if it is in no block yet.
    pub(super) fn block(&self) -> Option<u128> {
        self.block_number.map(|Quantity(number)| number)
    }
}

impl Outcome {
    /// `None` if the transaction is in no block yet.
    pub(super) fn of(mut receipt: Receipt) -> Option<Self> {
        let place = (receipt.block_hash?, receipt.block_number?, receipt.transaction_index?);
        let (block_hash, block_number, transaction_index) = place;
        for log in &mut receipt.logs {
            // Some nodes leave out fields that the receipt contains already.
            log.block_hash = Some(block_hash);
            log.block_number = Some(block_number);
            log.transaction_hash = Some(receipt.transaction_hash);
            log.transaction_index = Some(transaction_index);
            log.removed = false;
            log.log_index?;
        }
        if receipt.status.is_some() {
            receipt.root = None;
        }
        let price = receipt.effective_gas_price.or(receipt.gas_price).unwrap_or_default();
        receipt.effective_gas_price = Some(price);
        // Some nodes write these fields into every receipt.
        if receipt.r#type != Quantity(u128::from(BLOBS)) {
            (receipt.blob_gas_used, receipt.blob_gas_price) = (None, None);
        }
        Some(Self { transaction_hash: receipt.transaction_hash, receipt })
    }
}

/// `N` bytes, as 0x-hex with two digits per byte.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Data<const N: usize>(pub(super) [u8; N]);

impl<const N: usize> Serialize for Data<N> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&format_args!("0x{}", hex::encode(self.0)))
    }
}

impl<'de, const N: usize> Deserialize<'de> for Data<N> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let bytes = HexBytes::deserialize(from)?.0;
        let bytes = <[u8; N]>::try_from(bytes.as_slice())
            .map_err(|_| de::Error::invalid_length(bytes.len(), &format!("{N} bytes").as_str()))?;
        Ok(Self(bytes))
    }
}

/// Any number of bytes, as 0x-hex.
struct HexBytes(Vec<u8>);

impl Serialize for HexBytes {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&format_args!("0x{}", hex::encode(&self.0)))
    }
}

impl<'de> Deserialize<'de> for HexBytes {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let digits =
            text.strip_prefix("0x").ok_or_else(|| de::Error::custom("bytes without 0x"))?;
        hex::decode(digits).map(Self).map_err(de::Error::custom)
    }
}

/// A number, as 0x-hex. Leading zeros are accepted but not written.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Quantity(pub(super) u128);

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&format_args!("{:#x}", self.0))
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let digits = text.strip_prefix("0x").filter(|digits| !digits.starts_with('+'));
        let digits = digits.ok_or_else(|| de::Error::custom("a quantity that is not 0x-hex"))?;
        u128::from_str_radix(digits, 16).map(Self).map_err(de::Error::custom)
    }
}

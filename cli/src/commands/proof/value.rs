//! What a proof shows, as JSON: amounts as decimals where the record is known, else the fields as
//! the state has them, byte strings in hexadecimal.

use cowboy_devnet::api::types::{Bytes, Text};
use cowboy_engine::{
    chain::{Account, Roster, Subject, SubsetEpoch, Validator},
    primitives::{Wei, codec::Reader, codec::from_slice},
    timer::book,
};
use serde_json::{Map, Value, json};

/// Lists and records within one another, at most.
const DEPTH: u32 = 32;

/// The value of a subject; `None` where the bytes are no such value.
pub fn json(subject: &Subject, bytes: &[u8]) -> Option<Value> {
    match subject {
        Subject::Account(_) => {
            let Account { nonce, balance } = from_slice(bytes).ok()?;
            Some(json!({ "nonce": nonce, "balance": amount(balance) }))
        }
        Subject::Timer(id) => {
            let timer = book::read(*id, &mut Reader::new(bytes)).ok()?;
            Some(json!({
                "seq": timer.seq,
                "actor": timer.actor.to_string(),
                "height": timer.height.get(),
                "payload": hex(&timer.payload),
                "handler": timer.call().0,
                "fee_payer": timer.fee_payer.to_string(),
                "gas_limit": timer.gas_limit,
                "cell_limit": timer.cell_limit,
                "promised": timer.promised.map(amount),
                "expires_at": timer.expires_at.get(),
                "max_fee_per_cycle": amount(timer.max_fee_per_cycle),
                "max_priority_fee_per_cycle": amount(timer.max_priority_fee_per_cycle),
                "scheduled_at": timer.scheduled_at.get(),
                "gba": timer.gba.map(|gba| gba.to_string()),
                "bid": timer.bid.map(|bid| json!({
                    "max_fee_per_cycle": amount(bid.max_fee_per_cycle),
                    "max_priority_fee_per_cycle": amount(bid.max_priority_fee_per_cycle),
                    "failed": bid.failed,
                })),
            }))
        }
        // A store's values are bytes; those that actors put there are JSON.
        Subject::Stored(..) => {
            let stored: Vec<u8> = from_slice(bytes).ok()?;
            Some(serde_json::from_slice(&stored).unwrap_or_else(|_| hex(&stored).into()))
        }
        _ => {
            let mut input = Input(bytes);
            let value = input.item(DEPTH)?;
            input.0.is_empty().then_some(value)
        }
    }
}

/// Who validates, and whom runners connect to.
pub fn roster(roster: &Roster) -> Value {
    let validators = |all: &[Validator]| -> Value {
        all.iter()
            .map(|validator| {
                json!({
                    "address": validator.pubkey.address().to_string(),
                    "pubkey": hex(validator.pubkey.as_bytes()),
                    "consensus_key": hex(&validator.consensus_key),
                })
            })
            .collect()
    };
    let subset = |epoch: &SubsetEpoch| {
        let validators = validators(&epoch.validators);
        json!({ "number": epoch.number, "validators": validators })
    };
    json!({
        "epoch": roster.epoch,
        "committee": validators(&roster.committee),
        "next": validators(&roster.next),
        "next_decided": roster.next_decided,
        "subset_epochs": roster.subsets.iter().map(subset).collect::<Value>(),
    })
}

fn amount(wei: Wei) -> String {
    wei.get().to_string()
}

fn hex(bytes: &[u8]) -> String {
    Text(Bytes(bytes.to_vec())).to_string()
}

/// Deterministic CBOR (RFC 8949 §4.2), read from the front.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take(&mut self, length: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(usize::try_from(length).ok()?)?;
        self.0 = rest;
        Some(taken)
    }

    /// An item's kind and its number: a value, or how much follows.
    fn head(&mut self) -> Option<(u8, u64)> {
        let first = *self.take(1)?.first()?;
        let number = match first & 31 {
            small @ 0..=23 => u64::from(small),
            long @ 24..=27 => {
                let bytes = self.take(1 << (long - 24))?;
                bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
            }
            _ => return None,
        };
        Some((first >> 5, number))
    }

    fn item(&mut self, depth: u32) -> Option<Value> {
        let below = depth.checked_sub(1)?;
        let (kind, number) = self.head()?;
        Some(match kind {
            0 => number.into(),
            2 => hex(self.take(number)?).into(),
            3 => std::str::from_utf8(self.take(number)?).ok()?.into(),
            4 => {
                let mut items = Vec::new();
                for _ in 0..number {
                    items.push(self.item(below)?);
                }
                items.into()
            }
            5 => {
                let mut fields = Map::new();
                for _ in 0..number {
                    let Value::String(name) = self.item(below)? else { return None };
                    fields.insert(name, self.item(below)?);
                }
                fields.into()
            }
            7 if number == 20 || number == 21 => (number == 21).into(),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cowboy_engine::{
        chain::KnownPresence,
        primitives::{Address, Hash, Height, codec::to_vec},
    };
    use std::sync::Arc;

    #[test]
    fn records_are_read_by_their_names() {
        let account = Account { nonce: 7, balance: Wei::cby(3) };
        assert_eq!(
            json(&Subject::Account(Address([1; 20])), &to_vec(&account)),
            Some(json!({ "nonce": 7, "balance": "3000000000" }))
        );
        let present = Arc::new(vec![Address([2; 20])]);
        let known = KnownPresence { height: Height::new(300), present };
        assert_eq!(
            json(&Subject::Presence, &to_vec(&known)),
            Some(json!({ "height": 300, "present": [format!("0x{}", "02".repeat(20))] }))
        );
        let stored = to_vec(&b"{\"n\": 1}".to_vec());
        let store = Subject::Stored(Address([1; 20]), "n".to_owned());
        assert_eq!(json(&store, &stored), Some(json!({ "n": 1 })));
        assert_eq!(json(&store, &to_vec(&vec![255u8])), Some("0xff".into()));
    }

    #[test]
    fn other_bytes_are_no_value() {
        let job = Subject::Job(Hash([1; 32]));
        for hex_text in ["", "ff", "1f", "9bffffffffffffffff", "5affffffff", "0000", "a10001", "f6"]
        {
            let Text(Bytes(bytes)) = format!("0x{hex_text}").parse().unwrap();
            assert_eq!(json(&job, &bytes), None, "{hex_text}");
        }
        let deep = [vec![0x81; DEPTH as usize], vec![0]].concat();
        assert_eq!(json(&job, &deep), None);
    }
}

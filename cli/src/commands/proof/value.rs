//! A proved value as JSON: amounts as decimals if the record's type is known, else the raw fields
//! of the state, byte strings in hexadecimal.

use crate::output::cbor;
use cowboy_devnet::types::{Bytes, Text};
use cowboy_engine::{
    chain::{Account, GenesisValidator, Roster, Subject, SubsetEpoch},
    primitives::{Wei, codec::Reader, codec::from_slice},
    timer::book,
};
use serde_json::{Value, json};

/// The value of a subject; `None` if the bytes do not encode such a value.
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
                "handler": timer.handler,
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
        // A store's values are bytes; those written by actors are JSON.
        Subject::Stored(..) => {
            let stored: Vec<u8> = from_slice(bytes).ok()?;
            Some(serde_json::from_slice(&stored).unwrap_or_else(|_| hex(&stored).into()))
        }
        _ => cbor(bytes),
    }
}

pub fn roster(roster: &Roster) -> Value {
    let validators = |all: &[GenesisValidator]| -> Value {
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
        let store = Subject::Stored(Address([1; 20]), "n".into());
        assert_eq!(json(&store, &stored), Some(json!({ "n": 1 })));
        assert_eq!(json(&store, &to_vec(&vec![255u8])), Some("0xff".into()));
    }

    #[test]
    fn other_bytes_are_no_value() {
        let job = Subject::Job(Hash([1; 32]));
        for hex_text in ["", "ff", "1f", "9bffffffffffffffff", "5affffffff", "0000", "a100", "1c"] {
            let Text(Bytes(bytes)) = format!("0x{hex_text}").parse().unwrap();
            assert_eq!(json(&job, &bytes), None, "{hex_text}");
        }
        let deep = [vec![0x81; 32], vec![0]].concat();
        assert_eq!(json(&job, &deep), None);
    }
}

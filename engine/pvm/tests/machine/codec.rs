//! The chain's CBOR against the codec of the SDK in the machine: on encodings of random values, and
//! on what is left of them after random damage, both accept the same and make the same of it.
//!
//! `COWBOYCTL_CBOR_INPUTS` says how many inputs are compared.

use crate::{machine, run};
use cowboy_engine::primitives::cbor::{self, CborValue};
use num_bigint::BigInt;
use proptest::{
    prelude::*,
    strategy::ValueTree as _,
    test_runner::{Config, TestRng, TestRunner},
};

const INPUTS: usize = 8_000;

/// Inputs of one call.
const BATCH: usize = 400;

/// What the SDK makes of each input; `None`: it refuses it.
const COMPARE: &str = r"
from cowboy_sdk import codec

def again(raw):
    try:
        return codec.encode(codec.decode(raw))
    except Exception:
        return None

def compare(payload):
    return codec.encode([again(raw) for raw in codec.decode(payload)])
";

fn value() -> impl Strategy<Value = CborValue> {
    let key = prop_oneof![
        any::<i64>().prop_map(|number| CborValue::Int(number.into())),
        (-30_i64..300).prop_map(|number| CborValue::Int(number.into())),
        any::<bool>().prop_map(CborValue::Bool),
        Just(CborValue::Null),
        prop_oneof![Just(0.0), Just(1.0), -1e6..1e6, any::<f64>()]
            .prop_filter("finite", |float| float.is_finite())
            // Zero has one sign.
            .prop_map(|float| CborValue::Float(float + 0.0)),
        prop::collection::vec(any::<u8>(), 0..40).prop_map(CborValue::Bytes),
        "\\PC{0,30}".prop_map(CborValue::Text),
        prop::collection::vec(any::<u8>(), 8..20).prop_map(|digits| {
            let magnitude = BigInt::from_bytes_be(num_bigint::Sign::Plus, &digits);
            CborValue::Int(if digits[0] < 128 { magnitude } else { -magnitude })
        }),
    ]
    .boxed();
    key.clone().prop_recursive(5, 60, 6, move |inside| {
        let entry = (key.clone(), inside.clone());
        prop_oneof![
            prop::collection::vec(inside, 0..6).prop_map(CborValue::List),
            prop::collection::vec(entry, 0..6).prop_map(CborValue::Map),
        ]
    })
}

/// Damage: at most three bytes that are changed, left out, doubled or put in.
fn damage() -> impl Strategy<Value = Vec<(u8, prop::sample::Index, u8)>> {
    prop::collection::vec((0_u8..6, any::<prop::sample::Index>(), any::<u8>()), 0..4)
}

fn damaged(mut bytes: Vec<u8>, damage: &[(u8, prop::sample::Index, u8)]) -> Vec<u8> {
    for (kind, index, byte) in damage {
        if bytes.is_empty() {
            break;
        }
        let at = index.index(bytes.len());
        match kind {
            0 => bytes[at] = *byte,
            1 => bytes[at] ^= 1 << (byte % 8),
            2 => drop(bytes.remove(at)),
            3 => bytes.insert(at, *byte),
            4 => bytes.insert(at, bytes[at]),
            _ => bytes.truncate(at),
        }
    }
    bytes
}

#[test]
fn the_chain_and_the_sdk_read_and_write_the_same() {
    let Some(machine) = machine(0) else { return };
    let inputs = std::env::var("COWBOYCTL_CBOR_INPUTS").ok();
    let inputs = inputs.map_or(INPUTS, |inputs| inputs.parse().expect("a number"));
    let rng = TestRng::deterministic_rng(Config::default().rng_algorithm);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let strategy = (value(), damage());
    let (mut accepted, mut refused) = (0, 0);
    for _ in 0..inputs.div_ceil(BATCH) {
        let mut batch = Vec::with_capacity(BATCH);
        while batch.len() < BATCH {
            let (value, damage) = strategy.new_tree(&mut runner).unwrap().current();
            // Keys that Python takes for equal make it no value.
            if let Ok(bytes) = cbor::encode(&value) {
                batch.push(damaged(bytes, &damage));
            }
        }
        let list = batch.iter().cloned().map(CborValue::Bytes).collect();
        let payload = cbor::encode(&CborValue::List(list)).unwrap();
        let (_, outcome) = run(&machine, COMPARE, "compare", &payload);
        let Ok(CborValue::List(answers)) = cbor::decode(&outcome.result.unwrap()) else {
            panic!("not a list");
        };
        assert_eq!(answers.len(), batch.len());
        for (input, sdk) in batch.iter().zip(answers) {
            let chain = match cbor::decode(input) {
                Ok(value) => CborValue::Bytes(cbor::encode(&value).unwrap()),
                Err(_) => CborValue::Null,
            };
            assert_eq!(chain, sdk, "{}: {:?}", hex::encode(input), cbor::decode(input));
            match chain {
                CborValue::Null => refused += 1,
                _ => accepted += 1,
            }
        }
    }
    assert!(
        accepted > inputs / 4 && refused > inputs / 4,
        "{accepted} accepted, {refused} refused"
    );
}

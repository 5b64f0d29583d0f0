//! Tests of the profile: the SDK's own cases, JSON, and values made at random.

use super::{CborError, CborValue, MAX_DEPTH, decode, encode, from_json};
use num_bigint::BigInt;
use proptest::prelude::*;
use serde_json::Value as Json;

/// Cases that `tests/vectors/cbor.py` made with the SDK's codec.
const VECTORS: &str = include_str!("../../../pvm/tests/vectors/cbor.json");

/// The value of a case: each value is an object with its kind as only key.
fn value(json: &Json) -> CborValue {
    let (kind, inner) = json.as_object().and_then(|object| object.iter().next()).unwrap();
    match kind.as_str() {
        "null" => CborValue::Null,
        "bool" => CborValue::Bool(inner.as_bool().unwrap()),
        "int" => CborValue::Int(inner.as_str().unwrap().parse::<BigInt>().unwrap()),
        "float" => {
            let bits = u64::from_str_radix(inner.as_str().unwrap(), 16).unwrap();
            CborValue::Float(f64::from_bits(bits))
        }
        "bytes" => CborValue::Bytes(hex::decode(inner.as_str().unwrap()).unwrap()),
        "text" => CborValue::Text(inner.as_str().unwrap().to_owned()),
        "list" => CborValue::List(inner.as_array().unwrap().iter().map(value).collect()),
        "map" => {
            let entries = inner.as_array().unwrap().iter();
            CborValue::Map(entries.map(|pair| (value(&pair[0]), value(&pair[1]))).collect())
        }
        other => panic!("{other}"),
    }
}

#[test]
fn decodes_and_encodes_what_the_sdk_does() {
    let cases: Json = serde_json::from_str(VECTORS).unwrap();
    let (mut valid, mut invalid) = (0, 0);
    for case in cases["decode"].as_array().unwrap() {
        let bytes = hex::decode(case["bytes"].as_str().unwrap()).unwrap();
        match case.get("value") {
            Some(expected) => {
                assert_eq!(decode(&bytes), Ok(value(expected)), "{case}");
                valid += 1;
            }
            None => {
                assert!(decode(&bytes).is_err(), "{case}");
                invalid += 1;
            }
        }
    }
    for case in cases["encode"].as_array().unwrap() {
        let expected = case["bytes"].as_str().unwrap();
        assert_eq!(hex::encode(encode(&value(&case["value"])).unwrap()), expected, "{case}");
    }
    for case in cases["deep"].as_array().unwrap() {
        let bytes = hex::decode(case["bytes"].as_str().unwrap()).unwrap();
        let decoded = decode(&bytes);
        assert_eq!(decoded.is_ok(), case["deep"].as_bool().unwrap(), "{case}");
        if let Ok(value) = decoded {
            assert_eq!(encode(&value), Ok(bytes));
        }
    }
    assert!(valid >= 100 && invalid >= 100, "{valid} valid, {invalid} invalid");
}

#[test]
fn the_profile_of_the_spec() {
    for (json, expected) in [
        (r#"{"b":1,"a":2,"aa":3}"#, "a361610261620162616103"),
        ("18446744073709551616", "c249010000000000000000"),
        ("-18446744073709551616", "3bffffffffffffffff"),
        ("-18446744073709551617", "c349010000000000000000"),
        ("1.5", "fb3ff8000000000000"),
        ("-0.0", "fb0000000000000000"),
        ("1e2", "fb4059000000000000"),
        (r#"{"by":2}"#, "a162627902"),
    ] {
        assert_eq!(hex::encode(encode(&from_json(json).unwrap()).unwrap()), expected, "{json}");
    }
}

#[test]
fn json_that_has_no_value() {
    for (json, expected) in [
        ("", "not JSON: a value is expected at byte 0"),
        ("01", "not JSON: a number without leading zeros is expected at byte 0"),
        ("1.", "not JSON: a digit is expected at byte 2"),
        ("1e999", "a float is not finite"),
        (r#"{"a":1,"a":2}"#, "a map has the key \"a\" twice"),
        ("[1,2", "not JSON: a comma or the list's end is expected at byte 4"),
        ("1 2", "not JSON: the end is expected at byte 2"),
    ] {
        assert_eq!(from_json(json).unwrap_err().to_string(), expected, "{json}");
    }
    let deep = "[".repeat(MAX_DEPTH + 1) + &"]".repeat(MAX_DEPTH + 1);
    assert_eq!(from_json(&deep), Err(CborError::TooDeep));
    assert!(from_json(&deep[1..deep.len() - 1]).is_ok());
}

#[test]
fn python_takes_some_keys_for_equal() {
    let map = |keys: &[CborValue]| {
        CborValue::Map(keys.iter().map(|key| (key.clone(), CborValue::Null)).collect())
    };
    let one = CborValue::Int(1.into());
    for other in [CborValue::Bool(true), CborValue::Float(1.0), one.clone()] {
        let error = encode(&map(&[one.clone(), other])).unwrap_err();
        assert!(matches!(error, CborError::Duplicate(_)), "{error}");
    }
    assert_eq!(encode(&map(&[CborValue::List(vec![])])), Err(CborError::Unhashable));
    assert!(encode(&map(&[one, CborValue::Float(1.5), CborValue::Text("1".into())])).is_ok());
}

#[test]
fn people_read_values() {
    let value = CborValue::Map(vec![
        (CborValue::Text("a\"b".into()), CborValue::Bytes(vec![0, 255])),
        (CborValue::Int(3.into()), CborValue::List(vec![CborValue::Float(1.0), CborValue::Null])),
    ]);
    assert_eq!(value.to_string(), r#"{"a\"b": h'00ff', 3: [1.0, null]}"#);
}

fn values() -> impl Strategy<Value = CborValue> {
    let leaf = prop_oneof![
        Just(CborValue::Null),
        any::<bool>().prop_map(CborValue::Bool),
        any::<i128>().prop_map(|number| CborValue::Int(number.into())),
        any::<i16>().prop_map(|number| CborValue::Int(number.into())),
        any::<f64>()
            .prop_filter("finite", |float| float.is_finite())
            .prop_map(|float| CborValue::Float(if float == 0.0 { 0.0 } else { float })),
        prop::collection::vec(any::<u8>(), 0..30).prop_map(CborValue::Bytes),
        ".{0,30}".prop_map(CborValue::Text),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        let key = prop_oneof![
            any::<u32>().prop_map(|number| CborValue::Int((number + 2).into())),
            ".{0,9}".prop_map(CborValue::Text)
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(CborValue::List),
            prop::collection::vec((key, inner), 0..6).prop_map(CborValue::Map),
        ]
    })
}

proptest! {
    #[test]
    fn values_survive(value in values()) {
        if let Ok(bytes) = encode(&value) {
            let decoded = decode(&bytes).unwrap();
            prop_assert_eq!(encode(&decoded).unwrap(), bytes);
        }
    }

    #[test]
    fn what_is_decoded_has_one_form(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        if let Ok(value) = decode(&bytes) {
            let negative_zero = f64::to_be_bytes(-0.0);
            if !bytes.windows(8).any(|window| window == negative_zero) {
                prop_assert_eq!(encode(&value).unwrap(), bytes);
            }
        }
    }
}

//! Texts of numbers, their order and their arithmetic.

use super::*;
use num_bigint::BigInt;
use proptest::prelude::*;

fn number(text: &str) -> Decimal {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn one_value_has_many_texts_and_prints_one() {
    for (texts, printed) in [
        (
            &["1", "1.0", "10e-1", "0.1e1", "1E+0", "1.000000000000000000000000000000000000000000"]
                [..],
            "1",
        ),
        (&["0", "-0", "0.0", "0e5", "-0.00E-999999999999999999999", "0e99999999999999999999"], "0"),
        (&["-2.50", "-25e-1", "-0.0025e3"], "-2.5"),
        (&["100", "1e2", "1E2", "0.1e3"], "100"),
        (&["0.0000010", "1e-6"], "0.000001"),
        (&["0.0000001", "1e-07", "0.00001E-2"], "1e-7"),
        (&["100000000000000000000"], "100000000000000000000"),
        (&["1000000000000000000000", "1e21"], "1e21"),
        (&["12.5e30"], "1.25e31"),
        (&["1e64"], "1e64"),
        (&["-1e-64"], "-1e-64"),
        (
            &[
                "9999999999999999999999999999999999999999e25",
                "9.999999999999999999999999999999999999999e64",
            ],
            "9.999999999999999999999999999999999999999e64",
        ),
    ] {
        for text in texts {
            assert_eq!(number(text).to_string(), printed, "{text}");
            assert_eq!(number(text), number(printed), "{text}");
        }
    }
}

#[test]
fn what_is_no_number_or_too_much_of_one_is_refused() {
    for text in [
        "", "-", "+1", ".5", "1.", "01", "-01", "1e", "1e+", "1.e1", "0x1", "NaN", "Infinity",
        "1 ", " 1", "1,5", "--1", "1e1.5", "١",
    ] {
        let got = text.parse::<Decimal>();
        assert!(matches!(got, Err(DecimalError::Syntax(_))), "{text}: {got:?}");
    }
    let long = format!("1{}", "0".repeat(100_000));
    let small = format!("0.{}1", "0".repeat(100_000));
    for text in ["1e65", "1e-65", "-10e64", "0.1e-64", "1e99999999999999999999", &long, &small] {
        assert_eq!(text.parse::<Decimal>(), Err(DecimalError::Exponent), "{text}");
    }
    let digits = "1".repeat(41);
    assert_eq!(digits.parse::<Decimal>(), Err(DecimalError::Digits(41)));
    assert_eq!(format!("0.{digits}").parse::<Decimal>(), Err(DecimalError::Digits(41)));
    // A text of any length is a number if its value is in range.
    assert_eq!(number(&format!("{long}e-100000")), number("1"));
    assert_eq!(number(&format!("{small}e100001")), number("1"));
}

#[test]
fn order_is_that_of_numbers() {
    let ascending = [
        "-1e64",
        "-10.1",
        "-10",
        "-9.99",
        "-1",
        "-0.5",
        "-1e-64",
        "0",
        "1e-64",
        "0.009",
        "0.01",
        "0.5",
        "1",
        "1.0000000000000000000000000000000001",
        "2",
        "9.9",
        "10",
        "1e64",
    ];
    for (at, a) in ascending.iter().enumerate() {
        for (against, b) in ascending.iter().enumerate() {
            assert_eq!(number(a).cmp(&number(b)), at.cmp(&against), "{a} and {b}");
        }
    }
}

#[test]
fn distances_and_multiples_are_exact() {
    let within = |a: &str, b: &str, most: &str| number(a).is_within(&number(b), &number(most));
    assert!(within("0.3", "0.1", "0.2"), "a double cannot represent it");
    assert!(!within("0.3", "0.1", "0.1999999999999999999999999999999999999999"));
    assert!(within("-1", "1", "2") && within("1", "-1", "2") && within("5", "5", "0"));
    // A difference of 129 digits.
    assert!(!within("1e64", "-1e-64", "1e64"));
    assert!(within("1e64", "1e-64", "1e64"));
    let multiple = |a: &str, step: &str| number(a).is_multiple_of(&number(step));
    assert!(multiple("0.3", "0.1") && multiple("-4.5", "1.5") && multiple("0", "7"));
    assert!(multiple("1e64", "1e-64") && !multiple("1", "0.3") && !multiple("0.05", "0.1"));
    assert!(multiple("0", "0") && !multiple("1", "0"));
}

#[test]
fn integers_and_millionths() {
    for (text, integer, millionths) in [
        ("1", Some(1), Some(1_000_000)),
        ("1.9999999", None, Some(1_999_999)),
        ("-1.9999999", None, Some(-1_999_999)),
        ("0.0000009", None, Some(0)),
        ("-3", None, Some(-3_000_000)),
        ("1e19", Some(10_000_000_000_000_000_000), Some(10_i128.pow(25))),
        ("1e20", None, Some(10_i128.pow(26))),
        ("1e64", None, None),
        ("1e-64", None, Some(0)),
        ("0", Some(0), Some(0)),
    ] {
        assert_eq!(number(text).to_u64(), integer, "{text}");
        assert_eq!(number(text).truncated(6), millionths, "{text}");
    }
    assert_eq!(Decimal::from(u32::MAX).to_string(), "4294967295");
}

/// The digits of a number, the power of ten of the last digit, and the number's text.
fn parts() -> impl Strategy<Value = (BigInt, i32, String)> {
    let coefficient = (any::<bool>(), prop::collection::vec(0..10_u8, 1..=40));
    (coefficient, -64..=25_i32).prop_map(|((negative, digits), power)| {
        let text: String = digits.iter().map(|digit| char::from(b'0' + digit)).collect();
        let text = text.trim_start_matches('0');
        let text = if text.is_empty() { "0" } else { text };
        let sign = if negative { "-" } else { "" };
        let coefficient: BigInt = format!("{sign}{text}").parse().unwrap();
        (coefficient, power, format!("{sign}{text}e{power}"))
    })
}

/// The number in units of 10^-64; all of [`parts`] are multiples of it.
fn exact((coefficient, power, _): &(BigInt, i32, String)) -> BigInt {
    coefficient * BigInt::from(10).pow((power + 64).unsigned_abs())
}

proptest! {
    #[test]
    fn arithmetic_is_that_of_integers(a in parts(), b in parts(), c in parts()) {
        let (x, y, z) = (number(&a.2), number(&b.2), number(&c.2));
        let (a, b, c) = (exact(&a), exact(&b), exact(&c));
        prop_assert_eq!(x.cmp(&y), a.cmp(&b));
        prop_assert_eq!(x == y, a == b);
        prop_assert_eq!(x.is_within(&y, &z.abs()), (&a - &b).abs() <= c.abs());
        prop_assert_eq!(x.is_negative(), a.is_negative());
        let integer = (&a % BigInt::from(10).pow(64_u32)).is_zero();
        prop_assert_eq!(x.is_integer(), integer);
        if !b.is_zero() {
            prop_assert_eq!(x.is_multiple_of(&y), (&a % &b).is_zero());
        }
        let millionths = &a / BigInt::from(10).pow(58_u32);
        if let Some(got) = x.truncated(6) {
            prop_assert_eq!(BigInt::from(got), millionths);
        } else {
            prop_assert!(millionths.abs() >= BigInt::from(10).pow(37_u32));
        }
    }

    #[test]
    fn printed_and_read_again_it_is_the_same(a in parts()) {
        let x = number(&a.2);
        prop_assert_eq!(number(&x.to_string()), x);
    }

    #[test]
    fn close_numbers_differ(a in parts(), bump in 0..40_usize) {
        // Changing one digit gives another number, and the difference is seen at any place.
        let x = number(&a.2);
        let mut y = x;
        y.digits[bump / 2] = (y.digits[bump / 2] + if bump % 2 == 0 { 10 } else { 1 }) % 100;
        if !x.is_zero() && y.digits[0] >= 10 {
            prop_assert_ne!(x, y);
            prop_assert!(!x.is_within(&y, &Decimal::ZERO));
            prop_assert_eq!(x < y, y > x);
        }
    }
}

//! Secrets in every form, in streams cut at every place.

use super::{readings::MAX_BYTE, *};
use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD},
};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use proptest::prelude::*;

fn masker(secrets: &[String]) -> Masker {
    Masker::new(Arc::new(Secrets::new(secrets.iter().map(String::as_str))))
}

/// The result for `text` in pieces that end at `cuts`.
fn in_pieces(secrets: &[String], text: &[u8], cuts: &[usize]) -> Vec<u8> {
    let (mut masker, mut out, mut from) = (masker(secrets), Vec::new(), 0);
    let longest = secrets.iter().map(String::len).max().unwrap_or(0);
    let mut cuts: Vec<_> = cuts.iter().map(|cut| cut % (text.len() + 1)).collect();
    cuts.sort_unstable();
    for to in cuts.into_iter().chain([text.len()]) {
        masker.push(&text[from..to], &mut out);
        let held = masker.held.len();
        assert!(held <= (longest + 1) * MAX_BYTE, "{held} bytes held back");
        from = to;
    }
    masker.flush(&mut out);
    assert_eq!((masker.held.len(), masker.found.len()), (0, 0));
    out
}

/// The masking rule for plain secrets, applied to the whole text.
fn naive(secrets: &[String], text: &[u8]) -> Vec<u8> {
    let mut covered: Vec<(usize, usize)> = Vec::new();
    for start in 0..text.len() {
        let here = secrets.iter().filter(|secret| !secret.is_empty());
        let here = here.filter(|secret| text[start..].starts_with(secret.as_bytes()));
        let Some(length) = here.map(String::len).max() else { continue };
        match covered.last_mut() {
            Some((_, end)) if *end > start => *end = (*end).max(start + length),
            _ => covered.push((start, start + length)),
        }
    }
    let (mut out, mut at) = (Vec::new(), 0);
    for (start, end) in covered {
        out.extend_from_slice(&text[at..start]);
        out.extend_from_slice(MASK);
        at = end;
    }
    out.extend_from_slice(&text[at..]);
    out
}

#[track_caller]
fn check(secrets: &[&str], text: &str, expected: &str) {
    let secrets: Vec<_> = secrets.iter().map(|&secret| secret.to_owned()).collect();
    let every: Vec<_> = (0..=text.len()).collect();
    for cuts in [&[][..], &every] {
        let masked = in_pieces(&secrets, text.as_bytes(), cuts);
        assert_eq!(String::from_utf8(masked).unwrap(), expected, "{secrets:?} {text:?}");
    }
}

#[test]
fn secrets_that_overlap_have_one_mask() {
    check(&[], "nothing", "nothing");
    check(&[""], "nothing", "nothing");
    check(&["key"], "a key, keykey and ke", "a ***, ****** and ke");
    check(&["abc", "abcdef"], "abcdef abcde", "*** ***de");
    check(&["bc", "abcd"], "abcd abce bc", "*** a***e ***");
    check(&["abcx", "bcd"], "abcd abcx", "a*** ***");
    check(&["abc", "bcd"], "abcd abcbcd", "*** ******");
    check(&["aa"], "aaaaa", "***");
    check(&["grö"], "gröber größer", "***ber ***ßer");
    // A mask is not searched again.
    check(&["k*", "**"], "k****", "***");
}

#[test]
fn the_lines_of_a_secret_are_secrets_if_they_are_not_short() {
    let key = "-----BEGIN-----\nMIIabcd\nend\n}\n";
    check(&[key], "MIIabcd, end and }", "***, end and }");
    check(&[key], key, "***");
    check(&[key], key.trim_end(), "***");
    check(&["one\r\nline\r\n"], "line one", "*** one");
    check(&["x\n"], "axb", "a***b");
}

#[test]
fn bytes_that_are_no_text_pass() {
    let secrets = ["secret".to_owned()];
    let text = b"\xff\xfese\xffsecre\x00secret\xc3";
    assert_eq!(in_pieces(&secrets, text, &[3, 5, 17]), b"\xff\xfese\xffsecre\x00***\xc3");
}

#[test]
fn what_is_told_of_secrets_is_how_many_there_are() {
    assert_eq!(format!("{:?}", Secrets::new(["ab", "ac"])), "Secrets(3)");
    let secrets = Arc::new(Secrets::new(["ab"]));
    assert_eq!(secrets.mask("cabs, grün"), "c***s, grün");
    assert!(secrets.are_in("%61b") && !secrets.are_in("ba"));
}

#[test]
fn a_secret_is_masked_in_every_form() {
    let secret = "p/ß \"7+\n🤠?x";
    for form in [
        // encodeURIComponent, urllib's quote with a safe `/`, quote_plus, and every byte escaped.
        "p%2F%C3%9F%20%227%2B%0A%F0%9F%A4%A0%3Fx",
        "p/%c3%9f%20%227%2b%0a%f0%9f%a4%a0%3fx",
        "p%2F%C3%9F+%227%2B%0A%F0%9F%A4%A0%3Fx",
        "%70%2f%c3%9f%20%22%37%2b%0a%f0%9f%a4%a0%3f%78",
        // As written by JavaScript and jq, Python, and PHP.
        "p/ß \\\"7+\\n🤠?x",
        "p/\\u00df \\\"7+\\n\\ud83e\\udd20?x",
        "p\\/\\u00DF \\u00227\\u002b\\n\\uD83E\\uDD20?x",
        "702fc39f2022372b0af09fa4a03f78",
        "702FC39F2022372B0AF09FA4A03F78",
        " 70 2f c3 9f 20 22 37 2b 0a f0 9f a4\n a0 3f 78",
        "cC/DnyAiNysK8J+koD94",
        "cC_DnyAiNysK8J-koD94",
        "cC/DnyAiNy\r\n  sK8J+koD\r\n  94",
    ] {
        let own = form.trim_start();
        let before = &form[..form.len() - own.len()];
        check(&[secret], &format!("<{form}>"), &format!("<{before}***>"));
    }
    // Text that only looks like an escape means itself.
    check(&["%4x\\u12"], "a%4x\\u12 \\u123", "a*** \\u123");
    check(&["p%41"], "p%41 pA", "*** pA");
    check(&["secret"], "%%73ecret \\\\u0073ecret \\ud83esecret", "%*** \\\\u0073ecret \\ud83e***");
}

#[test]
fn short_secrets_are_masked_in_digits_from_four_bytes_on() {
    check(&["abc"], "abc %61bc 616263 YWJj", "*** *** 616263 YWJj");
    check(&["abcd"], "abcd %61bcd 61626364 YWJjZA==", "*** *** *** ***==");
}

#[test]
fn a_line_goes_out_though_a_secret_may_begin_at_its_end() {
    let secrets = ["hunter2".to_owned()];
    let (mut masker, mut out) = (masker(&secrets), Vec::new());
    // `a` begins its base64, `6` its hexadecimal digits.
    for line in ["extra\n", "extra", "\n", "6\n", "the 68\n"] {
        masker.push(line.as_bytes(), &mut out);
        assert!(line.ends_with('a') || out.ends_with(line.as_bytes()), "{line}");
    }
    masker.flush(&mut out);
    assert_eq!(out, b"extra\nextra\n6\nthe 68\n");
}

/// The digits, of `bits` bits each, that contain a bit of the `length` bytes at `from`.
fn digits(bits: usize, from: usize, length: usize) -> std::ops::Range<usize> {
    from * 8 / bits..((from + length) * 8).div_ceil(bits)
}

/// A text in rows of this length.
fn rows(text: &str, columns: usize) -> String {
    let rows = text.as_bytes().chunks(columns).map(|row| std::str::from_utf8(row).unwrap());
    rows.collect::<Vec<_>>().join("\n")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_096))]

    #[test]
    fn pieces_make_no_difference(
        secrets in prop::collection::vec("[xyz]{0,5}|[xy]{6,9}", 0..6),
        text in "([xyz]|\u{e9}){0,60}",
        cuts in prop::collection::vec(any::<usize>(), 0..8),
    ) {
        let masked = in_pieces(&secrets, text.as_bytes(), &cuts);
        prop_assert_eq!(masked, naive(&secrets, text.as_bytes()));
    }

    #[test]
    fn whatever_bytes_come_no_secret_is_left(
        secret in "[abc*]{1,4}",
        text in prop::collection::vec(prop::sample::select(b"abcd*\xff\n".as_slice()), 0..80),
        cuts in prop::collection::vec(any::<usize>(), 0..8),
    ) {
        let masked = in_pieces(std::slice::from_ref(&secret), &text, &cuts);
        prop_assert_eq!(masked, naive(&[secret], &text));
    }

    /// Whatever surrounds a secret in digits, all digits with any of its bits are masked.
    #[test]
    fn no_digits_of_a_secret_are_left(
        secret in "[!-~]{4,40}",
        before in prop::collection::vec(any::<u8>(), 0..12),
        after in prop::collection::vec(any::<u8>(), 0..12),
        cuts in prop::collection::vec(any::<usize>(), 0..8),
    ) {
        let secrets = std::slice::from_ref(&secret);
        let text = [&before[..], secret.as_bytes(), &after].concat();
        let engines = [STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD];
        let mut forms: Vec<_> = engines.map(|engine| (6, engine.encode(&text))).into();
        forms.extend([(4, hex::encode(&text)), (4, hex::encode_upper(&text))]);
        for (bits, form) in forms {
            let own = digits(bits, before.len(), secret.len());
            let expected = [&form[..own.start], "***", &form[own.end..]].concat();
            let masked = in_pieces(secrets, form.as_bytes(), &cuts);
            prop_assert_eq!(String::from_utf8(masked).unwrap(), expected);
        }
    }

    /// It is masked in rows too, except for its first bytes if a row ends after them.
    #[test]
    fn no_rows_of_digits_of_a_secret_are_left(
        secret in "[!-~]{6,80}",
        before in prop::collection::vec(any::<u8>(), 0..12),
        columns in 8..77_usize,
        cuts in prop::collection::vec(any::<usize>(), 0..20),
    ) {
        let secrets = std::slice::from_ref(&secret);
        let text = [&before[..], secret.as_bytes()].concat();
        for (bits, form) in [(6, STANDARD.encode(&text)), (4, hex::encode(&text))] {
            let masked = in_pieces(secrets, rows(&form, columns).as_bytes(), &cuts);
            let masked = String::from_utf8(masked).unwrap().replace('\n', "");
            let own = digits(bits, before.len() + 2, secret.len() - 2);
            prop_assert!(!masked.contains(&form[own]), "{masked}");
            prop_assert!(masked.contains("***"), "{masked}");
        }
    }

    #[test]
    fn no_escapes_of_a_secret_are_left(
        secret in "\\PC{1,20}",
        cuts in prop::collection::vec(any::<usize>(), 0..8),
    ) {
        let secrets = std::slice::from_ref(&secret);
        let json = serde_json::to_string(&secret).unwrap();
        for form in [
            utf8_percent_encode(&secret, NON_ALPHANUMERIC).to_string(),
            secret.bytes().map(|byte| format!("%{byte:02x}")).collect::<Vec<_>>().concat(),
            json[1..json.len() - 1].to_owned(),
            secret.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect::<Vec<_>>().concat(),
        ] {
            // Surrounded by a byte that no secret here contains.
            let masked = in_pieces(secrets, format!("\0{form}\0").as_bytes(), &cuts);
            prop_assert_eq!(String::from_utf8(masked).unwrap(), "\0***\0");
        }
    }
}

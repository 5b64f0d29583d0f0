//! Documents as in RFC 8259 and pointers as in RFC 6901.

use super::*;
use proptest::prelude::*;

fn read(text: &str) -> Json {
    Json::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn documents_have_one_text() {
    for (text, printed) in [
        (" null\r\n", "null"),
        ("[ true , false , [ ] , { } ]", "[true,false,[],{}]"),
        (r#"{"b": 1.0, "a": 10e-1, "é": 0, "B": -0}"#, r#"{"B":0,"a":1,"b":1,"é":0}"#),
        (r#""\u0061\/\"\\\b\f\n\r\t\u0000\u001f""#, r#""a/\"\\\u0008\u000c\n\r\t\u0000\u001f""#),
        (r#""\ud83d\ude00 \u007f \u2028""#, "\"😀 \u{7f} \u{2028}\""),
        (r#"{"": {"a/b": [1e2, 1e-9]}}"#, r#"{"":{"a/b":[100,1e-9]}}"#),
    ] {
        let json = read(text);
        assert_eq!(json.to_string(), printed, "{text}");
        assert_eq!(read(printed), json);
    }
}

#[test]
fn what_rfc_8259_does_not_have_is_refused() {
    for text in [
        "",
        " ",
        "nul",
        "nulll",
        "True",
        "[1,]",
        "[,1]",
        "[1 2]",
        "[1",
        "{",
        "{}x",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{a:1}",
        "{'a':1}",
        "'a'",
        "\"a",
        "\"\n\"",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\ud800\"",
        "\"\\udc00\"",
        "\"\\ud800\\u0061\"",
        "01",
        "1.",
        ".1",
        "+1",
        "-",
        "NaN",
        "Infinity",
        "//a\n1",
        "\u{feff}1",
        "1\u{a0}",
        "[1]]",
        "\u{c}1",
        "\"\\u+123\"",
    ] {
        let got = Json::parse(text.as_bytes());
        assert!(matches!(got, Err(JsonError::Syntax(_))), "{text:?}: {got:?}");
    }
    assert_eq!(Json::parse(b"\"a\xff\""), Err(JsonError::Utf8 { at: 2 }));
    assert_eq!(Json::parse(b"\"\xed\xa0\x80\""), Err(JsonError::Utf8 { at: 1 }));
}

#[test]
fn names_stand_once_however_they_are_written() {
    for text in [r#"{"a":1,"a":1}"#, r#"{"a":1,"\u0061":2}"#, r#"[{"x":{"":0,"":0}}]"#] {
        let got = Json::parse(text.as_bytes());
        assert!(matches!(got, Err(JsonError::Duplicate { .. })), "{text}: {got:?}");
    }
}

#[test]
fn nesting_and_numbers_have_limits() {
    let lists = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let objects = |depth: usize| format!("{}0{}", "{\"a\":".repeat(depth), "}".repeat(depth));
    assert!(
        Json::parse(lists(64).as_bytes()).is_ok() && Json::parse(objects(64).as_bytes()).is_ok()
    );
    assert_eq!(Json::parse(lists(65).as_bytes()), Err(JsonError::Nesting { at: 64 }));
    assert_eq!(Json::parse(objects(65).as_bytes()), Err(JsonError::Nesting { at: 64 * 5 }));
    assert!(matches!(Json::parse("[".repeat(500_000).as_bytes()), Err(JsonError::Nesting { .. })));
    let digits = format!("[0,{}]", "1".repeat(41));
    let problem = DecimalError::Digits(41);
    assert_eq!(Json::parse(digits.as_bytes()), Err(JsonError::Number { at: 3, problem }));
    let problem = DecimalError::Exponent;
    assert_eq!(Json::parse(b"[1e99]"), Err(JsonError::Number { at: 1, problem }));
}

#[test]
fn pointers_are_those_of_rfc_6901() {
    let json = read(
        r#"{"foo": ["bar", "baz"], "": 0, "a/b": 1, "c%d": 2, "e^f": 3, "g|h": 4, "i\\j": 5,
            "k\"l": 6, " ": 7, "m~n": 8, "~1": 9, "00": {"0": [[10]]}}"#,
    );
    for (pointer, expected) in [
        ("/foo", r#"["bar","baz"]"#),
        ("/foo/0", r#""bar""#),
        ("/", "0"),
        ("/a~1b", "1"),
        ("/c%d", "2"),
        ("/e^f", "3"),
        ("/g|h", "4"),
        ("/i\\j", "5"),
        ("/k\"l", "6"),
        ("/ ", "7"),
        ("/m~0n", "8"),
        ("/~01", "9"),
        ("/00/0/0/0", "10"),
    ] {
        let got = json.pointer(pointer).map(Json::to_string);
        assert_eq!(got.as_deref(), Some(expected), "{pointer}");
        assert_eq!(Pointer::parse(pointer).unwrap().to_string(), pointer);
    }
    assert_eq!(json.pointer(""), Some(&json));
    for pointer in
        ["/x", "/foo/2", "/foo/-", "/foo/00", "/foo/+1", "/foo/", "/foo/0/0", "//", "/foo/٠"]
    {
        assert_eq!(json.pointer(pointer), None, "{pointer}");
    }
    assert_eq!(json.pointer(&format!("/foo/{}", u128::MAX)), None);
    assert_eq!(Pointer::parse("foo"), Err(PointerError::Start));
    for pointer in ["/~", "/~2", "/a~", "/~~01", "/~0~"] {
        assert_eq!(Pointer::parse(pointer), Err(PointerError::Escape), "{pointer}");
        assert_eq!(json.pointer(pointer), None);
    }
}

/// Arbitrary documents of moderate size.
pub(in crate::job) fn document() -> impl Strategy<Value = Json> {
    let number = ("-?(0|[1-9][0-9]{0,12})(\\.[0-9]{1,9})?", -30..30_i32);
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::Bool),
        number.prop_map(|(digits, power)| read(&format!("{digits}e{power}"))),
        "[a-c\"\\\\\u{0}-\u{1f}é😀/~]{0,4}".prop_map(Json::Text),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Json::List),
            prop::collection::btree_map("[a-c/~0-1]{0,2}", inner, 0..6).prop_map(Json::Object),
        ]
    })
}

/// The bytes from which random documents are made.
const ALPHABET: &[u8] = b"[]{}\",:\\u0a1e-. ntrf\xc3\xa9";

proptest! {
    #[test]
    fn printed_and_read_again_it_is_the_same(json in document()) {
        prop_assert_eq!(read(&json.to_string()), json);
    }

    #[test]
    fn whatever_is_read_is_read_from_its_own_text(
        bytes in prop::collection::vec(prop::sample::select(ALPHABET), 0..60),
    ) {
        if let Ok(json) = Json::parse(&bytes) {
            prop_assert_eq!(Json::parse(json.to_string().as_bytes()), Ok(json));
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Json::parse(&bytes);
    }
}

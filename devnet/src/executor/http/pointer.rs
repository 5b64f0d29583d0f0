//! JSON pointers (RFC 6901), followed through a document without building it.
//!
//! A tree of JSON values can take thirty times the memory of its text. This skips everything except
//! the requested value, and returns that value's text.

use super::super::ExecutorError;
use cowboy_engine::job::json::{Pointer, position};
use serde::de::{
    Deserialize as _, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::value::RawValue;
use std::{borrow::Cow, fmt};

/// The text of the value in `document` at the pointer. If an object has a name more than once, the
/// last one counts.
pub(super) fn find<'d>(pointer: &Pointer, document: &'d [u8]) -> Result<&'d [u8], ExecutorError> {
    let not_json = |error: serde_json::Error| ExecutorError::NotJson(error.to_string());
    let mut json = serde_json::Deserializer::from_slice(document);
    let found = PointerStep(pointer.tokens()).deserialize(&mut json).map_err(not_json)?;
    json.end().map_err(not_json)?;
    found
        .map(|value| value.get().as_bytes())
        .ok_or_else(|| ExecutorError::NothingThere { pointer: pointer.to_string() })
}

#[derive(Clone, Copy)]
struct PointerStep<'p>(&'p [String]);

impl<'de> DeserializeSeed<'de> for PointerStep<'_> {
    type Value = Option<&'de RawValue>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        if self.0.is_empty() {
            return <&RawValue>::deserialize(json).map(Some);
        }
        json.deserialize_any(self)
    }
}

/// Visits of values that have no values below them.
macro_rules! nothing_below {
    ($($visit:ident: $ty:ty),*) => {
        $(fn $visit<E>(self, _: $ty) -> Result<Self::Value, E> {
            Ok(None)
        })*
    };
}

impl<'de> Visitor<'de> for PointerStep<'_> {
    type Value = Option<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(MemberName(name)) = map.next_key()? {
            if self.0.first().is_some_and(|token| *token == name) {
                found = map.next_value_seed(PointerStep(&self.0[1..]))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let wanted = self.0.first().and_then(|token| position(token));
        let mut found = None;
        for position in 0.. {
            if wanted == Some(position) {
                match list.next_element_seed(PointerStep(&self.0[1..]))? {
                    Some(value) => found = value,
                    None => break,
                }
            } else if list.next_element::<IgnoredAny>()?.is_none() {
                break;
            }
        }
        Ok(found)
    }

    nothing_below! {
        visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }
}

struct MemberName<'de>(Cow<'de, str>);

impl<'de> serde::Deserialize<'de> for MemberName<'de> {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        struct PointerText;

        impl<'de> Visitor<'de> for PointerText {
            type Value = Cow<'de, str>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }

            fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Self::Value, E> {
                Ok(Cow::Borrowed(name))
            }

            fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
                Ok(Cow::Owned(name.to_owned()))
            }
        }

        json.deserialize_str(PointerText).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(pointer: &str, document: &str) -> Result<String, ExecutorError> {
        let pointer = Pointer::parse(pointer).unwrap();
        let found = super::find(&pointer, document.as_bytes())?;
        Ok(String::from_utf8(found.to_vec()).unwrap())
    }

    #[test]
    fn the_examples_of_rfc_6901() {
        let document = r#"{"foo": ["bar", "baz"], "": 0, "a/b": 1, "c%d": 2, "e^f": 3, "g|h": 4,
            "i\\j": 5, "k\"l": 6, " ": 7, "m~n": 8}"#;
        for (pointer, expected) in [
            ("", document),
            ("/foo", r#"["bar", "baz"]"#),
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
        ] {
            assert_eq!(find(pointer, document).as_deref(), Ok(expected), "{pointer}");
        }
    }

    #[test]
    fn values_are_yielded_as_they_were_written() {
        let document = r#" {"n": 1.10, "big": 123456789012345678901234567890, "s": "\u00e9",
            "deep": [{"x": [[], {"y": null}]}]} "#;
        for (pointer, expected) in [
            ("/n", "1.10"),
            ("/big", "123456789012345678901234567890"),
            ("/s", r#""\u00e9""#),
            ("/deep/0/x/1/y", "null"),
            ("", document.trim()),
        ] {
            assert_eq!(find(pointer, document).as_deref(), Ok(expected), "{pointer}");
        }
        assert_eq!(find("/a/b", r#"{"a": {"b": 1}, "a": {"b": 2}}"#).as_deref(), Ok("2"));
    }

    #[test]
    fn what_is_not_there_is_not_found() {
        let document = r#"{"a": [1, 2], "b": "text", "c": 1.5, "d": -1, "e": null, "f": true}"#;
        for pointer in [
            "/x",
            "/a/2",
            "/a/-",
            "/a/00",
            "/a/01",
            "/a/+1",
            "/a/",
            "/a/99999999999999999999999",
            "/b/0",
            "/c/0",
            "/d/0",
            "/e/0",
            "/f/0",
            "/a/0/0",
        ] {
            let nothing = ExecutorError::NothingThere { pointer: pointer.to_owned() };
            assert_eq!(find(pointer, document), Err(nothing), "{pointer}");
        }
    }

    #[test]
    fn what_is_no_json_is_refused() {
        let deep = "[".repeat(100_000);
        for document in ["", "{", "[1,]", r#"{"a": 1} x"#, "nul", r#"{"a": 1, "b": }"#, &deep] {
            for pointer in ["", "/a", "/0/0/0"] {
                let found = find(pointer, document);
                assert!(matches!(found, Err(ExecutorError::NotJson(_))), "{document}: {found:?}");
            }
        }
    }
}

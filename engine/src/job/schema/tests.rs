//! Values that each keyword accepts, schemas that do not compile, and the cost of checks.

use super::*;
use crate::job::json;
use proptest::prelude::*;

fn check(schema: &str, document: &str) -> Result<(), Violation> {
    let schema = Schema::compile(schema).unwrap_or_else(|error| panic!("{schema}: {error}"));
    let document = Json::parse(document.as_bytes()).unwrap_or_else(|e| panic!("{document}: {e}"));
    schema.check(&document, &mut Steps::for_document(1_000))
}

#[test]
fn every_keyword_takes_and_refuses() {
    for (schema, taken, refused) in [
        ("true", &["null", "[1]"][..], &[][..]),
        ("{}", &["null", "[1]"], &[]),
        ("false", &[], &["null", "{}"]),
        (r#"{"type":"integer"}"#, &["1", "-2.0", "1e3"], &["1.5", "\"1\"", "null"]),
        (r#"{"type":"number"}"#, &["1", "1.5"], &["true"]),
        (r#"{"type":["null","string"]}"#, &["null", "\"\""], &["0", "{}"]),
        (r#"{"type":["boolean","array"]}"#, &["true", "[]"], &["{}", "null"]),
        (r#"{"type":"object"}"#, &["{}"], &["[]"]),
        (r#"{"const":{"a":[1]}}"#, &[r#"{"a":[1.0]}"#], &[r#"{"a":[1],"b":0}"#, "1"]),
        (r#"{"enum":[1,"1",null]}"#, &["1.00", "\"1\"", "null"], &["2", "\"2\"", "false"]),
        (r#"{"minimum":0.1}"#, &["0.1", "5", "\"\""], &["0.0999", "-1"]),
        (r#"{"maximum":0.1}"#, &["0.1", "-5", "[]"], &["0.1001", "1e9"]),
        (r#"{"exclusiveMinimum":0.1}"#, &["0.11"], &["0.1", "0"]),
        (r#"{"exclusiveMaximum":0.1}"#, &["0.09"], &["0.1", "1"]),
        (r#"{"multipleOf":0.01}"#, &["1.23", "0", "-7", "null"], &["1.234", "1e-9"]),
        (r#"{"minLength":2}"#, &["\"éé\"", "\"😀a\"", "1"], &["\"é\"", "\"\""]),
        (r#"{"maxLength":1.0}"#, &["\"😀\"", "\"\""], &["\"ab\""]),
        (r#"{"minItems":1,"maxItems":2}"#, &["[1]", "[1,2]", "{}"], &["[]", "[1,2,3]"]),
        (r#"{"minProperties":1,"maxProperties":1}"#, &[r#"{"a":1}"#, "[]"], &["{}"]),
        (r#"{"required":["a","b"]}"#, &[r#"{"a":1,"b":null}"#, "[]"], &[r#"{"a":1}"#, "{}"]),
        (
            r#"{"properties":{"a":{"type":"null"}},"additionalProperties":false}"#,
            &["{}", r#"{"a":null}"#, "[]"],
            &[r#"{"a":1}"#, r#"{"b":null}"#],
        ),
        (
            r#"{"properties":{"a":true},"additionalProperties":{"type":"string"}}"#,
            &[r#"{"a":1,"b":""}"#],
            &[r#"{"a":1,"b":1}"#],
        ),
        (r#"{"items":{"minimum":1}}"#, &["[]", "[1,2]", "0"], &["[1,0]"]),
        (r#"{"uniqueItems":true}"#, &["[1,\"1\",[1],{}]", "[]"], &["[1,2,1.0]", "[{},{}]"]),
        (r#"{"uniqueItems":false}"#, &["[1,1]"], &[]),
        (r#"{"allOf":[{"minimum":1},{"maximum":2}]}"#, &["1", "2"], &["0", "3"]),
        (r#"{"anyOf":[{"maximum":1},{"minimum":2}]}"#, &["1", "2"], &["1.5"]),
        (r#"{"oneOf":[{"minimum":1},{"maximum":2}]}"#, &["0", "3"], &["1", "2"]),
        (r#"{"not":{"type":"string"}}"#, &["1"], &["\"\""]),
        (r#"{"$schema":1,"$comment":[],"title":"t","description":""}"#, &["1"], &[]),
    ] {
        for document in taken {
            assert_eq!(check(schema, document), Ok(()), "{schema} on {document}");
        }
        for document in refused {
            assert!(check(schema, document).is_err(), "{schema} on {document}");
        }
    }
}

#[test]
fn a_violation_names_keyword_and_place() {
    let schema = r#"{"type":"object","required":["n"],"properties":{"a/b":{"items":{"properties":
        {"n":{"minimum":1}},"additionalProperties":false}},"c":{"anyOf":[{"type":"null"}]}}}"#;
    for (document, keyword, at) in [
        ("1", "type", ""),
        ("{}", "required", "/n"),
        (r#"{"n":0,"a/b":[{},{"n":0}]}"#, "minimum", "/a~1b/1/n"),
        (r#"{"n":0,"a/b":[{"x":0}]}"#, "additionalProperties", "/a~1b/0/x"),
        (r#"{"n":0,"c":1}"#, "anyOf", "/c"),
    ] {
        let expected = Violation::Broken { keyword, at: at.into() };
        assert_eq!(check(schema, document), Err(expected), "{document}");
    }
    let never = Violation::Broken { keyword: "false", at: String::new() };
    assert_eq!(check("false", "1"), Err(never));
}

#[test]
fn what_is_outside_the_subset_does_not_compile() {
    for (schema, at) in [
        (r#"{"pattern":"a"}"#, "/pattern"),
        (r##"{"$ref":"#/a"}"##, "/$ref"),
        (r#"{"$defs":{}}"#, "/$defs"),
        (r#"{"properties":{"a/~":{"items":{"format":"date"}}}}"#, "/properties/a~1~0/items/format"),
        (r#"{"allOf":[true,{"if":true}]}"#, "/allOf/1/if"),
        (r#"{"Type":"string"}"#, "/Type"),
        ("1", ""),
        ("[]", ""),
        (r#"{"type":"float"}"#, "/type"),
        (r#"{"type":[]}"#, "/type"),
        (r#"{"type":["null","null"]}"#, "/type"),
        (r#"{"type":1}"#, "/type"),
        (r#"{"enum":[]}"#, "/enum"),
        (r#"{"enum":1}"#, "/enum"),
        (r#"{"minimum":"1"}"#, "/minimum"),
        (r#"{"multipleOf":0}"#, "/multipleOf"),
        (r#"{"multipleOf":-1}"#, "/multipleOf"),
        (r#"{"minLength":-1}"#, "/minLength"),
        (r#"{"maxItems":1.5}"#, "/maxItems"),
        (r#"{"maxProperties":1e60}"#, "/maxProperties"),
        (r#"{"required":["a","a"]}"#, "/required"),
        (r#"{"required":[1]}"#, "/required"),
        (r#"{"properties":[]}"#, "/properties"),
        (r#"{"items":[{}]}"#, "/items"),
        (r#"{"additionalProperties":1}"#, "/additionalProperties"),
        (r#"{"uniqueItems":1}"#, "/uniqueItems"),
        (r#"{"anyOf":[]}"#, "/anyOf"),
        (r#"{"oneOf":{}}"#, "/oneOf"),
        (r#"{"not":null}"#, "/not"),
    ] {
        match Schema::compile(schema) {
            Err(SchemaError::Refused { at: got, .. }) => assert_eq!(got, at, "{schema}"),
            other => panic!("{schema}: {other:?}"),
        }
    }
    let not_json = Schema::compile(r#"{"type":"null","type":"null"}"#);
    assert!(matches!(not_json, Err(SchemaError::NotJson(JsonError::Duplicate { .. }))));
}

#[test]
fn size_depth_and_number_of_schemas_have_limits() {
    let long = format!("{{\"title\":\"{}\"}}", "a".repeat(MAX_BYTES));
    assert!(matches!(Schema::compile(&long), Err(SchemaError::TooLong(_))));
    let nested = |depth: usize| {
        let (open, close) = ("{\"items\":".repeat(depth - 1), "}".repeat(depth - 1));
        Schema::compile(&format!("{open}true{close}"))
    };
    assert!(nested(MAX_DEPTH).is_ok());
    assert!(matches!(nested(MAX_DEPTH + 1), Err(SchemaError::Refused { .. })));
    let wide =
        |nodes: usize| Schema::compile(&format!("{{\"anyOf\":[{}{{}}]}}", "{},".repeat(nodes - 2)));
    assert!(wide(MAX_NODES).is_ok());
    assert!(matches!(wide(MAX_NODES + 1), Err(SchemaError::Refused { .. })));
}

#[test]
fn steps_follow_the_documents_length() {
    let compile = |text: &str| Schema::compile(text).expect("a schema");
    let list = |items: usize| Json::List(vec![Json::Number(Decimal::ZERO); items]);
    let on = |schema: &Schema, document: &Json| {
        schema.check(document, &mut Steps::for_document(document.to_string().len()))
    };
    // Four keywords on each item of the densest list of numbers.
    let usual = compile(
        r#"{"type":"array","items":{"type":"integer","minimum":0,"maximum":9,"not":{"const":1}}}"#,
    );
    assert_eq!(on(&usual, &list(260_000)), Ok(()));
    let branches =
        compile(&format!("{{\"items\":{{\"anyOf\":[{}true]}}}}", "false,".repeat(2_000)));
    assert_eq!(on(&branches, &list(10)), Ok(()));
    assert_eq!(on(&branches, &list(100_000)), Err(Exhausted.into()));
    // Steps inside a negation count too, and running out of them is not a violation.
    let unique = r#"{"not":{"uniqueItems":true}},"#.repeat(500);
    let unique = compile(&format!("{{\"anyOf\":[{unique}true]}}"));
    let distinct = Json::List((0..60_000).map(|n| Json::Number(Decimal::from(n))).collect());
    assert_eq!(on(&unique, &distinct), Err(Exhausted.into()));
}

/// A random schema of a few keywords.
fn schema() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("true".to_owned()),
        Just("false".to_owned()),
        prop::sample::select(
            &["null", "boolean", "number", "integer", "string", "array", "object"][..]
        )
        .prop_map(|name| format!("{{\"type\":\"{name}\"}}")),
        (-3..3_i32).prop_map(|n| format!("{{\"minimum\":{n},\"multipleOf\":0.5}}")),
        (0..3_u32)
            .prop_map(|n| format!("{{\"maxLength\":{n},\"minItems\":{n},\"uniqueItems\":true}}")),
        json::tests::document().prop_map(|json| format!("{{\"enum\":[{json}]}}")),
    ];
    leaf.prop_recursive(3, 20, 4, |inner| {
        let some = prop::collection::vec(inner.clone(), 1..4).prop_map(|all| all.join(","));
        prop_oneof![
            (prop::sample::select(&["allOf", "anyOf", "oneOf"][..]), some)
                .prop_map(|(keyword, all)| format!("{{\"{keyword}\":[{all}]}}")),
            inner.clone().prop_map(|node| format!("{{\"not\":{node}}}")),
            inner.clone().prop_map(|node| format!("{{\"items\":{node}}}")),
            (inner.clone(), inner).prop_map(|(a, b)| {
                let rest = format!("\"additionalProperties\":{b},\"required\":[\"b\"]");
                format!("{{\"properties\":{{\"a\":{a}}},{rest}}}")
            }),
        ]
    })
}

proptest! {
    #[test]
    fn a_check_says_the_same_twice_and_of_equal_documents(
        schema in schema(),
        document in json::tests::document(),
    ) {
        let compiled = Schema::compile(&schema).expect("a schema");
        let again = Schema::compile(&schema).expect("a schema");
        let copy = Json::parse(document.to_string().as_bytes()).expect("its own text");
        let run = |schema: &Schema, document: &Json| {
            let mut steps = Steps::for_document(1_000);
            (schema.check(document, &mut steps), steps.0)
        };
        let first = run(&compiled, &document);
        prop_assert_eq!(&first, &run(&compiled, &document));
        prop_assert_eq!(&first, &run(&again, &copy));
        // Negation inverts the verdict.
        let not = Schema::compile(&format!("{{\"not\":{schema}}}")).expect("a schema");
        prop_assert_eq!(run(&not, &document).0.is_ok(), first.0.is_err());
    }

    #[test]
    fn any_text_compiles_or_is_refused(
        text in "[\\[\\]{}\",:0-1a-z$ ]{0,60}", json in json::tests::document(),
    ) {
        let _ = Schema::compile(&text);
        let _ = Schema::compile(&json.to_string());
    }
}

//! Agreement in each mode, and invalid verifications.

use super::*;
use crate::primitives::codec::{from_slice, to_vec};
use VerificationMode::{Deterministic, MajorityVote, SemanticSimilarity, StructuredMatch};
use proptest::prelude::*;

fn majority(runners: u32) -> Verification {
    Verification { vote_field: Some("/answer".into()), ..Verification::of(MajorityVote, runners) }
}

fn structured(runners: u32, checks: Vec<Check>) -> Verification {
    Verification { checks, ..Verification::of(StructuredMatch, runners) }
}

fn similar(runners: u32, least_permille: u32) -> Verification {
    let similarity = Some(Similarity { model: "m".into(), least_permille });
    Verification { similarity, ..Verification::of(SemanticSimilarity, runners) }
}

fn tolerance(field: &str, within: &str) -> Check {
    Check::Tolerance { field: field.into(), within: within.into() }
}

fn range(field: &str, least: &str, most: &str) -> Check {
    Check::Range { field: field.into(), least: least.into(), most: most.into() }
}

fn embedding(numbers: &str) -> String {
    format!("{{\"text\":\"t\",\"model\":\"m\",\"embedding\":[{numbers}]}}")
}

/// Checks the winner and the indices that agree.
#[track_caller]
fn agree(verification: &Verification, results: &[&str], expected: Option<(usize, &[usize])>) {
    assert_eq!(verification.check(), Ok(()), "{verification:?}");
    let bytes: Vec<&[u8]> = results.iter().map(|result| result.as_bytes()).collect();
    let expected =
        expected.map(|(winner, agreeing)| Agreement { winner, agreeing: agreeing.to_vec() });
    assert_eq!(verification.agree(&bytes), expected, "{results:?}");
}

#[test]
fn one_result_is_taken_as_it_is() {
    for mode in [VerificationMode::None, VerificationMode::EconomicBond] {
        let one = Verification::of(mode, 1);
        agree(&one, &["no JSON, nothing"], Some((0, &[0])));
        agree(&one, &[""], Some((0, &[0])));
        agree(&one, &["a", "beyond M"], Some((0, &[0])));
        agree(&one, &[], None);
        assert_eq!(one.why_not(b"\xff"), None);
    }
}

#[test]
fn deterministic_compares_bytes() {
    let two = Verification::of(Deterministic, 2);
    agree(&two, &["a", "a"], Some((0, &[0, 1])));
    agree(&two, &["1", "1.0"], None);
    agree(&two, &["a"], None);
    let five = Verification::of(Deterministic, 5);
    agree(&five, &["x", "a", "y", "a", "a"], Some((1, &[1, 3, 4])));
    agree(&five, &["a", "a", "b", "b", "c"], None);
    // Three of five agree although two results are missing; two of the two that are there do not.
    agree(&five, &["a", "a", "a"], Some((0, &[0, 1, 2])));
    agree(&five, &["a", "a"], None);
    let all = Verification { threshold: Some(5), ..five };
    agree(&all, &["a", "a", "a", "a"], None);
    agree(&all, &["", "", "", "", ""], Some((0, &[0, 1, 2, 3, 4])));
    // Results beyond M are ignored.
    agree(&two, &["a", "b", "b"], None);
}

#[test]
fn a_majority_votes_with_one_field() {
    let three = majority(3);
    agree(
        &three,
        &[r#"{"answer": 1.0, "took": 5}"#, r#"{"answer":"1"}"#, r#"{"took":7,"answer":10e-1}"#],
        Some((0, &[0, 2])),
    );
    agree(&three, &[r#"{"answer":1}"#, r#"{"answer":2}"#, r#"{"answer":3}"#], None);
    // A result that is not JSON or lacks the field has no vote, even if it equals others.
    agree(&three, &["x", "x", r#"{"answer":1}"#], None);
    agree(&three, &["{}", "{}", "{}"], None);
    agree(&three, &["{}", r#"{"answer":null}"#, r#"{"answer":null}"#], Some((1, &[1, 2])));
    agree(
        &three,
        &[r#"{"answer":{"a":[1,2],"b":0}}"#, "[]", r#"{"answer":{"b":-0,"a":[1.0,2]}}"#],
        Some((0, &[0, 2])),
    );
    agree(&three, &[r#"{"answer":1}"#, r#"{"answer":1}"#], Some((0, &[0, 1])));
    agree(&three, &[r#"{"answer":1}"#], None);
    let strict = Verification { threshold: Some(3), ..three };
    agree(&strict, &[r#"{"answer":1}"#, r#"{"answer":1}"#, r#"{"answer":2}"#], None);
    let whole = Verification { vote_field: Some(String::new()), ..majority(3) };
    agree(&whole, &["[1]", "2", "[1.0]"], Some((0, &[0, 2])));
}

#[test]
fn structured_results_pass_and_match() {
    let schema = r#"{"type":"object","required":["id"],"properties":{"id":{"type":"integer"}}}"#;
    let checks = vec![
        Check::Schema(schema.into()),
        Check::Equal("/id".into()),
        tolerance("/price", "0.5"),
        range("/price", "0", "1000"),
        Check::Majority("/status".into()),
    ];
    let three = structured(3, checks);
    let result = |id: &str, price: &str, status: &str| {
        format!(r#"{{"id":{id},"price":{price},"status":{status}}}"#)
    };
    let a = result("7", "10.0", "\"ok\"");
    let near = result("7.0", "10.5", "\"ok\"");
    let far = result("7", "10.51", "\"ok\"");
    agree(&three, &[&a, &near, &far], Some((1, &[0, 1, 2])));
    agree(&three, &[&a, &far, "{}"], None);
    agree(&three, &[&far, &near], Some((0, &[0, 1])));
    agree(&three, &[&a, &result("8", "10", "\"ok\""), &near], Some((0, &[0, 2])));
    agree(&three, &[&a, &result("7", "10", "\"no\""), &near], Some((0, &[0, 2])));
    for (result, reason) in [
        (result("\"7\"", "10", "1"), "breaks `type` of its schema at `/id`"),
        (result("7", "1000.000001", "1"), "has 1000.000001 at `/price`; expected 0 to 1000"),
        (result("7", "-1e-9", "1"), "has -1e-9 at `/price`; expected 0 to 1000"),
        (result("7", "\"10\"", "1"), "has no number at `/price`"),
        (r#"{"id":7,"price":1}"#.into(), "has nothing at `/status`"),
        (r#"{"price":1}"#.into(), "breaks `required` of its schema at `/id`"),
        ("{".into(), "is not JSON: a string is expected at byte 1"),
    ] {
        agree(&three, &[&result, &result, &result], None);
        assert_eq!(three.why_not(result.as_bytes()).as_deref(), Some(reason));
    }
    assert_eq!(three.why_not(a.as_bytes()), None);
}

#[test]
fn the_largest_group_wins_and_of_two_the_first() {
    let checks = vec![tolerance("/x", "1")];
    let x = |numbers: &[i32]| -> Vec<String> {
        numbers.iter().map(|x| format!("{{\"x\":{x}}}")).collect()
    };
    let check = |runners, numbers: &[i32], expected| {
        let results = x(numbers);
        let results: Vec<&str> = results.iter().map(String::as_str).collect();
        agree(&structured(runners, checks.clone()), &results, expected);
    };
    // 2 is close to both 1 and 3, which are not close to one another.
    check(3, &[1, 3, 2], Some((2, &[0, 1, 2])));
    check(3, &[2, 1, 3], Some((0, &[0, 1, 2])));
    // 2 and 3 have three each; the first is taken.
    check(4, &[1, 3, 2, 4], Some((1, &[1, 2, 3])));
    check(4, &[4, 2, 3, 1], Some((1, &[1, 2, 3])));
    check(5, &[10, 20, 1, 2, 3], Some((3, &[2, 3, 4])));
    check(5, &[10, 20, 1, 2, 4], None);
}

#[test]
fn embeddings_are_close_or_not_and_nothing_is_rounded() {
    let check = |least, results: &[&str], expected| {
        let results: Vec<String> = results.iter().map(|numbers| embedding(numbers)).collect();
        let results: Vec<&str> = results.iter().map(String::as_str).collect();
        agree(&similar(3, least), &results, expected);
    };
    // Same direction, different lengths.
    check(1_000, &["1,2", "0.5,1", "100,200"], Some((0, &[0, 1, 2])));
    check(900, &["1,0", "0,1", "-1,0"], None);
    // The cosine of (3, 4) and (1, 0) is 0.6 exactly.
    check(600, &["3,4", "1,0", "0,-1"], Some((0, &[0, 1])));
    check(601, &["3,4", "1,0", "0,-1"], None);
    check(600, &["3,4.000001", "1,0", "0,-1"], None);
    // Numbers are rounded towards zero, in millionths.
    check(600, &["3,4.0000009", "1,0", "0,-1"], Some((0, &[0, 1])));
    // The square of an obtuse angle's cosine is the same.
    check(600, &["3,4", "-1,0", "0,-1"], None);
    // Vectors of different dimensions are never close, nor are zero vectors to any other.
    check(1, &["1", "1,0", "1,0,0"], None);
    check(1, &["0,0", "0,0", "0.0000001,0"], None);
    // The middle one is close to both others.
    check(800, &["1,0", "3,4", "9,5"], Some((2, &[0, 1, 2])));
    // The largest numbers possible do not overflow.
    let most = vec!["-1000"; MAX_DIMENSIONS].join(",");
    check(1_000, &[&most, &most, &most], Some((0, &[0, 1, 2])));
}

#[test]
fn results_without_an_embedding_are_no_members() {
    let three = similar(3, 500);
    let good = embedding("1,2");
    let many = embedding(&vec!["1"; MAX_DIMENSIONS + 1].join(","));
    for (result, reason) in [
        ("[]", "is not a JSON object"),
        ("\u{0}", "is not JSON: a value is expected at byte 0"),
        (r#"{"embedding":[1,2]}"#, "has no string `model`"),
        (r#"{"model":"other","embedding":[1,2]}"#, "was embedded by `other`, not by `m`"),
        (r#"{"model":"m"}"#, "has no list `embedding`"),
        (&embedding(""), "has an embedding of 0 numbers; expected 1..=4096"),
        (&many, "has an embedding of 4097 numbers; expected 1..=4096"),
        (&embedding("0,0"), "has an embedding whose numbers are all 0"),
        (
            &embedding("1,1000.0000001"),
            "has something other than a number from -1000 to 1000 at `/embedding/1`",
        ),
        (
            &embedding("\"1\""),
            "has something other than a number from -1000 to 1000 at `/embedding/0`",
        ),
    ] {
        agree(&three, &[result, result, result], None);
        agree(&three, &[result, &good, &good], Some((1, &[1, 2])));
        assert_eq!(three.why_not(result.as_bytes()).as_deref(), Some(reason));
    }
    assert_eq!(three.why_not(good.as_bytes()), None);
}

#[test]
fn hostile_results_are_no_members() {
    let deep = format!("{{\"answer\":{}1{}}}", "[".repeat(200_000), "]".repeat(200_000));
    let digits = format!("{{\"answer\":{}}}", "9".repeat(500_000));
    let twice = r#"{"answer":1,"answer":1}"#;
    for result in [deep.as_str(), &digits, twice, r#"{"answer":1e999999999}"#, "\u{feff}{}"] {
        agree(&majority(3), &[result, result, result], None);
        let reason = majority(3).why_not(result.as_bytes()).expect("a reason");
        assert!(reason.chars().count() <= MAX_REASON + 1, "{reason}");
    }
    // Fields that contain one another are each charged.
    let nested = |fields: usize| {
        let fields = (0..fields).map(|depth| Check::Equal("/0".repeat(depth)));
        structured(2, fields.collect())
    };
    let big = format!("{}\"{}\"{}", "[".repeat(40), "a".repeat(400_000), "]".repeat(40));
    agree(&nested(8), &[&big, &big], Some((0, &[0, 1])));
    agree(&nested(9), &[&big, &big], None);
    let reason = nested(9).why_not(big.as_bytes());
    assert_eq!(reason.unwrap(), "takes more steps to check than a result of its length may");
    let name = "a".repeat(400_000);
    let long = format!("{{\"model\":\"{name}\",\"embedding\":[1]}}");
    assert_eq!(similar(3, 1).why_not(long.as_bytes()).unwrap().chars().count(), MAX_REASON + 1);
}

#[test]
fn what_cannot_stand_is_refused_by_its_field() {
    let none = Verification::none();
    let check = |verification: Verification, field: &str, part: &str| {
        let (got, problem) = verification.check().expect_err(field);
        assert_eq!(got.strip_prefix("verification."), Some(field), "{verification:?}");
        assert!(problem.contains(part), "{problem}");
    };
    assert_eq!(none.check(), Ok(()));
    check(
        Verification { runners: 0, ..none.clone() },
        "runners",
        "is 0; mode none takes exactly 1",
    );
    check(Verification { runners: 2, ..none.clone() }, "runners", "exactly 1");
    check(Verification::of(VerificationMode::EconomicBond, 3), "runners", "economic_bond");
    check(majority(2), "runners", "is 2; mode majority_vote takes 3..=64");
    check(structured(1, vec![Check::Equal("/a".into())]), "runners", "takes 2..=64");
    check(Verification::of(Deterministic, 1), "runners", "takes 2..=64");
    check(similar(2, 500), "runners", "takes 3..=64");
    check(Verification::of(Deterministic, 65), "runners", "takes 2..=64");
    assert_eq!(Verification::of(Deterministic, 64).check(), Ok(()));
    for (runners, threshold) in [(4, 2), (4, 5), (5, 2), (2, 0), (3, u32::MAX)] {
        let threshold = Some(threshold);
        let given = Verification { threshold, ..Verification::of(Deterministic, runners) };
        check(given, "threshold", "could both be verified");
    }
    for (runners, threshold) in [(4, 3), (5, 3), (2, 2), (64, 33)] {
        let given = Verification::of(Deterministic, runners);
        assert_eq!(given.needed(), threshold);
        assert_eq!(Verification { threshold: Some(threshold), ..given }.check(), Ok(()));
    }
    check(Verification { threshold: Some(1), ..none.clone() }, "threshold", "mode none has none");
    for other in [none, Verification::of(Deterministic, 3)] {
        let vote_field = Some(String::new());
        check(Verification { vote_field, ..other.clone() }, "vote_field", "is given");
        let checks = vec![Check::Equal("/a".into())];
        check(Verification { checks, ..other.clone() }, "checks", "is given");
        check(
            Verification { similarity: similar(3, 1).similarity, ..other },
            "similarity",
            "is given",
        );
    }
    check(Verification { vote_field: None, ..majority(3) }, "vote_field", "is missing");
    let vote_field = |text: &str| Verification { vote_field: Some(text.into()), ..majority(3) };
    check(vote_field("answer"), "vote_field", "neither empty nor with a /");
    check(vote_field(&"/a".repeat(600)), "vote_field", "1200 bytes; 1024 at most");
    check(Verification { similarity: None, ..similar(3, 1) }, "similarity", "is missing");
    check(similar(3, 0), "similarity", "least_permille 0");
    check(similar(3, 1_001), "similarity", "1..=1000");
    let unnamed = Some(Similarity { model: String::new(), least_permille: 1 });
    check(Verification { similarity: unnamed, ..similar(3, 1) }, "similarity", "0 bytes");
    check(structured(2, Vec::new()), "checks", "has 0");
    check(structured(2, vec![Check::Equal("/a".into()); 33]), "checks", "has 33");
    for (bad, part) in [
        (
            Check::Schema(r#"{"items":{"pattern":"a"}}"#.into()),
            "[1].schema: `pattern` is not a supported keyword, at `/items/pattern`",
        ),
        (Check::Schema("{".into()), "[1].schema: is not JSON: "),
        (Check::Equal("a".into()), "[1].equal: is not a JSON pointer"),
        (Check::Majority("/~".into()), "[1].majority: is not a JSON pointer"),
        (tolerance("/a", "-1"), "[1].tolerance: within is -1"),
        (tolerance("/a", "1,5"), "[1].tolerance: within is not a number"),
        (range("/a", "2", "1"), "[1].range: least is 2 and most 1"),
        (range("/a", "1e99", "1"), "[1].range: least is a number beyond"),
        (range("", "", "1"), "[1].range: least is not a number"),
    ] {
        check(structured(2, vec![Check::Equal("/a".into()), bad]), "checks", part);
    }
}

#[test]
fn what_check_refuses_verifies_nothing_and_breaks_nothing() {
    let results: [&[u8]; 3] = [b"1", b"1", b"1"];
    for mode in VerificationMode::ALL.into_iter().filter(|mode| !mode.takes_one()) {
        for (runners, threshold) in [(0, None), (0, Some(0)), (3, Some(0)), (u32::MAX, None)] {
            let odd = Verification { threshold, ..Verification::of(mode, runners) };
            let _ = odd.agree(&results);
            let _ = odd.why_not(results[0]);
        }
        let bare = Verification::of(mode, 3).agree(&results);
        assert_eq!(bare.is_some(), matches!(mode, Deterministic | StructuredMatch), "{mode}");
    }
}

#[test]
fn every_form_is_read_back() {
    let checks = vec![
        Check::Schema("{}".into()),
        Check::Equal("/a".into()),
        tolerance("/a", "0.1"),
        range("/a", "1", "2"),
        Check::Majority(String::new()),
    ];
    for verification in [
        Verification::none(),
        Verification::of(VerificationMode::EconomicBond, 1),
        Verification { threshold: Some(4), ..majority(5) },
        structured(2, checks),
        Verification::of(Deterministic, 64),
        similar(3, 950),
    ] {
        let bytes = to_vec(&verification);
        assert_eq!(from_slice::<Verification>(&bytes).as_ref(), Ok(&verification));
        for cut in 0..bytes.len() {
            assert!(from_slice::<Verification>(&bytes[..cut]).is_err());
        }
    }
    // The encoding with one runner is the same as before committees existed.
    let none = to_vec(&Verification::none());
    assert_eq!(hex::encode(&none), "a2646d6f6465646e6f6e656772756e6e65727301");
    // An empty list of checks is left out.
    let mut w = Writer::new();
    let empty = Vec::<Check>::new();
    w.record(&[("mode", &Deterministic), ("checks", &empty), ("runners", &3_u32)]);
    assert_eq!(from_slice::<Verification>(&w.finish()), Err(DecodeError::NotDeterministic));
    for mode in VerificationMode::ALL {
        assert_eq!(mode.name().parse(), Ok(mode));
    }
    assert!("None".parse::<VerificationMode>().is_err());
}

/// Verifications of every mode with a committee, with their fields.
fn verifications() -> impl Strategy<Value = Verification> {
    let checks = vec![
        Check::Schema(r#"{"type":"object"}"#.into()),
        Check::Equal("/id".into()),
        tolerance("/x", "1"),
    ];
    (
        prop::sample::select(vec![
            majority(3),
            structured(3, checks),
            structured(3, vec![Check::Majority("/answer".into())]),
            Verification::of(Deterministic, 3),
            similar(3, 900),
        ]),
        3..12_u32,
    )
        .prop_map(|(verification, runners)| Verification { runners, ..verification })
}

/// Results, some of which agree in every mode, and some of which are malformed.
fn results() -> impl Strategy<Value = Vec<String>> {
    let result = (0..3_u8, 0..4_u8, 0..3_u8, 0..12_u8).prop_map(|(answer, x, id, broken)| {
        let json = format!(
            r#"{{"answer":{answer},"x":{x}.0,"id":{id},"model":"m","embedding":[{x},{answer}]}}"#
        );
        match broken {
            0 => json[..json.len() - 1].to_owned(),
            1 => json.replace("\"id\"", "\"no\"").replace("answer", "reply"),
            _ => json,
        }
    });
    prop::collection::vec(result, 0..12)
}

fn bytes(results: &[String]) -> Vec<&[u8]> {
    results.iter().map(|result| result.as_bytes()).collect()
}

proptest! {
    #[test]
    fn any_bytes_agree_or_not(
        verification in verifications(),
        results in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..30), 0..12),
    ) {
        let results: Vec<&[u8]> = results.iter().map(Vec::as_slice).collect();
        if let Some(Agreement { winner, agreeing }) = verification.agree(&results) {
            prop_assert!(agreeing.contains(&winner));
        }
    }

    #[test]
    fn an_agreement_is_a_group_of_members_around_its_winner(
        verification in verifications(), results in results(),
    ) {
        let Some(Agreement { winner, agreeing }) = verification.agree(&bytes(&results)) else {
            return Ok(());
        };
        prop_assert!(agreeing.contains(&winner));
        prop_assert!(agreeing.is_sorted_by(|a, b| a < b));
        prop_assert!(2 * agreeing.len() > verification.runners as usize);
        for at in agreeing {
            prop_assert!(at < results.len() && at < verification.runners as usize);
            prop_assert_eq!(verification.why_not(results[at].as_bytes()), None);
        }
    }

    /// Where agreement is equality, the order of the other results changes nothing.
    #[test]
    fn the_order_of_others_does_not_change_what_is_verified(
        runners in 3..12_u32, results in results(), seed in any::<[u8; 32]>(),
    ) {
        let equal = |field: &str| structured(runners, vec![Check::Equal(field.into())]);
        for verification in [
            majority(runners),
            equal("/answer"),
            structured(runners, vec![Check::Majority("/answer".into())]),
            Verification::of(Deterministic, runners),
        ] {
            let results: Vec<String> = results.iter().take(runners as usize).cloned().collect();
            let first = verification.agree(&bytes(&results));
            let group = first.clone().map(|first| first.agreeing).unwrap_or_default();
            let mut order: Vec<usize> = (0..results.len()).collect();
            order.sort_by_key(|at| seed[at % 32] ^ *at as u8);
            // Members of the group move only to places of members, in their own order.
            let mut members = group.iter();
            for place in &mut order {
                if group.contains(place) {
                    *place = *members.next().expect("as many places as members");
                }
            }
            let moved: Vec<String> = order.iter().map(|at| results[*at].clone()).collect();
            let second = verification.agree(&bytes(&moved));
            let winner = |agreement: &Option<Agreement>, of: &[String]| {
                agreement.as_ref().map(|agreement| of[agreement.winner].clone())
            };
            prop_assert_eq!(winner(&first, &results), winner(&second, &moved));
        }
    }

    /// More than half of M agree, so their common value is the majority's.
    #[test]
    fn a_majority_check_verifies_what_an_equal_check_does(
        runners in 2..12_u32, results in results(),
    ) {
        let of = |check: Check| structured(runners, vec![check]).agree(&bytes(&results));
        prop_assert_eq!(of(Check::Majority("/id".into())), of(Check::Equal("/id".into())));
    }

    /// The order of results does not matter for closeness, except for ties.
    #[test]
    fn the_size_of_the_largest_group_is_the_same_in_any_order(
        verification in verifications(), results in results(),
    ) {
        let results: Vec<String> =
            results.into_iter().take(verification.runners as usize).collect();
        let size = |results: &[String]| {
            verification.agree(&bytes(results)).map(|agreement| agreement.agreeing.len())
        };
        let mut backwards = results.clone();
        backwards.reverse();
        prop_assert_eq!(size(&results), size(&backwards));
    }
}

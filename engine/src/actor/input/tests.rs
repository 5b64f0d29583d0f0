//! Generated inputs: which values come up, that they are the same everywhere, and how they are
//! written.

use super::{
    choices::Choices,
    datum::Datum,
    generate::{InputGenerator, character, place_of},
    *,
};
use crate::primitives::keccak256;
use num_bigint::BigInt;
use std::collections::BTreeSet;

/// Data of this shape from many seeds, at the size of late inputs.
fn drawn(shape: &Shape, vocabulary: &Vocabulary) -> Vec<Datum> {
    let draw = |seed| InputGenerator::new(Choices::new(seed), vocabulary, 100).datum(shape);
    (0..3_000).map(draw).collect()
}

fn one(shape: Shape) -> Parameters {
    Parameters { listed: vec![("x".into(), shape)], vocabulary: Vocabulary::default() }
}

fn everything() -> Shape {
    let key = Shape::Tuple(vec![Shape::Int, Shape::Text]);
    let value = Shape::Union(vec![Shape::None, Shape::Bool, Shape::List(Box::new(Shape::Int))]);
    let dict = Shape::Dict(Box::new((key, value)));
    Shape::TupleOf(Box::new(Shape::List(Box::new(dict))))
}

#[test]
fn limits_of_integers_come_up() {
    let mut vocabulary = Vocabulary::default();
    vocabulary.add_integer(BigInt::from(123_456_789));
    let found: BTreeSet<Datum> = drawn(&Shape::Int, &vocabulary).into_iter().collect();
    let mut wanted: Vec<BigInt> =
        [0, 1, -1, 2, 255, 256, -128, 1 << 31, 1 << 53, i64::MAX, i64::MIN]
            .map(BigInt::from)
            .into();
    wanted.extend([u128::from(u64::MAX), 1 << 64, u128::MAX].map(BigInt::from));
    wanted.extend([123_456_788, 123_456_789, 123_456_790].map(BigInt::from));
    wanted.push((BigInt::from(1) << 256) - 1);
    for integer in wanted {
        assert!(found.contains(&Datum::Int(integer.clone())), "{integer} never comes up");
    }
    let longest = found.iter().map(|datum| match datum {
        Datum::Int(integer) => integer.bits(),
        _ => 0,
    });
    assert_eq!(longest.max(), Some(256));
}

#[test]
fn strings_of_every_sort_come_up() {
    let mut vocabulary = Vocabulary::default();
    vocabulary.add_text("the password");
    let texts = drawn(&Shape::Text, &vocabulary).into_iter().map(|datum| match datum {
        Datum::Text(text) => text,
        other => panic!("{other} is no string"),
    });
    let texts: Vec<String> = texts.collect();
    let some = |what: &str, is: &dyn Fn(&str) -> bool| {
        assert!(texts.iter().any(|text| is(text)), "no string {what}");
    };
    some("is empty", &str::is_empty);
    some("is a constant of the module", &|text| text == "the password");
    some("has a quote", &|text| text.contains('"'));
    some("has a backslash", &|text| text.contains('\\'));
    some("has a control character", &|text| text.contains('\0'));
    some("is beyond the basic plane", &|text| text.chars().any(|c| c > '\u{ffff}'));
    some("is long", &|text| text.chars().count() > 500);
    assert!(texts.iter().all(|text| text.chars().count() <= 1_000));
}

#[test]
fn collections_are_empty_single_and_long_and_repeat_values() {
    let lists = drawn(&Shape::List(Box::new(Shape::Int)), &Vocabulary::default());
    let lists: Vec<Vec<Datum>> = lists
        .into_iter()
        .map(|datum| match datum {
            Datum::List(items) => items,
            other => panic!("{other} is no list"),
        })
        .collect();
    for len in [0, 1, 2, 10] {
        assert!(lists.iter().any(|items| items.len() == len), "no list has {len} elements");
    }
    assert!(lists.iter().any(|items| items.len() > 50));
    let repeats = |items: &&Vec<Datum>| items.windows(2).any(|pair| pair[0] == pair[1]);
    assert!(lists.iter().filter(repeats).count() > 100);
}

#[test]
fn an_input_depends_on_its_seed_alone_and_its_choices_repeat_it() {
    let parameters = one(everything());
    let mut known = BTreeSet::new();
    for seed in 0..500 {
        let (arguments, made) = parameters.drawn(seed, 40);
        assert_eq!(parameters.drawn(seed, 40).0, arguments);
        let (again, made_again) = parameters.replayed(&made.choices);
        assert_eq!((again, made_again.choices), (arguments.clone(), made.choices));
        known.insert(arguments.0);
    }
    assert!(known.len() > 350, "{} of 500 inputs differ", known.len());
}

/// A seed gives this input wherever it runs: a change here changes what `--seed` repeats.
#[test]
fn inputs_are_frozen() {
    let list = Shape::List(Box::new(Shape::Int));
    let shape = Shape::Tuple(vec![Shape::Int, Shape::Text, Shape::Bool, list]);
    let literals = |seed| one(shape.clone()).drawn(seed, 30).0.literals().collect::<String>();
    let inputs: Vec<_> = (1..100).map(literals).collect();
    let hash = keccak256(&[inputs.join("\n").as_bytes()]).to_string();
    assert_eq!(hash, "0x03efecdf28aebff635c36f63cd549f29e1d936c114c134b0c83e31dd45cce523");
}

#[test]
fn any_choices_make_an_input() {
    let parameters = one(everything());
    let simplest: Vec<_> = parameters.replayed(&[]).0.literals().collect();
    assert_eq!(simplest, ["()"]);
    for len in [1, 2, 10, 1_000, 20_000] {
        let (arguments, made) = parameters.replayed(&vec![u128::MAX; len]);
        assert!(made.choices.len() <= 8_192);
        assert_eq!(parameters.replayed(&made.choices).0, arguments);
    }
}

#[test]
fn characters_have_their_places() {
    let all = ('\0'..=char::MAX).map(|c| (c, place_of(c)));
    let mut places = vec![false; 0x11_0000 - 0x800];
    for (c, place) in all {
        assert_eq!(character(place), c);
        places[place as usize] = true;
    }
    assert!(places.iter().all(|is_taken| *is_taken));
    assert_eq!(character(0), 'a');
}

#[test]
fn values_are_written_as_expressions() {
    let text = |text: &str| Datum::Text(text.to_owned());
    let check = |datum: Datum, expected: &str| assert_eq!(datum.to_string(), expected);
    check(text("a\"'\\\n\0é漢"), r#""a\"'\\\n\x00é漢""#);
    check(text("\u{301}\u{202e}\u{feff}😀"), r#""\u0301\u202e\ufeff\U0001f600""#);
    check(Datum::Tuple(vec![Datum::None]), "(None,)");
    check(Datum::Tuple(Vec::new()), "()");
    check(Datum::List(vec![Datum::Bool(true), Datum::Int(BigInt::from(-5))]), "[True, -5]");
    check(
        Datum::Dict(vec![(text("k"), Datum::None), (text(""), Datum::None)]),
        "{\"k\": None, \"\": None}",
    );
}

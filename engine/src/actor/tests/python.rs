//! Programs whose results must be Python's, and models of features with many forms.
//!
//! `python.txt` has the programs: a function's body, `=>` and the result in Python 3, as JSON.

use super::run;
use proptest::prelude::*;

fn returned(body: &str) -> String {
    let body = body.lines().fold(String::new(), |all, line| all + "    " + line + "\n");
    run(&format!("def f(ctx, payload):\n{body}"))
}

#[test]
fn programs_return_what_python_returns() {
    let programs: Vec<_> = include_str!("python.txt").split("\n---\n").collect();
    assert!(programs.len() >= 60, "{}", programs.len());
    let mut others = Vec::new();
    for program in programs {
        let (body, expected) = program.split_once("\n=> ").expect("it says what it returns");
        let got = returned(body);
        if got != expected.trim_end() {
            others.push(format!("{body}\n=> {got}\nnot {expected}"));
        }
    }
    assert!(others.is_empty(), "{}", others.join("\n---\n"));
}

/// A list's slice, index by index, as the reference describes it.
fn sliced(items: &[i64], start: Option<i64>, stop: Option<i64>, step: i64) -> Vec<i64> {
    let len = items.len() as i64;
    let from_end = |index: i64| if index < 0 { index + len } else { index };
    let (low, high) = if step > 0 { (0, len) } else { (-1, len - 1) };
    let first = start.map_or(if step > 0 { low } else { high }, |at| from_end(at).clamp(low, high));
    let last = stop.map_or(if step > 0 { high } else { low }, |at| from_end(at).clamp(low, high));
    let mut taken = Vec::new();
    let mut at = first;
    while if step > 0 { at < last } else { at > last } {
        taken.push(items[at as usize]);
        at += step;
    }
    taken
}

/// An integer padded to a width, assembled piece by piece.
fn padded(value: i64, fill: char, align: char, sign: char, width: usize) -> String {
    let digits = value.unsigned_abs().to_string();
    let sign = match (value < 0, sign) {
        (true, _) => "-",
        (false, '+') => "+",
        (false, ' ') => " ",
        _ => "",
    };
    let missing = width.saturating_sub(sign.len() + digits.len());
    let fills = |count: usize| fill.to_string().repeat(count);
    match align {
        '<' => format!("{sign}{digits}{}", fills(missing)),
        '^' => format!("{}{sign}{digits}{}", fills(missing / 2), fills(missing - missing / 2)),
        '=' => format!("{sign}{}{digits}", fills(missing)),
        _ => format!("{}{sign}{digits}", fills(missing)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn slices_are_those_of_the_model(
        len in 0i64..7,
        start in prop::option::of(-9i64..9),
        stop in prop::option::of(-9i64..9),
        step in prop_oneof![-4i64..0, 1i64..5],
    ) {
        let items: Vec<i64> = (0..len).collect();
        let expected = sliced(&items, start, stop, step);
        let part = |part: Option<i64>| part.map_or_else(String::new, |at| at.to_string());
        let slice = format!("[{}:{}:{step}]", part(start), part(stop));
        let letters: Vec<char> = "a\u{e9}c\u{20ac}efg".chars().collect();
        let text: String = expected.iter().map(|item| letters[*item as usize]).collect();
        let whole: String = letters.iter().take(len as usize).collect();
        let body = format!(
            "return [{items:?}{slice}, list(range({len}){slice}), list(tuple({items:?}){slice}), '{whole}'{slice}]"
        );
        let list = format!("{expected:?}").replace(' ', "");
        prop_assert_eq!(returned(&body), format!("[{list},{list},{list},\"{text}\"]"), "{}", body);
    }

    #[test]
    fn widths_are_those_of_the_model(
        value in prop_oneof![-1_000_000i64..1_000_000, any::<i64>()],
        fill in prop::sample::select(vec![' ', '0', '*', '\u{e9}', '<']),
        align in prop::sample::select(vec!['<', '>', '^', '=']),
        sign in prop::sample::select(vec!['-', '+', ' ']),
        width in 0usize..30,
    ) {
        let width_text = if width == 0 { String::new() } else { width.to_string() };
        let specification = format!("{fill}{align}{sign}{width_text}d");
        let expected = padded(value, fill, align, sign, width);
        let body = format!(
            "x = {value}\nreturn [f'{{x:{specification}}}', '{{:{specification}}}'.format(x), format(x, '{specification}')]"
        );
        prop_assert_eq!(
            returned(&body),
            format!("[\"{expected}\",\"{expected}\",\"{expected}\"]"),
            "{}", body
        );
    }

    #[test]
    fn groups_are_those_of_the_model(
        value in any::<i64>(),
        kind in prop::sample::select(vec!['d', 'x', 'o', 'b']),
    ) {
        let (size, digits) = match kind {
            'd' => (3, value.unsigned_abs().to_string()),
            'x' => (4, format!("{:x}", value.unsigned_abs())),
            'o' => (4, format!("{:o}", value.unsigned_abs())),
            _ => (4, format!("{:b}", value.unsigned_abs())),
        };
        let mut grouped = String::new();
        for (index, digit) in digits.chars().enumerate() {
            if index > 0 && (digits.len() - index) % size == 0 {
                grouped.push('_');
            }
            grouped.push(digit);
        }
        let sign = if value < 0 { "-" } else { "" };
        let body = format!("return f'{{{value}:_{kind}}}'");
        prop_assert_eq!(returned(&body), format!("\"{sign}{grouped}\""), "{}", body);
    }
}

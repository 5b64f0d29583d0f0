//! Compares a command's output with a page: words exactly, and numbers, ids and times by their
//! kind, because each chain has others.

use snapbox::{Assert, Data};

/// Compares printed output with a page's. In the page, a line `...` matches any lines and `[..]`
/// matches anything within a line.
pub fn compare(printed: &str, shown: &str, exact: bool) -> Result<(), String> {
    let form = |text: &str| -> String {
        let lines = text.trim_end().lines();
        lines
            .map(|line| if exact { line.trim_end().to_owned() } else { mask(line) } + "\n")
            .collect()
    };
    Assert::new()
        .normalize_paths(false)
        .try_eq(Some(&"printed"), Data::text(form(printed)), Data::text(form(shown)))
        .map_err(|error| error.to_string())
}

/// A line with `0x#` for hexadecimal, `# s` for durations and `#` for numbers, without the widths
/// of its columns.
pub fn mask(line: &str) -> String {
    let mut masked = String::new();
    let mut rest = line;
    while let Some(next) = rest.chars().next() {
        if let Some(digits) = rest.strip_prefix("0x") {
            let behind = digits.trim_start_matches(|c: char| c.is_ascii_hexdigit() || c == '…');
            if behind.len() < digits.len() {
                masked += "0x#";
                rest = behind;
                continue;
            }
        }
        if let Some(behind) = id(&masked, rest) {
            masked.push('#');
            rest = behind;
            continue;
        }
        if next.is_ascii_digit() {
            rest = number(rest);
            masked.push('#');
            if let Some(behind) = unit(rest) {
                masked += " s";
                rest = behind;
            }
            continue;
        }
        if !(ruled(next) && masked.ends_with(next)) {
            masked.push(next);
        }
        rest = &rest[next.len_utf8()..];
    }
    let mut line = masked.split_whitespace().collect::<Vec<_>>().join(" ");
    while line.contains("# s # s") {
        line = line.replace("# s # s", "# s");
    }
    line
}

/// The rest after the digits of an id such as `run_5b9f79bc2ad0948b`.
fn id<'a>(before: &str, text: &'a str) -> Option<&'a str> {
    let behind = text.trim_start_matches(|c: char| c.is_ascii_hexdigit());
    (before.ends_with('_') && text.len() - behind.len() == 16).then_some(behind)
}

/// The rest after a number.
fn number(text: &str) -> &str {
    let mut rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    while let Some(digits) = rest.strip_prefix(['.', ',']).filter(|d| d.starts_with(is_digit)) {
        rest = digits.trim_start_matches(is_digit);
    }
    rest
}

fn is_digit(c: char) -> bool {
    c.is_ascii_digit()
}

/// The rest after a unit of time.
fn unit(text: &str) -> Option<&str> {
    let text = text.strip_prefix(' ').unwrap_or(text);
    ["ms", "min", "µs", "s", "m", "h"].into_iter().find_map(|unit| {
        let behind = text.strip_prefix(unit)?;
        (!behind.starts_with(|c: char| c.is_alphanumeric() || c == '_')).then_some(behind)
    })
}

/// Whether a character draws rules and bars, whose length depends on numbers.
fn ruled(sign: char) -> bool {
    "─━═█▒·-".contains(sign)
}

#[test]
fn what_changes_from_run_to_run_is_masked() {
    for (line, masked) in [
        ("latency       251 ms", "latency # s"),
        ("latency       1.2 s", "latency # s"),
        ("ready in 1 min 3 s", "ready in # s"),
        ("job  0x7c51343061c7 of 0x7c51…9daf", "job 0x# of 0x#"),
        ("at 2026-11-22T15:45:39.712Z", "at #-#-#T#:#:#Z"),
        ("at 2026-11-22T15:45:39Z", "at #-#-#T#:#:#Z"),
        ("runner-3 has 1,000.5 CBY", "runner-# has # CBY"),
        ("0 of 12 settled", "# of # settled"),
        ("http://127.0.0.1:8000/a", "http://#:#/a"),
        ("job_730efadaaf5d9053 of run_a31d65682f854717/unit", "job_# of run_#/unit"),
        ("------  ━━━━", "- ━"),
    ] {
        assert_eq!(mask(line), masked, "{line}");
    }
}

#[test]
fn words_count_and_wildcards_match_what_they_say() {
    for (printed, shown, exact, equal) in [
        ("head 12\n", "head 7\n", false, true),
        ("head 12\n", "head 7\n", true, false),
        ("head 12\nsaid\n", "head 7\n...\n", false, true),
        ("head 12\n", "tail 7\n", false, false),
        ("picked runner-1 of 4\n", "picked [..] of 4\n", true, true),
        ("a\nb\n", "a\n", false, false),
        ("", "", true, true),
    ] {
        assert_eq!(compare(printed, shown, exact).is_ok(), equal, "{printed:?} {shown:?}");
    }
}

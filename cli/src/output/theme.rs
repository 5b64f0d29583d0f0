//! The format of quantities for people, and the colours of text.

use anstyle::{AnsiColor, Style};
use cowboy_devnet::types::RunnerProgress;
use cowboy_engine::primitives::{CBY, InCby, Wei};
use cowboy_host::duration::Plain;
use jiff::Timestamp;
use serde_json::Value;
use std::time::Duration;

pub const ERROR: Style = AnsiColor::Red.on_default().bold();
pub const WARNING: Style = AnsiColor::Yellow.on_default().bold();
pub const HEADING: Style = AnsiColor::Cyan.on_default().bold();
pub const DONE: Style = AnsiColor::Green.on_default();
pub const FAILED: Style = AnsiColor::Red.on_default();
pub const UNDONE: Style = AnsiColor::Yellow.on_default();
pub const BUSY: Style = AnsiColor::Cyan.on_default();
pub const AWAITED: Style = AnsiColor::Blue.on_default();
/// Text that only guides the eye, or something that has not begun.
pub const FAINT: Style = Style::new().dimmed();

/// Bars of one character, from none to full.
pub const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// An amount in CBY: `1,000,000 CBY`, `0.026 CBY`, without trailing zeros.
pub fn amount(wei: Wei) -> String {
    let (whole, text) = ((wei.get() / CBY).to_string(), InCby(wei).to_string());
    grouped(wei.get() / CBY) + &text[whole.len()..]
}

/// A small amount in wei, such as a price per cycle: `1,000 wei`.
pub fn wei(amount: Wei) -> String {
    grouped(amount.get()) + " wei"
}

/// A number with thousands separators: `1,234,567`.
pub fn grouped(number: u128) -> String {
    let digits = number.to_string();
    let first = digits.len() % 3;
    let mut text = digits[..first].to_owned();
    for (index, digit) in digits[first..].char_indices() {
        if index % 3 == 0 && !text.is_empty() {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A duration of milliseconds: `250 ms`, `1.5 s`, `2 m 5 s`, `3 h 20 m`.
pub fn millis(ms: u64) -> String {
    Plain(Duration::from_millis(ms)).to_string()
}

/// A duration in whole milliseconds.
pub fn to_ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A size in bytes: `512 B`, `3.4 MB`, `2 GB`.
pub fn bytes(bytes: u64) -> String {
    let units = [("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000)];
    let Some((unit, size)) = units.into_iter().find(|(_, size)| bytes >= *size) else {
        return format!("{bytes} B");
    };
    match bytes / (size / 10) % 10 {
        0 => format!("{} {unit}", bytes / size),
        tenth => format!("{}.{tenth} {unit}", bytes / size),
    }
}

/// A part of a whole in percent, to one decimal, rounded down: `12.5 %`.
pub fn share(part: u64, whole: u64) -> String {
    let per_mille = u128::from(part) * 1_000 / u128::from(whole.max(1));
    format!("{}.{} %", per_mille / 10, per_mille % 10)
}

/// What the end of a job calls, from the job's parameters.
pub fn callback(spec: &Value) -> Option<String> {
    let callback = &spec["callback"];
    let (actor, handler) = (callback["actor"].as_str()?, callback["handler"].as_str()?);
    let resumed = callback["resume"]["cid"].as_str();
    let resumed = resumed.map(|cid| format!(", continuation {cid}")).unwrap_or_default();
    Some(format!("{handler} of {actor}{resumed}"))
}

/// The progress that a runner reports.
pub fn progress(progress: &RunnerProgress) -> String {
    let RunnerProgress { runner, percent, detail, .. } = progress;
    match detail {
        Some(detail) => format!("{runner} {percent} %, {detail}"),
        None => format!("{runner} {percent} %"),
    }
}

/// A moment, to the second: `2026-11-20T09:53:00Z`.
pub fn time(at: Timestamp) -> String {
    format!("{at:.0}")
}

pub fn seconds_since(then: Timestamp, now: Timestamp) -> String {
    let elapsed = Duration::try_from(now.duration_since(then)).unwrap_or_default();
    millis(to_ms(elapsed))
}

/// A name with its address, or the address alone.
pub fn named(name: Option<&str>, address: &impl ToString) -> String {
    match name {
        Some(name) => format!("{name} ({})", address.to_string()),
        None => address.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_read_well() {
        let check = |wei: u128, text: &str| assert_eq!(amount(Wei::new(wei)), text);
        check(0, "0 CBY");
        check(1, "0.000000001 CBY");
        check(26_000_000, "0.026 CBY");
        check(CBY, "1 CBY");
        check(999 * CBY, "999 CBY");
        check(1_000 * CBY, "1,000 CBY");
        check(1_234_567 * CBY + CBY / 2, "1,234,567.5 CBY");
        check(u128::MAX, "340,282,366,920,938,463,463,374,607,431.768211455 CBY");
    }

    #[test]
    fn moments_are_to_the_second() {
        let at = |text: &str| time(text.parse().unwrap());
        assert_eq!(at("2026-11-23T03:20:19.932160341Z"), "2026-11-23T03:20:19Z");
        assert_eq!(at("2026-11-23T03:20:19Z"), "2026-11-23T03:20:19Z");
    }

    #[test]
    fn sizes_read_well() {
        let check = |size, text: &str| assert_eq!(bytes(size), text);
        check(0, "0 B");
        check(999, "999 B");
        check(1_000, "1 kB");
        check(3_449_999, "3.4 MB");
        check(2_000_000_000, "2 GB");
        check(u64::MAX, "18446744073.7 GB");
    }

    #[test]
    fn durations_read_well() {
        let check = |ms, text: &str| assert_eq!(millis(ms), text);
        check(0, "0 ms");
        check(999, "999 ms");
        check(1_000, "1 s");
        check(1_549, "1.5 s");
        check(59_999, "59.9 s");
        check(125_000, "2 m 5 s");
        check(12_000_000, "3 h 20 m");
    }
}

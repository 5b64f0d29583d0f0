//! Durations in human-readable form, for errors and tables.
//!
//! jiff prints every unit down to nanoseconds; a table wants the two largest.

use std::{fmt, time::Duration};

/// A duration that prints as `250 ms`, `1.5 s`, `2 m 5 s`, `3 h 20 m`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plain(pub Duration);

impl fmt::Display for Plain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = self.0.as_millis();
        match ms {
            0 if !self.0.is_zero() => write!(f, "{} µs", self.0.as_micros()),
            0..100 => match self.0.as_micros() / 100 % 10 {
                0 => write!(f, "{ms} ms"),
                tenth => write!(f, "{ms}.{tenth} ms"),
            },
            100..1_000 => write!(f, "{ms} ms"),
            1_000..60_000 => match ms / 100 % 10 {
                0 => write!(f, "{} s", ms / 1_000),
                tenth => write!(f, "{}.{tenth} s", ms / 1_000),
            },
            60_000..3_600_000 => match ms / 1_000 % 60 {
                0 => write!(f, "{} m", ms / 60_000),
                seconds => write!(f, "{} m {seconds} s", ms / 60_000),
            },
            _ => match ms / 60_000 % 60 {
                0 => write!(f, "{} h", ms / 3_600_000),
                minutes => write!(f, "{} h {minutes} m", ms / 3_600_000),
            },
        }
    }
}

/// Like [`Plain`] if that is exact, otherwise seconds with the necessary digits: `60.000001 s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exact(pub Duration);

impl fmt::Display for Exact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, nanos) = (self.0.as_secs(), self.0.subsec_nanos());
        let digits = format!("{nanos:09}");
        match (seconds, nanos, digits.trim_end_matches('0')) {
            (0, _, _) if nanos % 1_000_000 == 0 => Plain(self.0).fmt(f),
            (0..3_600, 0, _) => Plain(self.0).fmt(f),
            (_, 0, _) => write!(f, "{seconds} s"),
            (_, _, digits) => write!(f, "{seconds}.{digits} s"),
        }
    }
}

/// Why a text is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a duration: expected a number and ms, s, m or h, as `250ms` or `2m`, from 0ms to \
     10000h"
)]
pub struct DurationError(String);

/// A duration such as `250ms`, `1s`, `1.5s`, `2m` or `1h`; never more than 10,000 hours.
///
/// jiff's parser also takes signs, several units, names of units and ISO 8601; a topology has one
/// form.
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    let refused = || DurationError(text.chars().take(40).collect());
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(refused)?;
    let (number, unit) = text.split_at(unit_at);
    let unit_ms: u64 = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(refused()),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |t: &str| !t.is_empty() && t.len() <= 9 && t.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return Err(refused());
    }
    let parse = |t: &str| t.parse::<u64>().expect("at most nine digits");
    let scale = 10u64.pow(fraction.len() as u32);
    let nanos = u128::from(parse(whole)) * u128::from(unit_ms) * 1_000_000
        + u128::from(parse(fraction)) * u128::from(unit_ms) * 1_000_000 / u128::from(scale);
    let limit = Duration::from_secs(10_000 * 3_600);
    u64::try_from(nanos)
        .map(Duration::from_nanos)
        .ok()
        .filter(|duration| *duration <= limit)
        .ok_or_else(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_well() {
        let check = |micros, text: &str| {
            assert_eq!(Plain(Duration::from_micros(micros)).to_string(), text);
        };
        check(0, "0 ms");
        check(7, "7 µs");
        check(2_500, "2.5 ms");
        check(50_000, "50 ms");
        check(999_999, "999 ms");
        check(1_000_000, "1 s");
        check(1_549_000, "1.5 s");
        check(59_999_000, "59.9 s");
        check(60_000_000, "1 m");
        check(125_000_000, "2 m 5 s");
        check(7_200_000_000, "2 h");
        check(12_000_000_000, "3 h 20 m");
    }

    #[test]
    fn exact_durations_lose_nothing() {
        let check = |micros, text: &str| {
            assert_eq!(Exact(Duration::from_micros(micros)).to_string(), text);
        };
        check(0, "0 ms");
        check(7, "0.000007 s");
        check(250_000, "250 ms");
        check(1_500_000, "1.5 s");
        check(60_000_000, "1 m");
        check(60_000_001, "60.000001 s");
        check(70_000_000, "1 m 10 s");
        check(3_605_000_000, "3605 s");
    }

    #[test]
    fn durations_parse() {
        let check = |text: &str, ms: Option<u64>| {
            assert_eq!(parse_duration(text).ok(), ms.map(Duration::from_millis), "{text}");
        };
        check("250ms", Some(250));
        check("0ms", Some(0));
        check("1s", Some(1_000));
        check("1.5s", Some(1_500));
        check("2m", Some(120_000));
        check("1h", Some(3_600_000));
        for bad in
            ["", "s", "1", "1 s", "-1s", "+1s", "1.s", ".5s", "1e3s", "1S", "1d", "99999999h", "٣s"]
        {
            check(bad, None);
        }
    }
}

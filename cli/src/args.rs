//! Arguments of the command line: heights, durations, pairs, files.

use crate::error::{CliError, Exit};
use cowboy_devnet::{
    client::{BlockAt, Client},
    types::{Bytes, Text, TimerStatus},
};
use cowboy_host::{
    duration::parse_duration,
    http::tls::{Acceptor, Material},
};
use serde::{Serialize, de::DeserializeOwned};
use std::{
    fs,
    io::{self, Read as _},
    path::Path,
    str::FromStr,
    time::Duration,
};

/// Maximum length of a file with certificates, a key or a token, in bytes.
const PEM_LIMIT: u64 = 1 << 20;

/// A height as typed: `120`, `+10` (from now) or `latest`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeightArg {
    At(u64),
    /// This many blocks after the head.
    Ahead(u64),
    Latest,
}

impl FromStr for HeightArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused = || format!("`{text}` is not a height: expected 120, +10 or latest");
        let number = |digits: &str| {
            let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
            plain.then(|| digits.parse().ok()).flatten().ok_or_else(refused)
        };
        match text.strip_prefix('+') {
            Some(ahead) => number(ahead).map(Self::Ahead),
            None if text == "latest" => Ok(Self::Latest),
            None => number(text).map(Self::At),
        }
    }
}

impl HeightArg {
    /// The selected block; requests the head if that is needed.
    pub async fn resolve(self, client: &Client) -> Result<BlockAt, CliError> {
        Ok(match self {
            Self::At(height) => BlockAt::Height(height),
            Self::Latest => BlockAt::Latest,
            Self::Ahead(blocks) => {
                BlockAt::Height(client.head().await?.height.saturating_add(blocks))
            }
        })
    }

    /// The selected height; that of the head for `latest`.
    pub async fn height(self, client: &Client) -> Result<u64, CliError> {
        match self.resolve(client).await? {
            BlockAt::Height(height) => Ok(height),
            BlockAt::Latest => Ok(client.head().await?.height),
        }
    }

    /// The selected height; `None` for the newest state: without a height, or for `latest`.
    pub async fn past(at: Option<Self>, client: &Client) -> Result<Option<u64>, CliError> {
        match at.unwrap_or(Self::Latest).resolve(client).await? {
            BlockAt::Height(height) => Ok(Some(height)),
            BlockAt::Latest => Ok(None),
        }
    }
}

/// A duration as typed: `250ms`, `2m`.
pub fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|error| error.to_string())
}

/// A server's TLS: its certificate and key, and roots for clients' certificates if it wants some.
pub fn tls(
    certificate: &Path,
    key: &Path,
    client_roots: Option<&Path>,
) -> Result<Acceptor, CliError> {
    let material = Material {
        certificates: pem(certificate)?,
        key: pem(key)?,
        client_roots: client_roots.map(pem).transpose()?,
    };
    let refused = |error| CliError::new(Exit::Usage, format!("TLS: {error}"));
    Acceptor::new(&material).map_err(refused)
}

/// The contents of a file with certificates or a key.
pub fn pem(file: &Path) -> Result<Vec<u8>, CliError> {
    input(file, PEM_LIMIT)
}

/// The token in a file, without the space around it.
pub fn token(file: &Path) -> Result<String, CliError> {
    let refused = |what: &str| {
        CliError::new(Exit::Usage, format!("{}: {what}", file.display()))
            .hint("the file must contain only the token, on one line")
    };
    let text = String::from_utf8(input(file, PEM_LIMIT)?);
    let text = text.map_err(|_| refused("it is not text"))?;
    let token = text.trim();
    match !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => Ok(token.to_owned()),
        false => Err(refused("it contains no token")),
    }
}

/// The contents of a file, at most `limit` bytes; - is standard input.
pub fn input(file: &Path, limit: u64) -> Result<Vec<u8>, CliError> {
    let io = |error: io::Error| CliError::file(Exit::Failed, file, &error);
    let mut input = Vec::new();
    if file.as_os_str() == "-" {
        io::stdin().take(limit + 1).read_to_end(&mut input).map_err(io)?;
    } else {
        let file = fs::File::open(file).map_err(io)?;
        file.take(limit + 1).read_to_end(&mut input).map_err(io)?;
    }
    if input.len() as u64 > limit {
        let what = format!("{}: longer than {limit} bytes", file.display());
        return Err(CliError::new(Exit::Usage, what));
    }
    Ok(input)
}

pub fn shown(file: &Path) -> String {
    match file.as_os_str() == "-" {
        true => "standard input".to_owned(),
        false => file.display().to_string(),
    }
}

pub fn text(file: &Path, bytes: Vec<u8>) -> Result<String, CliError> {
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let what = format!("{}: not text: byte {at} is not UTF-8", shown(file));
        CliError::new(Exit::Usage, what).hint("save it as UTF-8")
    })
}

/// A handler's payload: text as it is, bytes as 0x-hex, or a file's contents with @.
pub fn payload(text: &str, limit: usize) -> Result<Vec<u8>, CliError> {
    if let Some(file) = text.strip_prefix('@') {
        return input(Path::new(file), limit as u64);
    }
    if text.starts_with("0x") {
        return text.parse::<Text<Bytes>>().map(|bytes| bytes.0.0).map_err(|error| {
            CliError::new(Exit::Usage, format!("the payload: {error}"))
                .hint("put text that begins with 0x into a file: @FILE, or @- for standard input")
        });
    }
    Ok(text.as_bytes().to_vec())
}

/// The value with this name, ignoring case.
pub fn one_of<T: Copy + ToString>(what: &str, text: &str, all: &[T]) -> Result<T, String> {
    let found = all.iter().find(|one| one.to_string().eq_ignore_ascii_case(text));
    found.copied().ok_or_else(|| {
        let names: Vec<_> = all.iter().map(T::to_string).collect();
        let expected = match names.split_last() {
            Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
            _ => names.concat(),
        };
        format!("`{text}` is not a valid {what}: expected {expected}")
    })
}

/// A parser of these values' names, ignoring case.
pub fn named<T: Copy + ToString + Sync + 'static>(
    what: &'static str,
    all: &'static [T],
) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| one_of(what, text, all)
}

pub fn timer_status(text: &str) -> Result<TimerStatus, String> {
    one_of("status", text, TimerStatus::ALL)
}

/// Parses `KEY=VALUE`.
pub fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(format!("`{text}` is not a variable: expected KEY=VALUE")),
    }
}

/// Parses `Name: value`.
pub fn header(text: &str) -> Result<(String, String), String> {
    match text.split_once(':') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err(format!("`{text}` is not a header: expected `Name: value`")),
    }
}

/// Reads a value as a topology file has it.
pub fn field<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_yaml::from_str(text).map_err(|error| error.to_string())
}

/// The value's text in a topology file.
pub fn text_of(value: &impl Serialize) -> String {
    let yaml = serde_yaml::to_string(value).expect("a value of a topology");
    yaml.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heights_parse() {
        let check = |text: &str, expected: Option<HeightArg>| {
            assert_eq!(text.parse().ok(), expected, "{text}");
        };
        check("0", Some(HeightArg::At(0)));
        check("120", Some(HeightArg::At(120)));
        check("+10", Some(HeightArg::Ahead(10)));
        check("latest", Some(HeightArg::Latest));
        for bad in ["", "+", "-1", "++1", "1.0", "0x10", "Latest", "18446744073709551616"] {
            check(bad, None);
        }
    }

    #[test]
    fn payloads_are_text_or_hex() {
        let check = |text: &str, expected: Option<&[u8]>| {
            assert_eq!(payload(text, 100).ok().as_deref(), expected, "{text}");
        };
        check("", Some(b""));
        check(r#"{"to": 1}"#, Some(br#"{"to": 1}"#));
        check("0x", Some(b""));
        check("0x00ff", Some(&[0, 255]));
        check("0x0", None);
        check("0xyz", None);
        check("@/no/such/file", None);
    }

    #[test]
    fn statuses_parse() {
        assert_eq!(timer_status("due"), Ok(TimerStatus::Due));
        assert_eq!(timer_status("insufficient_funds"), Ok(TimerStatus::InsufficientFunds));
        assert_eq!(timer_status("Due"), Ok(TimerStatus::Due));
        let expected = "`done` is not a valid status: expected scheduled, due, fired, failed, \
                        expired, cancelled or insufficient_funds";
        assert_eq!(timer_status("done"), Err(expected.to_owned()));
    }

    #[test]
    fn pairs_parse() {
        let pair = |key: &str, value: &str| Ok((key.to_owned(), value.to_owned()));
        assert_eq!(variable("A=b=c"), pair("A", "b=c"));
        assert_eq!(variable("A="), pair("A", ""));
        assert!(variable("A").is_err());
        assert!(variable("=b").is_err());
        assert_eq!(header("Accept: text/plain"), pair("Accept", "text/plain"));
        assert_eq!(header("X:a:b"), pair("X", "a:b"));
        assert!(header(": a").is_err());
        assert!(header("a").is_err());
    }
}

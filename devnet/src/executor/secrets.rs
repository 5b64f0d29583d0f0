//! Secrets in an operator's configuration.
//!
//! The reason why a job failed goes onto the public chain, and a peer's message may repeat the key
//! that it was given or the URL that it was asked at. So every text of a peer is shown through
//! [`Secrets::shown`].

use reqwest::Url;
use std::{borrow::Cow, fmt};

/// Minimum length in bytes of a part of a URL, an argument or an environment value to count as
/// secret. Hiding each `1` and each `rpc` would make messages unreadable.
const MIN: usize = 8;

const HIDDEN: &str = "[hidden]";

#[derive(Clone, Default)]
pub(super) struct Secrets(Vec<String>);

/// Shows only their number.
impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({})", self.0.len())
    }
}

impl Secrets {
    /// A key of any length.
    pub(super) fn of_key(key: &str) -> Self {
        Self(vec![key.to_owned()])
    }

    /// The parts of a URL that may be keys: user, password, each segment of its path and each value
    /// of its query, both raw and decoded.
    pub(super) fn of_url(url: &Url) -> Self {
        let user = [Some(url.username()), url.password()].into_iter().flatten();
        let query = url.query().into_iter().flat_map(|query| query.split('&'));
        let values = query.map(|pair| pair.split_once('=').map_or(pair, |(_, value)| value));
        let raw = user.chain(url.path_segments().into_iter().flatten()).chain(values);
        let decoded = raw.clone().map(|text| {
            let decoded = percent_encoding::percent_decode_str(text).decode_utf8_lossy();
            Cow::from(decoded.replace('+', " "))
        });
        Self::of_values(raw.map(Cow::from).chain(decoded))
    }

    /// Values that may be keys; from a value of the form `--name=value` the part after `=` as well.
    pub(super) fn of_values<'a>(values: impl IntoIterator<Item = Cow<'a, str>>) -> Self {
        let mut secrets = Vec::new();
        for value in values {
            if let Some((_, value)) = value.split_once('=').filter(|_| value.starts_with('-')) {
                secrets.push(value.to_owned());
            }
            secrets.push(value.into_owned());
        }
        secrets.retain(|secret| secret.len() >= MIN);
        // One secret may contain another, so the longer one is replaced first.
        secrets.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        secrets.dedup();
        Self(secrets)
    }

    /// A text without the secrets, on one line, of at most `limit` bytes.
    pub(super) fn shown(&self, text: &str, limit: usize) -> String {
        // Before the text is cut, so that no part of a key remains.
        let text = self.0.iter().fold(Cow::from(text), |text, secret| {
            match text.contains(secret.as_str()) {
                true => text.replace(secret, HIDDEN).into(),
                false => text,
            }
        });
        let line: String =
            text.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        line[..line.floor_char_boundary(limit)].trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_of_a_url_may_be_a_key_is_hidden() {
        let url =
            "https://agent-7:pa%40ss-word@node.example/v3/0123abcd?token=t0p+s3cret&v=1&bare-key";
        let secrets = Secrets::of_url(&Url::parse(url).unwrap());
        for said in [
            "GET /v3/0123abcd failed",
            "no: t0p+s3cret",
            "no: t0p s3cret",
            "pa%40ss-word",
            "pa@ss-word",
            "what is bare-key?",
        ] {
            let shown = secrets.shown(said, 100);
            let left = ["0123abcd", "s3cret", "ss-word", "bare-key"];
            assert!(shown.contains(HIDDEN) && left.iter().all(|s| !shown.contains(s)), "{shown}");
        }
        assert_eq!(
            secrets.shown("node.example, v3: nonce too low", 100),
            "node.example, v3: nonce too low"
        );
    }

    #[test]
    fn values_are_hidden_the_longer_ones_first_and_before_the_text_is_cut() {
        let values = ["abcdefgh", "--token=abcdefgh-123", "x=--", "8080"].map(Cow::from);
        let secrets = Secrets::of_values(values);
        assert_eq!(secrets.shown("abcdefgh-123, abcdefgh, 8080", 100), "[hidden], [hidden], 8080");
        assert_eq!(secrets.shown("--token=abcdefgh-123", 100), HIDDEN);
        assert_eq!(secrets.shown("is abcdefgh-123", 9), "is [hidde");
        assert_eq!(secrets.shown("  two\nlines\u{1b}[2J ", 100), "two lines [2J");
        assert_eq!(Secrets::of_key("k").shown("ok", 100), "o[hidden]");
        assert_eq!(Secrets::default().shown("größer", 4), "gr\u{f6}");
    }
}

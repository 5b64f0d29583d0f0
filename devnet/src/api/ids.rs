//! Ids in requests: whole, or enough of their beginnings.

use super::error::{ApiError, shown};
use crate::types::HashText;
use cowboy_engine::primitives::Hash;

/// Parses a hash in a request. `what` names the hashed object.
pub(super) fn hash(what: &str, text: &str) -> Result<Hash, ApiError> {
    text.parse::<HashText>().map(|hash| hash.0).map_err(|_| {
        let text = shown(text);
        ApiError::bad_request(format!(
            "`{text}` is not a valid {what}: expected 0x and 64 hex digits"
        ))
    })
}

/// A whole id or the beginning of one, in lower case. `what` names its kind, as `job`.
pub(super) fn beginning(what: &str, text: &str) -> Result<String, ApiError> {
    let lower = text.to_ascii_lowercase();
    let digits = lower.strip_prefix("0x").unwrap_or_default();
    if (1..=64).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Ok(lower);
    }
    let shown = shown(text);
    Err(ApiError::not_found(format!("there is no {what} `{shown}`")).hint(format!(
        "expected a name, an id or enough of its beginning, or latest; list them: cowboyctl {what} \
         ls"
    )))
}

pub(super) fn ambiguous(text: &str, one: &Hash, other: &Hash) -> ApiError {
    let text = shown(text);
    ApiError::bad_request(format!(
        "{text} is the beginning of {one}, of {other} and maybe of others"
    ))
    .hint("give more of the id")
}

/// The length of a whole id with its 0x.
pub(super) const WHOLE: usize = 66;

/// Resolves a whole id, or the beginning of one among `all`. `what` names their kind, as `job`.
pub(super) fn only<'a>(
    what: &str,
    text: &str,
    all: impl Iterator<Item = &'a Hash>,
) -> Result<Hash, ApiError> {
    let lower = beginning(what, text)?;
    if lower.len() == WHOLE {
        return hash(&format!("{what} id"), &lower);
    }
    let mut found = all.filter(|id| id.to_string().starts_with(&lower));
    match (found.next(), found.next()) {
        (Some(id), None) => Ok(*id),
        (None, _) => {
            Err(ApiError::not_found(format!("no {what}'s id begins with {}", shown(text)))
                .hint(format!("list them: cowboyctl {what} ls")))
        }
        (Some(one), Some(other)) => Err(ambiguous(text, one, other)),
    }
}

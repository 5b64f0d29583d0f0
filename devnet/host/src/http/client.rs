//! What the clients of different servers share.

use super::ANSWER_LIMIT;
use reqwest::{Response, Url};

/// The URL of a path below a base address, with each segment escaped because it often comes from a
/// user. `base` has to be a URL with a path.
pub fn below(base: &Url, path: &[&str]) -> Url {
    let mut url = base.clone();
    if let Ok(mut segments) = url.path_segments_mut() {
        segments.pop_if_empty().extend(path);
    }
    url
}

/// Why an answer's body was not read.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    #[error("longer than {ANSWER_LIMIT} bytes")]
    TooLong,
    #[error(transparent)]
    Broken(#[from] reqwest::Error),
}

/// Reads an answer's whole body, at most [`ANSWER_LIMIT`] bytes.
pub async fn whole(mut response: Response) -> Result<Vec<u8>, BodyError> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > ANSWER_LIMIT {
            return Err(BodyError::TooLong);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

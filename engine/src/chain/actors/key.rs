//! Keys of actors' stores.

use crate::primitives::codec::{Decode, DecodeError, Encode, Reader, Writer};
use std::{borrow::Borrow, fmt};

/// A key of an actor's store. Starlark actors have text, Python actors any bytes; both are ordered
/// by their bytes. Encoded as text where it is text, else as bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct StoreKey(Vec<u8>);

impl StoreKey {
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The key that is displayed as `text`.
    pub fn shown_as(text: &str) -> Self {
        let bytes = text.strip_prefix("0x").and_then(|digits| hex::decode(digits).ok());
        let key = bytes.map(Self).filter(|key| key.as_text().is_none());
        key.unwrap_or_else(|| text.into())
    }

    /// The key as text; `None` for other bytes.
    pub fn as_text(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }
}

impl From<&str> for StoreKey {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().to_vec())
    }
}

impl From<String> for StoreKey {
    fn from(text: String) -> Self {
        Self(text.into_bytes())
    }
}

impl From<&[u8]> for StoreKey {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }
}

impl Borrow<[u8]> for StoreKey {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

/// Text as is, other bytes as 0x-hex.
impl fmt::Display for StoreKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.as_text() {
            Some(text) => f.write_str(text),
            None => write!(f, "0x{}", hex::encode(&self.0)),
        }
    }
}

impl fmt::Debug for StoreKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.as_text() {
            Some(text) => write!(f, "{text:?}"),
            None => write!(f, "{self}"),
        }
    }
}

impl Encode for StoreKey {
    fn encode(&self, w: &mut Writer) {
        match self.as_text() {
            Some(text) => w.text(text),
            None => w.bytes(&self.0),
        }
    }
}

impl Decode for StoreKey {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        if r.is_text() {
            return r.text(usize::MAX).map(Self::from);
        }
        let key = Self::from(r.bytes(usize::MAX)?);
        match key.as_text() {
            None => Ok(key),
            Some(_) => Err(DecodeError::Invalid("a key that is text, as bytes")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::codec::{from_slice, to_vec};

    #[test]
    fn a_key_has_one_encoding() {
        let (text, bytes) = (StoreKey::from("calls"), StoreKey::from(&[0xff, 0x00][..]));
        for key in [&text, &bytes] {
            assert_eq!(from_slice::<StoreKey>(&to_vec(key)).as_ref(), Ok(key));
        }
        assert_eq!(to_vec(&text), to_vec(&"calls".to_owned()));
        assert_eq!((text.to_string(), bytes.to_string()), ("calls".into(), "0xff00".into()));
        let disguised = to_vec(&b"calls".to_vec());
        assert!(from_slice::<StoreKey>(&disguised).is_err());
    }
}

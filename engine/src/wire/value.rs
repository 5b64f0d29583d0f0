//! Types of the fields of frames.
//!
//! Decided where the table of frames leaves it open: roles, statuses and reasons are lower-case
//! texts. A text for people has at most [`Text::LIMIT`] bytes, a list of names at most
//! [`Labels::LIMIT`] names, so that every control frame is within its limit by its type. A job's
//! specification and a result are opaque bytes ([`Body`]), which this module does not decode.

use super::Channel;
use crate::{
    names,
    primitives::{
        Address, Hash, Signature,
        codec::{Decode, DecodeError, Encode, Reader, Writer},
    },
    record,
};
use std::{fmt, str::FromStr};

/// Defines an enum whose values are lower-case texts, on the wire and for people.
macro_rules! texts {
    ($(#[$doc:meta])* $name:ident {
        $($(#[$variant_doc:meta])* $variant:ident = $text:literal,)*
    }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)*
        }

        impl $name {
            pub const fn as_str(self) -> &'static str {
                self.name()
            }
        }

        names!($name, Text::LIMIT, concat!("not a ", stringify!($name)); $($variant = $text,)*);
    };
}

texts! {
    /// Which side of a connection a party is.
    Role {
        /// Executes jobs; opens the connection.
        Runner = "runner",
        /// Takes part in consensus; accepts connections.
        Validator = "validator",
    }
}

texts! {
    /// The reason for refusing or ending a connection.
    GoodbyeReason {
        UnsupportedVersion = "unsupported_version",
        UnknownRunner = "unknown_runner",
        Deregistered = "deregistered",
        InsufficientStake = "insufficient_stake",
        /// The validator is not in the runner's subset.
        NotInSubset = "not_in_subset",
        BadSignature = "bad_signature",
        WrongRole = "wrong_role",
        /// The key is not the certificate's, or not the expected one.
        IdentityMismatch = "identity_mismatch",
        /// A challenge nonce that was seen before, or a ping nonce that does not increase.
        ReplayedNonce = "replayed_nonce",
        /// Too many connection attempts from one address, or too many streams on one connection.
        RateLimited = "rate_limited",
        /// The runner has opened a newer connection.
        DuplicateConnection = "duplicate_connection",
        /// A frame that is malformed or out of place.
        MalformedFrame = "malformed_frame",
        FrameTooLarge = "frame_too_large",
        ShuttingDown = "shutting_down",
    }
}

texts! {
    /// The reason for rejecting an assignment (spec §6).
    RejectReason {
        AtCapacity = "at_capacity",
        /// It cannot do jobs of that kind, or with the named model or server, permanently or for
        /// now.
        UnsupportedKind = "unsupported_kind",
        /// The errand is from an agent that the runner's operator has not named, or the job is of a
        /// pool that the runner does not work for now.
        MissingEntitlement = "missing_entitlement",
        /// The specification is invalid, or does not match the job's id.
        InvalidSpec = "invalid_spec",
        DeadlinePassed = "deadline_passed",
    }
}

impl RejectReason {
    /// Whether the chain gives the job to another runner after this rejection. The two other
    /// reasons are no excuse, because any validator can provoke them with a false specification or
    /// a false height.
    pub const fn is_excuse(self) -> bool {
        matches!(self, Self::AtCapacity | Self::UnsupportedKind | Self::MissingEntitlement)
    }
}

texts! {
    /// The reason for cancelling a job.
    CancelReason {
        /// Another runner has the job now.
        Reassigned = "reassigned",
        Expired = "expired",
        /// It will not be retried.
        Failed = "failed",
        Done = "done",
    }
}

/// A runner's answer to an assignment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AckStatus {
    /// It runs the job, and will send the result on this stream.
    Accepted,
    /// It already has the job from another validator.
    Duplicate,
    Reject(RejectReason),
}

impl fmt::Display for AckStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Accepted => f.write_str("accepted"),
            Self::Duplicate => f.write_str("duplicate"),
            Self::Reject(reason) => write!(f, "reject({reason})"),
        }
    }
}

texts! {
    /// The text of an [`AckStatus`] without its reason.
    StatusText {
        Accepted = "accepted",
        Duplicate = "duplicate",
        Reject = "reject",
    }
}

/// Defines a text of at most `$limit` bytes.
macro_rules! bounded_text {
    ($(#[$doc:meta])* $name:ident $limit:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $name(String);

        impl $name {
            /// Maximum length in bytes.
            pub const LIMIT: usize = $limit;

            /// The text, truncated after the last character that fits.
            pub fn truncated(text: &str) -> Self {
                Self(text[..text.floor_char_boundary(Self::LIMIT)].to_owned())
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl Encode for $name {
            fn encode(&self, w: &mut Writer) {
                w.text(&self.0);
            }
        }

        impl Decode for $name {
            fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
                r.text(Self::LIMIT).map(|text| Self(text.to_owned()))
            }
        }
    };
}

bounded_text! {
    /// A short text for people, or a name: at most [`Text::LIMIT`] bytes.
    Text 128
}

bounded_text! {
    /// The reason of a runner's failure, for people: at most [`Reason::LIMIT`] bytes. It is
    /// recorded on the chain.
    Reason 256
}

/// Names of capabilities or entitlements: at most [`Labels::LIMIT`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Labels(Vec<Text>);

/// Why names do not form [`Labels`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LabelsError {
    #[error("{0} names where at most {limit} are allowed", limit = Labels::LIMIT)]
    TooMany(usize),
    #[error("a name of {0} bytes where at most {limit} are allowed", limit = Text::LIMIT)]
    NameTooLong(usize),
}

impl Labels {
    /// Maximum number of names.
    pub const LIMIT: usize = 64;

    pub fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Self, LabelsError> {
        let texts = names
            .into_iter()
            .map(|name| match name.len() {
                0..=Text::LIMIT => Ok(Text(name.to_owned())),
                got => Err(LabelsError::NameTooLong(got)),
            })
            .collect::<Result<Vec<_>, _>>()?;
        if texts.len() > Self::LIMIT {
            return Err(LabelsError::TooMany(texts.len()));
        }
        Ok(Self(texts))
    }

    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(Text::as_str)
    }
}

impl Encode for Labels {
    fn encode(&self, w: &mut Writer) {
        self.0.encode(w);
    }
}

impl Decode for Labels {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        r.items(Self::LIMIT).map(Self)
    }
}

/// Ids of jobs: at most [`JobIds::LIMIT`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobIds(Vec<Hash>);

impl JobIds {
    /// Maximum number of ids: as many as the results that a runner keeps.
    pub const LIMIT: usize = 1_024;

    /// The first [`Self::LIMIT`] of these ids.
    pub fn first(ids: impl IntoIterator<Item = Hash>) -> Self {
        Self(ids.into_iter().take(Self::LIMIT).collect())
    }

    pub fn as_slice(&self) -> &[Hash] {
        &self.0
    }
}

impl Encode for JobIds {
    fn encode(&self, w: &mut Writer) {
        self.0.encode(w);
    }
}

impl Decode for JobIds {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        r.items(Self::LIMIT).map(Self)
    }
}

const _: () = assert!(
    JobIds::LIMIT * 34 + 1024 <= Channel::Control.limit(),
    "a full list of job ids is within a control frame's limit"
);

const _: () =
    assert!(crate::registry::MAX_LABEL_BYTES == Text::LIMIT, "every label fits into a frame");

const _: () = assert!(
    4 * Labels::LIMIT * (Text::LIMIT + 2) + 1024 <= Channel::Control.limit(),
    "the largest control frame, a CapabilityDelta with four full lists, is within its limit"
);

/// Bytes of a specification or a result: at most [`Body::LIMIT`], so that their frame is within its
/// limit.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Body(Vec<u8>);

/// Too many bytes for a [`Body`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0} bytes where at most {limit} are allowed", limit = Body::LIMIT)]
pub struct BodyError(pub usize);

impl Body {
    /// Maximum length in bytes: a job stream's limit minus room for the frame's other fields.
    pub const LIMIT: usize = Channel::Job.limit() - 1024;

    pub fn new(bytes: Vec<u8>) -> Result<Self, BodyError> {
        match bytes.len() {
            0..=Self::LIMIT => Ok(Self(bytes)),
            got => Err(BodyError(got)),
        }
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Body({} bytes)", self.0.len())
    }
}

impl Encode for Body {
    fn encode(&self, w: &mut Writer) {
        w.bytes(&self.0);
    }
}

impl Decode for Body {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        r.bytes(Self::LIMIT).map(|bytes| Self(bytes.to_vec()))
    }
}

/// A result that its runner revealed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevealedResult {
    pub runner: Address,
    pub result_data: Body,
    /// The runner's signature, as in its [`JobResult`](super::JobResult).
    pub runner_signed: Signature,
}
record!(RevealedResult { runner, result_data, runner_signed });

/// A committee's revealed results: at most [`Reveals::LIMIT`] of them, with at most
/// [`Reveals::MAX_BYTES`] in total, so that their frame is within its limit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reveals(Vec<RevealedResult>);

/// Why results do not fit into one frame.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RevealsError {
    #[error("{0} results where at most {limit} are allowed", limit = Reveals::LIMIT)]
    TooMany(usize),
    #[error("results of {0} bytes where at most {limit} are allowed", limit = Reveals::MAX_BYTES)]
    TooLong(usize),
}

impl Reveals {
    /// Maximum number of results in one frame.
    pub const LIMIT: usize = 64;
    /// Maximum total bytes of the results: a job stream's limit minus room for all else.
    pub const MAX_BYTES: usize = Body::LIMIT - Self::LIMIT * 192;

    pub fn new(reveals: Vec<RevealedResult>) -> Result<Self, RevealsError> {
        if reveals.len() > Self::LIMIT {
            return Err(RevealsError::TooMany(reveals.len()));
        }
        match reveals.iter().map(|reveal| reveal.result_data.as_bytes().len()).sum() {
            0..=Self::MAX_BYTES => Ok(Self(reveals)),
            got => Err(RevealsError::TooLong(got)),
        }
    }

    pub fn as_slice(&self) -> &[RevealedResult] {
        &self.0
    }
}

impl Encode for Reveals {
    fn encode(&self, w: &mut Writer) {
        self.0.encode(w);
    }
}

impl Decode for Reveals {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Self::new(r.items(Self::LIMIT)?)
            .map_err(|_| DecodeError::Invalid("results longer than a frame holds"))
    }
}

/// A share of the whole in percent, 0 to 100.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Percent(u16);

/// A number above 100.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} % where at most 100 % are allowed")]
pub struct PercentError(pub u16);

impl Percent {
    pub const fn new(percent: u16) -> Result<Self, PercentError> {
        match percent {
            0..=100 => Ok(Self(percent)),
            got => Err(PercentError(got)),
        }
    }

    pub const fn get(self) -> u16 {
        self.0
    }
}

impl Encode for Percent {
    fn encode(&self, w: &mut Writer) {
        self.0.encode(w);
    }
}

impl Decode for Percent {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Self::new(u16::decode(r)?).map_err(|_| DecodeError::Invalid("more than 100 percent"))
    }
}

/// A text that is not a [`GoodbyeReason`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a goodbye reason")]
pub struct ReasonError(String);

impl FromStr for GoodbyeReason {
    type Err = ReasonError;

    fn from_str(text: &str) -> Result<Self, ReasonError> {
        Self::named(text).ok_or_else(|| ReasonError(text.to_owned()))
    }
}

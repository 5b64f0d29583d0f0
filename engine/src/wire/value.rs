//! What stands in a frame's fields.
//!
//! Decided where the table of frames leaves it open: roles, statuses and reasons are lower-case
//! texts; a text that people read has at most [`Text::LIMIT`] bytes, a list of names at most
//! [`Labels::LIMIT`] of them, so that every control frame is within its bound by its type; a job's
//! specification and a result are opaque bytes ([`Body`]), which nothing here reads.

use super::frame::Channel;
use crate::{
    primitives::{
        Address, Hash, Signature,
        codec::{Decode, DecodeError, Encode, Reader, Writer},
    },
    record,
};
use std::{fmt, str::FromStr};

/// An enum whose values are lower-case texts on the wire and for people.
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
            /// Every value.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The value's text.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }

            fn from_text(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.as_str() == text)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl Encode for $name {
            fn encode(&self, w: &mut Writer) {
                w.text(self.as_str());
            }
        }

        impl Decode for $name {
            fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
                Self::from_text(r.text(Text::LIMIT)?)
                    .ok_or(DecodeError::Invalid(concat!("not a ", stringify!($name))))
            }
        }
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
    /// Why a connection is refused or ended.
    GoodbyeReason {
        /// A version other than [`VERSION`](super::VERSION).
        UnsupportedVersion = "unsupported_version",
        /// Not in the registry.
        UnknownRunner = "unknown_runner",
        /// In the registry, and left it.
        Deregistered = "deregistered",
        /// Stake below the minimum.
        InsufficientStake = "insufficient_stake",
        /// The validator is not in the runner's subset.
        NotInSubset = "not_in_subset",
        /// A signature that the signer's key did not make.
        BadSignature = "bad_signature",
        /// The peer is on the same side.
        WrongRole = "wrong_role",
        /// The key is not the certificate's, or not the one expected there.
        IdentityMismatch = "identity_mismatch",
        /// A challenge seen before, or a ping nonce that does not increase.
        ReplayedNonce = "replayed_nonce",
        /// Too many attempts from one address, or streams on one connection.
        RateLimited = "rate_limited",
        /// The runner has opened a newer connection.
        DuplicateConnection = "duplicate_connection",
        /// A frame that is none, or has no place there.
        MalformedFrame = "malformed_frame",
        /// A frame above its stream's bound.
        FrameTooLarge = "frame_too_large",
        /// The sender stops.
        ShuttingDown = "shutting_down",
    }
}

texts! {
    /// Why a runner does not take an assignment (spec §6).
    RejectReason {
        /// As many jobs run as may.
        AtCapacity = "at_capacity",
        /// It cannot do jobs of that kind, or with what the job names, or not for now.
        UnsupportedKind = "unsupported_kind",
        /// The errand is of an agent that the runner's operator has not named, or the job of a pool
        /// that the runner does not work for now.
        MissingEntitlement = "missing_entitlement",
        /// The specification cannot be read, or is not the one that the job's id commits to.
        InvalidSpec = "invalid_spec",
        /// The deadline has passed.
        DeadlinePassed = "deadline_passed",
    }
}

impl RejectReason {
    /// Whether the chain gives the job to another runner on this word. Any validator can have the
    /// other two signed, by a false specification or a false height.
    pub const fn is_excuse(self) -> bool {
        matches!(self, Self::AtCapacity | Self::UnsupportedKind | Self::MissingEntitlement)
    }
}

texts! {
    /// Why a job is cancelled.
    CancelReason {
        /// Another runner has it now.
        Reassigned = "reassigned",
        /// It ran out of time.
        Expired = "expired",
        /// It will not be retried.
        Failed = "failed",
        /// The chain has the runner's result, and it was verified.
        Done = "done",
    }
}

/// A runner's answer to an assignment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AckStatus {
    /// It runs the job, and will send the result on this stream.
    Accepted,
    /// It has the job from another validator.
    Duplicate,
    /// It does not take the job.
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
        /// Accepted
        Accepted = "accepted",
        /// Duplicate
        Duplicate = "duplicate",
        /// Reject
        Reject = "reject",
    }
}

/// A text that has at most so many bytes.
macro_rules! bounded_text {
    ($(#[$doc:meta])* $name:ident $limit:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $name(String);

        impl $name {
            /// Bytes a text may have.
            pub const LIMIT: usize = $limit;

            /// The text, cut off after the last character that fits.
            pub fn truncated(text: &str) -> Self {
                Self(text[..text.floor_char_boundary(Self::LIMIT)].to_owned())
            }

            /// The text.
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
    /// Why a runner could not do a job, for people: at most [`Reason::LIMIT`] bytes. It goes onto
    /// the chain.
    Reason 256
}

/// Names of capabilities or entitlements: at most [`Labels::LIMIT`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Labels(Vec<Text>);

/// Why names are no [`Labels`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LabelsError {
    /// More names than may stand in one frame.
    #[error("{0} names where at most {limit} may stand", limit = Labels::LIMIT)]
    TooMany(usize),
    /// A name that a frame has no room for.
    #[error("a name of {0} bytes where at most {limit} may stand", limit = Text::LIMIT)]
    NameTooLong(usize),
}

impl Labels {
    /// Names a list may have.
    pub const LIMIT: usize = 64;

    /// The list of these names.
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

    /// The names, in their order.
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
        let len = r.list(Self::LIMIT)?;
        (0..len).map(|_| Text::decode(r)).collect::<Result<_, _>>().map(Self)
    }
}

/// Ids of jobs: at most [`JobIds::LIMIT`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobIds(Vec<Hash>);

impl JobIds {
    /// Ids a list may have: as many as results that a runner keeps.
    pub const LIMIT: usize = 1_024;

    /// The first [`Self::LIMIT`] of these ids.
    pub fn first(ids: impl IntoIterator<Item = Hash>) -> Self {
        Self(ids.into_iter().take(Self::LIMIT).collect())
    }

    /// The ids, in their order.
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
        let len = r.list(Self::LIMIT)?;
        (0..len).map(|_| Hash::decode(r)).collect::<Result<_, _>>().map(Self)
    }
}

const _: () = assert!(
    JobIds::LIMIT * 34 + 1024 <= Channel::Control.limit(),
    "a full list of ids of jobs is within a control frame's bound"
);

const _: () = assert!(
    crate::registry::MAX_LABEL_BYTES == Text::LIMIT,
    "whatever is a label has room in a frame"
);

const _: () = assert!(
    4 * Labels::LIMIT * (Text::LIMIT + 2) + 1024 <= Channel::Control.limit(),
    "the largest control frame, a CapabilityDelta with four full lists, is within its bound"
);

/// Bytes of a specification or a result: at most [`Body::LIMIT`], so that their frame is within
/// its bound.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Body(Vec<u8>);

/// Too many bytes for a frame.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0} bytes where at most {limit} may stand", limit = Body::LIMIT)]
pub struct BodyError(pub usize);

impl Body {
    /// Bytes a body may have: a job stream's bound less room for the frame's other fields.
    pub const LIMIT: usize = Channel::Job.limit() - 1024;

    /// These bytes as a body.
    pub fn new(bytes: Vec<u8>) -> Result<Self, BodyError> {
        match bytes.len() {
            0..=Self::LIMIT => Ok(Self(bytes)),
            got => Err(BodyError(got)),
        }
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The bytes, without a copy.
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

/// A result as its runner revealed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reveal {
    /// Whose it is.
    pub runner: Address,
    /// The result.
    pub result_data: Body,
    /// The runner's, as in its [`JobResult`](super::JobResult).
    pub runner_signed: Signature,
}
record!(Reveal { runner, result_data, runner_signed });

/// What a committee revealed: at most [`Reveals::LIMIT`] results of together at most
/// [`Reveals::MAX_BYTES`], so that their frame is within its bound.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reveals(Vec<Reveal>);

/// Why results cannot stand in one frame.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RevealsError {
    /// More of them than may be.
    #[error("{0} results where at most {limit} may stand", limit = Reveals::LIMIT)]
    TooMany(usize),
    /// They are too long together.
    #[error("results of {0} bytes where at most {limit} may stand", limit = Reveals::MAX_BYTES)]
    TooLong(usize),
}

impl Reveals {
    /// Results that one frame may have.
    pub const LIMIT: usize = 64;
    /// Bytes that they may have together: a job stream's bound less room for all else.
    pub const MAX_BYTES: usize = Body::LIMIT - Self::LIMIT * 192;

    /// These results, in this order.
    pub fn new(reveals: Vec<Reveal>) -> Result<Self, RevealsError> {
        if reveals.len() > Self::LIMIT {
            return Err(RevealsError::TooMany(reveals.len()));
        }
        match reveals.iter().map(|reveal| reveal.result_data.as_bytes().len()).sum() {
            0..=Self::MAX_BYTES => Ok(Self(reveals)),
            got => Err(RevealsError::TooLong(got)),
        }
    }

    /// The results, in their order.
    pub fn as_slice(&self) -> &[Reveal] {
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
        let len = r.list(Self::LIMIT)?;
        let reveals = (0..len).map(|_| Reveal::decode(r)).collect::<Result<_, _>>()?;
        Self::new(reveals).map_err(|_| DecodeError::Invalid("results longer than a frame holds"))
    }
}

/// A share of the whole, 0 to 100.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Percent(u16);

/// A number above 100.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} % where at most 100 % may stand")]
pub struct PercentError(pub u16);

impl Percent {
    /// The share of this many hundredths.
    pub const fn new(percent: u16) -> Result<Self, PercentError> {
        match percent {
            0..=100 => Ok(Self(percent)),
            got => Err(PercentError(got)),
        }
    }

    /// The number, at most 100.
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

/// A text that is no [`GoodbyeReason`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no reason of a goodbye")]
pub struct ReasonError(String);

impl FromStr for GoodbyeReason {
    type Err = ReasonError;

    fn from_str(text: &str) -> Result<Self, ReasonError> {
        Self::from_text(text).ok_or_else(|| ReasonError(text.to_owned()))
    }
}

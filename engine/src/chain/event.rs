//! Events: what happened in a block.

use crate::{
    primitives::{Address, Hash},
    record,
};

/// The documentation of an event kind. Texts begin with a space, as doc comments do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KindDoc {
    pub name: &'static str,
    pub about: &'static str,
    pub fields: &'static [FieldDoc],
}

/// The documentation of a field of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldDoc {
    pub name: &'static str,
    /// Its type in Rust syntax: `Option<Height>`.
    pub ty: &'static str,
    pub about: &'static str,
}

/// The value of the field `$wanted` of an event with the listed fields, if it has that field.
macro_rules! field {
    (job_id $event:ident: job_id $($rest:ident)*) => { Some($event.job_id) };
    (actor $event:ident: actor $($rest:ident)*) => { Some($event.actor) };
    (timer_id $event:ident: timer_id $($rest:ident)*) => { Some($event.timer_id) };
    ($wanted:ident $event:ident: $other:ident $($rest:ident)*) => {
        field!($wanted $event: $($rest)*)
    };
    ($wanted:ident $event:ident:) => {{
        let _ = $event;
        None
    }};
}

macro_rules! events {
    ($($(#[doc = $doc:literal])* $tag:literal $name:ident {
        $($(#[doc = $field_doc:literal])* $field:ident: $ty:ty),* $(,)?
    })*) => {
        $(
            $(#[doc = $doc])*
            #[derive(Clone, Debug, PartialEq, Eq)]
            pub struct $name {
                $($(#[doc = $field_doc])* pub $field: $ty,)*
            }
            record!($name { $($field),* });
        )*

        /// An event's contents; each variant is documented by its struct.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum EventKind {
            $($(#[doc = $doc])* $name($name),)*
        }

        impl EventKind {
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name)),*];

            /// The documentation of each kind, in the order of [`Self::NAMES`].
            pub const DOCS: &'static [KindDoc] = &[$(KindDoc {
                name: stringify!($name),
                about: concat!($($doc),*),
                fields: &[$(FieldDoc {
                    name: stringify!($field),
                    ty: stringify!($ty),
                    about: concat!($($field_doc),*),
                }),*],
            }),*];

            pub const fn name(&self) -> &'static str {
                match self {
                    $(Self::$name(_) => stringify!($name),)*
                }
            }

            pub(super) const fn job_id(&self) -> Option<Hash> {
                match self {
                    $(Self::$name(event) => field!(job_id event: $($field)*),)*
                }
            }

            pub(super) const fn actor(&self) -> Option<Address> {
                match self {
                    $(Self::$name(event) => field!(actor event: $($field)*),)*
                }
            }

            pub(super) const fn timer_id(&self) -> Option<Hash> {
                match self {
                    $(Self::$name(event) => field!(timer_id event: $($field)*),)*
                }
            }
        }

        impl Encode for EventKind {
            fn encode(&self, w: &mut Writer) {
                w.list(2);
                match self {
                    $(Self::$name(body) => {
                        w.u64($tag);
                        body.encode(w);
                    })*
                }
            }
        }

        impl Decode for EventKind {
            fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
                if r.list(2)? != 2 {
                    return Err(DecodeError::Invalid("an event is a pair of kind and body"));
                }
                match r.u64()? {
                    $($tag => Decode::decode(r).map(Self::$name),)*
                    _ => Err(DecodeError::Invalid("unknown event kind")),
                }
            }
        }

        $(impl From<$name> for EventKind {
            fn from(body: $name) -> Self {
                Self::$name(body)
            }
        })*
    };
}

mod kinds;

pub use kinds::*;

/// An event of a block, with its cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The transaction that caused it; absent if a timer's fire or the block itself did.
    pub transaction: Option<Hash>,
    /// The timer whose fire caused it.
    pub timer: Option<Hash>,
    pub kind: EventKind,
}
record!(Event { transaction, timer, kind });

impl Event {
    pub const fn job_id(&self) -> Option<Hash> {
        self.kind.job_id()
    }

    pub const fn actor(&self) -> Option<Address> {
        match &self.kind {
            // It is about the job.
            EventKind::CallbackMade(_) => None,
            kind => kind.actor(),
        }
    }

    /// The timer the event is about, or whose fire caused it.
    pub const fn timer_id(&self) -> Option<Hash> {
        match self.kind.timer_id() {
            None => self.timer,
            named => named,
        }
    }
}

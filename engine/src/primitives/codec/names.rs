//! Enums without fields whose names are their text and their encoding.

/// Encodes an enum as its `name`, of at most `$limit` bytes; `$unknown` is the error for another.
#[macro_export]
macro_rules! encoded_by_name {
    ($ty:ident, $limit:expr, $unknown:expr) => {
        impl $crate::primitives::codec::Encode for $ty {
            fn encode(&self, w: &mut $crate::primitives::codec::Writer) {
                w.text(self.name());
            }
        }

        impl $crate::primitives::codec::Decode for $ty {
            fn decode(
                r: &mut $crate::primitives::codec::Reader<'_>,
            ) -> Result<Self, $crate::primitives::codec::DecodeError> {
                let name = r.text($limit)?;
                let found = Self::ALL.iter().find(|one| one.name() == name).copied();
                found.ok_or($crate::primitives::codec::DecodeError::Invalid($unknown))
            }
        }
    };
}

/// Gives an enum without fields its external names, which are its text and its encoding: at most 32
/// bytes long, unless another maximum is given, with the error for an unknown name. Takes the names
/// of the variants, or, if they are many, the enum's definition with each name after its variant.
#[macro_export]
macro_rules! names {
    ($(#[$attribute:meta])* $visible:vis enum $ty:ident {
        $($(#[$about:meta])* $variant:ident = $name:literal),* $(,)?
    }) => {
        $(#[$attribute])*
        $visible enum $ty {
            $($(#[$about])* $variant,)*
        }

        $crate::names!($ty: $($variant = $name),*);
    };
    ($ty:ident: $($variants:tt)*) => {
        $crate::names!($ty, 32, concat!("unknown ", stringify!($ty)); $($variants)*);
    };
    ($ty:ident, $limit:expr, $unknown:expr; $($variant:ident = $name:literal),* $(,)?) => {
        impl $ty {
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),*
                }
            }

            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.iter().find(|one| one.name() == name).copied()
            }
        }

        impl std::fmt::Display for $ty {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }

        $crate::encoded_by_name!($ty, $limit, $unknown);
    };
}

/// Gives an enum without fields the names that operators write. They are its text, which can be
/// parsed, and its encoding, like [`names!`](crate::names), at most 16 bytes long; the error for
/// another text says what is expected. With a semicolon after that, the encoding is left out.
macro_rules! words {
    ($ty:ident, $error:ident, $what:literal, $expected:literal: $($variants:tt)*) => {
        $crate::primitives::codec::words!(
            $ty, $error, $what, $expected, 16, concat!("expected ", $expected); $($variants)*
        );
    };
    ($ty:ident, $error:ident, $what:literal, $expected:literal, $limit:expr, $unknown:expr;
        $($variants:tt)*) => {
        $crate::primitives::codec::words!($ty, $error, $what, $expected; $($variants)*);
        $crate::encoded_by_name!($ty, $limit, $unknown);
    };
    ($ty:ident, $error:ident, $what:literal, $expected:literal;
        $($variant:ident = $name:literal),* $(,)?) => {
        impl $ty {
            /// Every variant, in the order of the documentation.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$variant),*];

            /// The name in configuration and output.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),*
                }
            }
        }

        impl std::fmt::Display for $ty {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }

        #[doc = concat!("The text does not name ", $what, ".")]
        #[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
        #[error("`{0}` is not {what}: expected {expected}", what = $what, expected = $expected)]
        pub struct $error(String);

        impl std::str::FromStr for $ty {
            type Err = $error;

            fn from_str(text: &str) -> Result<Self, $error> {
                let named = Self::ALL.into_iter().find(|one| one.name() == text);
                named.ok_or_else(|| $error(text.to_owned()))
            }
        }
    };
}
pub(crate) use words;

//! Environments in run files: kinds of values, and sources of secrets.

use super::{
    RunFile,
    fields::{JobName, Named, Text, Value, Variable},
};
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error, IgnoredAny, MapAccess, Visitor},
};
use std::{fmt, marker::PhantomData};

/// A value of an environment as written in the file.
#[derive(Clone, PartialEq, Eq)]
pub enum EnvEntry {
    Plain(String),
    /// A secret, written in the file itself.
    Literal(String),
    /// A secret from this variable of the submitter's environment.
    FromEnv(String),
    /// A secret from this file.
    FromFile(String),
}

impl fmt::Debug for EnvEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain(value) => f.debug_tuple("Plain").field(value).finish(),
            Self::Literal(_) => f.write_str("Literal(..)"),
            Self::FromEnv(name) => f.debug_tuple("FromEnv").field(name).finish(),
            Self::FromFile(path) => f.debug_tuple("FromFile").field(path).finish(),
        }
    }
}

/// Accepts scalars such as numbers; [`reread`] restores their spelling.
macro_rules! scalars {
    ($($visit:ident: $value:ty),*) => {$(
        fn $visit<E: Error>(self, value: $value) -> Result<EnvEntry, E> {
            Ok(EnvEntry::Plain(value.to_string()))
        }
    )*};
}

impl<'de> Deserialize<'de> for EnvEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AnyEnv;

        const EXPECTED: &str =
            "a text, {secret: TEXT}, {secret_env: VARIABLE} or {secret_file: FILE}";

        #[derive(Deserialize)]
        #[serde(field_identifier, rename_all = "snake_case")]
        enum EnvSource {
            Secret,
            SecretEnv,
            SecretFile,
        }

        impl<'de> Visitor<'de> for AnyEnv {
            type Value = EnvEntry;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(EXPECTED)
            }

            scalars!(visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_i128: i128);
            scalars!(visit_u128: u128, visit_f64: f64);

            fn visit_str<E: Error>(self, text: &str) -> Result<EnvEntry, E> {
                let Value(value) = Text(PhantomData).visit_str(text)?;
                Ok(EnvEntry::Plain(value))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<EnvEntry, A::Error> {
                let one = || A::Error::custom(format!("expected {EXPECTED}"));
                let entry = match map.next_key()?.ok_or_else(one)? {
                    EnvSource::Secret => EnvEntry::Literal(map.next_value::<Secret>()?.0),
                    EnvSource::SecretEnv => EnvEntry::FromEnv(map.next_value::<Variable>()?.0),
                    EnvSource::SecretFile => EnvEntry::FromFile(map.next_value()?),
                };
                match map.next_key::<IgnoredAny>()? {
                    None => Ok(entry),
                    Some(_) => Err(one()),
                }
            }
        }

        deserializer.deserialize_any(AnyEnv)
    }
}

/// A secret's value. Error messages never contain it.
struct Secret(String);

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EnvText;

        impl Visitor<'_> for EnvText {
            type Value = Secret;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a secret's value: a text without NUL that is not empty")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Secret, E> {
                match text.is_empty() || text.contains('\0') {
                    true => Err(E::custom("a secret's value: expected a text that is not empty")),
                    false => Ok(Secret(text.to_owned())),
                }
            }
        }

        deserializer.deserialize_str(EnvText)
    }
}

/// Reads the environments' values again as they are written: YAML types turn `1.10` into `1.1` and
/// `0x1F` into `31`, because the first pass does not ask for strings.
pub fn reread(text: &str, file: &mut RunFile) -> Result<(), serde_yaml::Error> {
    EnvPlace::File(file).deserialize(serde_yaml::Deserializer::from_str(text))
}

enum EnvPlace<'a> {
    File(&'a mut RunFile),
    Jobs(&'a mut RunFile),
    Job(&'a mut RunFile, JobName),
    Env(&'a mut Named<Variable, EnvEntry>),
}

impl<'de> DeserializeSeed<'de> for EnvPlace<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for EnvPlace<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a mapping")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            let inside = match (&mut self, key.as_str()) {
                (EnvPlace::File(file), "env") => Some(EnvPlace::Env(&mut file.env)),
                (EnvPlace::File(file), "jobs") => Some(EnvPlace::Jobs(file)),
                (EnvPlace::Jobs(file), _) => Some(EnvPlace::Job(file, JobName(key))),
                (EnvPlace::Job(file, name), "env") => {
                    file.jobs.get_mut(name).map(|job| EnvPlace::Env(&mut job.env))
                }
                (EnvPlace::Env(env), _) => match env.get_mut(&Variable(key)) {
                    Some(EnvEntry::Plain(value)) => {
                        *value = map.next_value()?;
                        continue;
                    }
                    _ => None,
                },
                _ => None,
            };
            match inside {
                Some(inside) => map.next_value_seed(inside)?,
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

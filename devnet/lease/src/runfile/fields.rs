//! The values of a run file. Each refuses invalid text at its place and says what is expected.

use crate::{
    check::{self, is_output},
    machine::config::MAX_BACKOFF_SECONDS,
    messages::{MAX_KIND, MAX_NAME, MAX_PATH, MAX_STEPS, MAX_TEXT, RunIf},
};
use cowboy_host::duration::parse_duration;
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor},
};
use std::{collections::BTreeSet, fmt, marker::PhantomData, time::Duration};

/// Longest time limit of a job: a year of 365 days, in seconds.
pub const MAX_RUNTIME: u64 = 31_536_000;
/// How much of a text an error message quotes, in characters.
const SHOWN: usize = 40;

/// A value that is parsed from a text.
pub trait Field: Sized {
    const EXPECTED: &'static str;

    fn read(text: &str) -> Option<Self>;

    /// The value. Errors: what is expected.
    fn parse(text: &str) -> Result<Self, String> {
        Self::read(text).ok_or_else(|| format!("`{}`: expected {}", shown(text), Self::EXPECTED))
    }
}

/// A serde visitor that reads a [`Field`].
pub struct Text<T>(pub PhantomData<T>);

impl<T: Field> Visitor<'_> for Text<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        T::parse(text).map_err(E::custom)
    }
}

/// The beginning of a text, on one line.
pub fn shown(text: &str) -> String {
    let mut start: String = text.chars().take(SHOWN).collect();
    if start.len() < text.len() {
        start.push('…');
    }
    start.replace(char::is_control, " ")
}

macro_rules! read {
    ($name:ident) => {
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str(Text(PhantomData))
            }
        }
    };
}

macro_rules! texts {
    ($($(#[$doc:meta])* $name:ident = $expected:literal if $fits:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $name(pub String);

        impl Field for $name {
            const EXPECTED: &'static str = $expected;

            fn read(text: &str) -> Option<Self> {
                let fits: fn(&str) -> bool = $fits;
                (fits(text) && !text.contains('\0')).then(|| Self(text.to_owned()))
            }
        }

        read!($name);
    )*};
}

texts! {
    /// The name of a run.
    RunName = "1 to 128 bytes on a line" if |text| is_line(text, MAX_NAME);
    /// The name of a job.
    JobName = "1 to 128 letters, digits, `-`, `_` and `.`" if |text| is_label(text, b"-_.");
    /// The name of an environment variable.
    Variable = "a variable's name: letters, digits and `_`, no digit first" if is_variable;
    /// A capability of a runner.
    Capability = "1 to 128 letters, digits, `-`, `_`, `.` and `:`" if |text| is_label(text, b"-_.:");
    /// A command for `sh -c`.
    Step = "a command, of 1 to 65536 bytes" if |text| {
        (1..=MAX_TEXT).contains(&text.len()) && !text.trim().is_empty()
    };
    /// A folder below the job's directory.
    Folder = "a relative path without `..`, of 512 bytes at most" if is_below;
    /// A pattern of files below the working directory.
    Glob = "a relative path without `..`, as `**/*.xml`, of 512 bytes at most" if is_below;
    /// A folder below the job's directory or its home.
    Cached = "a relative path without `..`, or one that begins with `~/`" if |text| {
        is_below(text.strip_prefix("~/").unwrap_or(text))
    };
    /// A type of artifacts or caches.
    Kind = "a type, as `junit`: 1 to 64 bytes on a line" if |text| is_line(text, MAX_KIND);
    Image = "an image, of 1 to 512 bytes on a line" if |text| is_line(text, MAX_PATH);
    /// A concurrency group.
    Group = "the name of a group: 1 to 128 bytes on a line" if |text| is_line(text, MAX_NAME);
    /// The name of an output.
    OutputName = "the name of an output: letters, digits and `_`, no digit first" if is_output;
    /// A value of a matrix.
    AxisValue = "a text of 1 to 128 bytes on a line" if |text| is_line(text, MAX_NAME);
    /// A value of an environment, for the message if it is not a text.
    Value = "a text without NUL" if |_| true;
}

fn is_line(text: &str, most: usize) -> bool {
    (1..=most).contains(&text.len()) && !text.contains(char::is_control)
}

fn is_label(text: &str, others: &[u8]) -> bool {
    (1..=MAX_NAME).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || others.contains(&b))
}

/// Whether a text can name a variable.
pub fn is_variable(text: &str) -> bool {
    check::is_variable(text) && text.len() <= MAX_PATH
}

fn is_below(path: &str) -> bool {
    (1..=MAX_PATH).contains(&path.len())
        && !path.starts_with('/')
        && !path.contains(['\\', '\n', '\r'])
        && path.split('/').all(|part| part != "..")
}

/// Time limit of a job, in whole seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Runtime(pub u64);

impl Field for Runtime {
    const EXPECTED: &'static str = "whole seconds from 1s to 8760h, as 90s, 20m or 2h";

    fn read(text: &str) -> Option<Self> {
        let time = parse_duration(text).ok()?;
        let whole = time == Duration::from_secs(time.as_secs());
        let seconds = Some(time.as_secs()).filter(|time| (1..=MAX_RUNTIME).contains(time));
        seconds.filter(|_| whole).map(Self)
    }
}

read!(Runtime);

/// Pause before another attempt, in whole seconds.
#[derive(Debug, Clone, Copy)]
pub struct Pause(pub u64);

impl Field for Pause {
    const EXPECTED: &'static str = "whole seconds from 1s to 1h, as 30s or 5m";

    fn read(text: &str) -> Option<Self> {
        let Runtime(seconds) = Runtime::read(text)?;
        (seconds <= MAX_BACKOFF_SECONDS).then_some(Self(seconds))
    }
}

read!(Pause);

/// How the needed jobs must have ended for a job to run.
#[derive(Debug, Clone, Copy)]
pub struct Condition(pub RunIf);

impl Field for Condition {
    const EXPECTED: &'static str = "success(), failure() or always()";

    fn read(text: &str) -> Option<Self> {
        let all = [RunIf::Success, RunIf::Failure, RunIf::Always];
        all.into_iter().find(|condition| condition.to_string() == text).map(Self)
    }
}

read!(Condition);

/// A mapping in the order of the file, without duplicate names.
#[derive(Debug)]
pub struct Named<K, V>(pub Vec<(K, V)>);

impl<K, V> Default for Named<K, V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: PartialEq, V> Named<K, V> {
    pub fn get(&self, name: &K) -> Option<&V> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    pub fn get_mut(&mut self, name: &K) -> Option<&mut V> {
        self.0.iter_mut().find(|(key, _)| key == name).map(|(_, value)| value)
    }
}

impl<'de, K: Field + Ord + Clone, V: Deserialize<'de>> Deserialize<'de> for Named<K, V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Entries(PhantomData))
    }
}

struct Entries<K, V>(PhantomData<(K, V)>);

impl<'de, K: Field + Ord + Clone, V: Deserialize<'de>> Visitor<'de> for Entries<K, V> {
    type Value = Named<K, V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a mapping: NAME: … on a line each")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut entries, mut seen) = (Vec::new(), BTreeSet::new());
        while let Some(key) = map.next_key_seed(Fresh(&mut seen))? {
            entries.push((key, map.next_value()?));
        }
        Ok(Named(entries))
    }
}

struct Fresh<'a, K>(&'a mut BTreeSet<K>);

impl<'de, K: Field + Ord + Clone> DeserializeSeed<'de> for Fresh<'_, K> {
    type Value = K;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<K, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<K: Field + Ord + Clone> Visitor<'_> for Fresh<'_, K> {
    type Value = K;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(K::EXPECTED)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<K, E> {
        let key = Text::<K>(PhantomData).visit_str(text)?;
        if !self.0.insert(key.clone()) {
            return Err(E::custom(format!("`{}` appears twice", shown(text))));
        }
        Ok(key)
    }
}

/// A concurrency group as written: its name, or a mapping with the name and an option.
#[derive(Debug)]
pub struct GroupEntry<T> {
    pub group: T,
    pub cancel_in_progress: bool,
}

impl<'de, T: Field> Deserialize<'de> for GroupEntry<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any<T>(PhantomData<T>);

        #[derive(Deserialize)]
        #[serde(field_identifier, rename_all = "snake_case")]
        enum Key {
            Group,
            CancelInProgress,
        }

        impl<'de, T: Field> Visitor<'de> for Any<T> {
            type Value = GroupEntry<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a group's name, or {group: NAME, cancel_in_progress: true or false}")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<GroupEntry<T>, E> {
                let group = Text(PhantomData).visit_str(text)?;
                Ok(GroupEntry { group, cancel_in_progress: false })
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<GroupEntry<T>, A::Error> {
                let (mut group, mut cancel) = (None, None);
                while let Some(key) = map.next_key()? {
                    let twice = match key {
                        Key::Group => {
                            let written: String = map.next_value()?;
                            let read = Text(PhantomData).visit_str(&written)?;
                            group.replace(read).is_some()
                        }
                        Key::CancelInProgress => cancel.replace(map.next_value()?).is_some(),
                    };
                    if twice {
                        return Err(A::Error::custom("a field appears twice"));
                    }
                }
                let group = group.ok_or_else(|| A::Error::missing_field("group"))?;
                Ok(GroupEntry { group, cancel_in_progress: cancel.unwrap_or(false) })
            }
        }

        deserializer.deserialize_any(Any(PhantomData))
    }
}

/// The steps of a job, at least one.
#[derive(Debug)]
pub struct Steps(pub Vec<String>);

impl<'de> Deserialize<'de> for Steps {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List;

        impl<'de> Visitor<'de> for List {
            type Value = Steps;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of commands")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Steps, A::Error> {
                let mut steps = Vec::new();
                while let Some(Step(step)) = list.next_element()? {
                    steps.push(step);
                }
                match steps.len() {
                    1..=MAX_STEPS => Ok(Steps(steps)),
                    n => Err(A::Error::custom(format!("{n} steps: a job has 1 to {MAX_STEPS}"))),
                }
            }
        }

        deserializer.deserialize_seq(List)
    }
}

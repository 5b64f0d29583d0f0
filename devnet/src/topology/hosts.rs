//! `hosts`: where the nodes run, and the settings of a node in a process of its own.

use super::{Size, value::from_text};
use cowboy_host::located::PathStep::{self, Item, Key};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::PathBuf,
    str::FromStr,
};

/// The least memory that a validator's process may be limited to.
const MIN_MEMORY: Size = Size(128_000_000);
/// The highest number of a processor.
const MAX_CPU: usize = 1_023;
/// The maximum number of variables of a process, and the longest name with its value.
const MAX_VARIABLES: usize = 64;
const MAX_VARIABLE_BYTES: usize = 4_096;
/// The longest name of an image.
const MAX_IMAGE_BYTES: usize = 255;
/// The variables of the program itself that a topology may set.
const OWN_VARIABLES: [&str; 1] = ["COWBOYCTL_LOG"];

/// The settings of a process that a pod does not have.
const NOT_FOR_PODS: [&str; 3] = ["binary", "cpus", "core_dumps"];

/// Where a devnet's nodes run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hosts {
    /// In the devnet's process.
    #[default]
    InProcess,
    /// Each in a process of its own on this machine.
    Process,
    /// Each in a container, by the user's own `docker compose` or `podman compose`.
    Compose,
    /// Each in a pod of a cluster, by the user's own `kubectl`.
    Kubernetes,
}

/// The image of nodes in containers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Image(String);

/// Why a text is not the name of an image.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no name of an image, as `cowboyctl` or `registry.example/cowboyctl:1.0`")]
pub struct ImageError(String);

impl Default for Image {
    fn default() -> Self {
        Self("cowboyctl".to_owned())
    }
}

impl FromStr for Image {
    type Err = ImageError;

    fn from_str(text: &str) -> Result<Self, ImageError> {
        let fits = |char: char| char.is_ascii_alphanumeric() || "._-/:@".contains(char);
        let begins = text.starts_with(|first: char| first.is_ascii_alphanumeric());
        match begins && text.len() <= MAX_IMAGE_BYTES && text.chars().all(fits) {
            true => Ok(Self(text.to_owned())),
            false => Err(ImageError(text.chars().take(40).collect())),
        }
    }
}

impl fmt::Display for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

from_text!(Image, deserialize_str, "the name of an image, as `cowboyctl`");

/// How a node's own process is run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProcessPlan {
    /// The `cowboyctl` that it runs; `None`: the devnet's own.
    pub binary: Option<PathBuf>,
    /// Variables of its environment in addition to the devnet's.
    pub env: BTreeMap<String, String>,
    /// The processors that it may use; `None`: all.
    pub cpus: Option<Cpus>,
    /// The limit of its private writable memory.
    pub memory: Option<Size>,
    /// Whether the kernel may write a core dump of it.
    pub core_dumps: bool,
    /// Whether it is started again after it died.
    pub restart: bool,
}

impl ProcessPlan {
    /// Checks the settings; the error has the field's path, below this node, and a message.
    pub(super) fn check(
        &self,
        hosts: Hosts,
        (list, index): (&'static str, usize),
    ) -> Result<(), (Vec<PathStep>, String)> {
        let refused =
            |field, message: String| Err((vec![Key(list), Item(index), Key(field)], message));
        let given = [
            ("binary", self.binary.is_some()),
            ("env", !self.env.is_empty()),
            ("cpus", self.cpus.is_some()),
            ("memory", self.memory.is_some()),
            ("core_dumps", self.core_dumps),
            ("restart", self.restart),
        ];
        let first = given.iter().find(|(_, given)| *given);
        if let Some((field, _)) = first.filter(|_| hosts == Hosts::InProcess) {
            let message = "it is for a process of its own: expected with `hosts: process`, `compose` or `kubernetes`";
            return refused(field, message.to_owned());
        }
        let unfit = given.iter().find(|(field, given)| *given && NOT_FOR_PODS.contains(field));
        if let Some((field, _)) = unfit.filter(|_| hosts == Hosts::Kubernetes) {
            return refused(field, "a pod does not have it".to_owned());
        }
        if let Some(memory) = self.memory.filter(|memory| *memory < MIN_MEMORY) {
            return refused("memory", format!("{memory}, expected {MIN_MEMORY} or more"));
        }
        if self.env.len() > MAX_VARIABLES {
            let message = format!("{} variables, expected at most {MAX_VARIABLES}", self.env.len());
            return refused("env", message);
        }
        for (name, value) in &self.env {
            let is_name = !name.is_empty() && !name.contains(['=', '\0']);
            if !is_name || value.contains('\0') || name.len() + value.len() > MAX_VARIABLE_BYTES {
                let name: String = name.chars().take(40).collect();
                return refused(
                    "env",
                    format!("`{name}` is not a variable that a process can have"),
                );
            }
            if name.starts_with("COWBOYCTL_") && !OWN_VARIABLES.contains(&name.as_str()) {
                return refused("env", format!("`{name}` is set by the devnet"));
            }
        }
        Ok(())
    }
}

/// A set of processors, written as `0-1,3`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cpus(pub BTreeSet<usize>);

/// Why a text is not a set of processors.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no list of processors, as `0-1,3`")]
pub struct CpusError(String);

impl FromStr for Cpus {
    type Err = CpusError;

    fn from_str(text: &str) -> Result<Self, CpusError> {
        let refused = || CpusError(text.chars().take(40).collect());
        let number = |text: &str| {
            let number = text.parse::<usize>().ok().filter(|cpu| *cpu <= MAX_CPU);
            number.filter(|_| text.bytes().all(|byte| byte.is_ascii_digit())).ok_or_else(refused)
        };
        let mut cpus = BTreeSet::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (number(first)?, number(last)?);
            if first > last {
                return Err(refused());
            }
            cpus.extend(first..=last);
        }
        Ok(Self(cpus))
    }
}

impl fmt::Display for Cpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0.iter().copied().peekable();
        let mut between = "";
        while let Some(first) = rest.next() {
            let mut last = first;
            while let Some(next) = rest.next_if_eq(&(last + 1)) {
                last = next;
            }
            match last == first {
                true => write!(f, "{between}{first}")?,
                false => write!(f, "{between}{first}-{last}")?,
            }
            between = ",";
        }
        Ok(())
    }
}

from_text!(Cpus, deserialize_str, "a list of processors, as `0-1,3`");

impl Serialize for Cpus {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

from_text!(Size, deserialize_str, "a size, as `512MB`");

impl Serialize for Size {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_read_and_written() {
        for (text, shown) in [("0", "0"), ("0-1,3", "0-1,3"), ("3,1,2", "1-3"), ("5,5-6", "5-6")] {
            assert_eq!(text.parse::<Cpus>().unwrap().to_string(), shown);
        }
        for text in ["", "a", "1-", "-1", "3-1", "1,,2", "+1", "1024", "0 - 1"] {
            assert!(text.parse::<Cpus>().is_err(), "{text}");
        }
    }

    #[test]
    fn images_have_names_that_no_command_takes_for_an_option() {
        for text in ["cowboyctl", "registry.example:5000/tools/cowboyctl:1.0", "a@sha256:0f"] {
            assert_eq!(text.parse::<Image>().unwrap().to_string(), text);
        }
        for text in ["", "-v", "a b", "a\nb", "${HOME}", &"a".repeat(256)] {
            assert!(text.parse::<Image>().is_err(), "{text}");
        }
    }
}

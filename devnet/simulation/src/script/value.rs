//! The values of a scenario. Each type rejects invalid input with an error that states what is
//! valid.

use cowboy_host::duration::parse_duration;
use serde::{Deserialize, Deserializer, de};
use std::{fmt, str::FromStr, time::Duration};

macro_rules! read_from_text {
    ($($name:ident: $expected:literal,)*) => {$(
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Text;

                impl de::Visitor<'_> for Text {
                    type Value = $name;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($expected)
                    }

                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$name, E> {
                        text.parse().map_err(E::custom)
                    }

                    fn visit_u64<E: de::Error>(self, number: u64) -> Result<$name, E> {
                        number.to_string().parse().map_err(E::custom)
                    }

                    fn visit_f64<E: de::Error>(self, number: f64) -> Result<$name, E> {
                        number.to_string().parse().map_err(E::custom)
                    }
                }

                deserializer.deserialize_any(Text)
            }
        }

        impl $name {
            fn refused(text: &str) -> String {
                let shown: String = text.chars().take(40).collect();
                format!("`{shown}`: expected {}", $expected)
            }
        }
    )*};
}

read_from_text! {
    Range: "a number of blocks, or a range as 10..40",
    Span: "blocks, as 20 or 10..40, or a time, as 15s",
    Node: "validator-N or runner-N",
    Who: "validator-N, runner-N, any-validator or any-runner",
    Place: "a node, as validator-0, or a link, as runner-1..validator-0",
    Share: "a percentage from 0 to 100, as 5 or 0.5",
}

fn number(text: &str) -> Option<u64> {
    let plain = (1..=9).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

/// A number, or a range to draw from, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    pub from: u64,
    pub to: u64,
}

impl FromStr for Range {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (from, to) = text.split_once("..").unwrap_or((text, text));
        match (number(from), number(to)) {
            (Some(from), Some(to)) if from <= to => Ok(Self { from, to }),
            _ => Err(Self::refused(text)),
        }
    }
}

/// The duration of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Span {
    Blocks(Range),
    /// A duration on the simulation's clock.
    Time(Duration),
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let blocks = text.parse().map(Self::Blocks);
        let time = || parse_duration(text).map(Self::Time);
        blocks.or_else(|_| time()).map_err(|_| Self::refused(text))
    }
}

/// A validator or a runner, by index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Node {
    /// `validator-N`.
    Validator(usize),
    /// `runner-N`.
    Runner(usize),
}

impl FromStr for Node {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let read = |prefix| {
            let index = text.strip_prefix(prefix).and_then(number)?;
            usize::try_from(index).ok()
        };
        let validator = read("validator-").map(Self::Validator);
        validator.or_else(|| read("runner-").map(Self::Runner)).ok_or_else(|| Self::refused(text))
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Validator(index) => write!(f, "validator-{index}"),
            Self::Runner(index) => write!(f, "runner-{index}"),
        }
    }
}

/// A node, or a placeholder for one to be drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    Node(Node),
    /// A validator without a fault of its own, if a quorum remains without it.
    AnyValidator,
    /// A runner without a fault of its own.
    AnyRunner,
}

impl FromStr for Who {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "any-validator" => Ok(Self::AnyValidator),
            "any-runner" => Ok(Self::AnyRunner),
            _ => text.parse().map(Self::Node).map_err(|_| Self::refused(text)),
        }
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node(node) => node.fmt(f),
            Self::AnyValidator => f.write_str("any-validator"),
            Self::AnyRunner => f.write_str("any-runner"),
        }
    }
}

/// All links of a node, or a single link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Of(Node),
    Between(Node, Node),
}

impl Place {
    pub fn nodes(self) -> impl Iterator<Item = Node> {
        let (first, second) = match self {
            Self::Of(node) => (node, None),
            Self::Between(a, b) => (a, Some(b)),
        };
        std::iter::once(first).chain(second)
    }

    pub fn has(self, a: Node, b: Node) -> bool {
        match self {
            Self::Of(node) => node == a || node == b,
            Self::Between(x, y) => (x, y) == (a, b) || (x, y) == (b, a),
        }
    }
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let read = || match text.split_once("..") {
            None => text.parse().map(Self::Of),
            Some((a, b)) => Ok(Self::Between(a.parse()?, b.parse()?)),
        };
        match read() {
            Ok(Self::Between(Node::Runner(_), Node::Runner(_))) => {
                Err(format!("`{text}`: runners have no links to each other"))
            }
            Ok(Self::Between(a, b)) if a == b => Err(format!("`{text}`: a link has two nodes")),
            read => read.map_err(|_: String| Self::refused(text)),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Of(node) => node.fmt(f),
            Self::Between(a, b) => write!(f, "{a}..{b}"),
        }
    }
}

/// A share in per mille, written as a percentage with one decimal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share(u32);

impl Share {
    pub const fn per_cent(of_hundred: u32) -> Self {
        Self(of_hundred * 10)
    }

    pub const fn per_mille(self) -> u32 {
        self.0
    }

    /// The share lost when `other` applies to the rest.
    pub const fn and(self, other: Self) -> Self {
        Self(1_000 - (1_000 - self.0) * (1_000 - other.0) / 1_000)
    }
}

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (whole, tenth) = text.split_once('.').unwrap_or((text, "0"));
        let read = number(whole).zip(number(tenth).filter(|_| tenth.len() == 1));
        let share = read.map(|(whole, tenth)| whole.saturating_mul(10).saturating_add(tenth));
        let share = share.filter(|share| *share <= 1_000).and_then(|it| u32::try_from(it).ok());
        share.map(Self).ok_or_else(|| Self::refused(text))
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 % 10 {
            0 => write!(f, "{} %", self.0 / 10),
            tenth => write!(f, "{}.{tenth} %", self.0 / 10),
        }
    }
}

/// Disjoint groups of nodes.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Groups(pub Vec<Vec<Node>>);

impl Groups {
    /// The index of a node's group; nodes outside all groups form one of their own.
    pub fn of(&self, node: Node) -> usize {
        self.0.iter().position(|group| group.contains(&node)).unwrap_or(self.0.len())
    }
}

impl fmt::Display for Groups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, group) in self.0.iter().enumerate() {
            let names: Vec<_> = group.iter().map(Node::to_string).collect();
            write!(f, "{}{}", if index == 0 { "" } else { " | " }, names.join(","))?;
        }
        Ok(())
    }
}

//! The matrix of a job, which creates one job for each combination of values.
//!
//! ```yaml
//! unit:
//!   matrix:
//!     os: [linux, macos]
//!     rust: [1.85, stable]
//!     exclude: [{ os: macos, rust: 1.85 }]
//!     include: [{ os: linux, rust: nightly }]
//!   requires: ["${{ matrix.os }}"]
//!   steps: ["cargo +${{ matrix.rust }} test"]
//! ```
//!
//! The run has `unit-linux-1.85`, `unit-linux-stable`, `unit-macos-stable` and
//! `unit-linux-nightly`; a job that needs `unit` needs all four.

use super::{
    MAX_JOBS,
    fields::{AxisValue, Field, JobName, Named, Text, Variable, shown},
};
use crate::template::{NEEDS, OPEN};
use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, Visitor},
};
use std::{collections::BTreeSet, fmt, marker::PhantomData, slice};

/// A job's matrix as written, with at least one combination.
#[derive(Debug)]
pub struct Matrix {
    axes: Vec<Variable>,
    combinations: Vec<Vec<AxisValue>>,
}

/// Values of the axes in an entry of `include` or `exclude`.
type Entry = Named<Variable, AxisValue>;

impl Matrix {
    /// In the order of the file.
    pub fn combinations(&self) -> impl Iterator<Item = Combination<'_>> {
        let axes = &self.axes;
        self.combinations.iter().map(|values| Combination { axes, values })
    }

    /// All combinations of these values, minus those that match `exclude`, plus `include`. Errors:
    /// the reason why they are not valid.
    fn new(
        axes: Vec<(Variable, Vec<AxisValue>)>,
        include: Vec<Entry>,
        exclude: &[Entry],
    ) -> Result<Self, String> {
        let mut combinations = vec![Vec::new()];
        for (Variable(axis), values) in &axes {
            let distinct: BTreeSet<_> = values.iter().collect();
            if values.is_empty() || distinct.len() < values.len() {
                return Err(format!("matrix.{axis}: expected values, each once"));
            }
            if combinations.len().saturating_mul(values.len()) > MAX_JOBS {
                return Err(format!("the matrix has more than {MAX_JOBS} combinations"));
            }
            let with = |before: &Vec<AxisValue>| {
                let before = before.clone();
                values.iter().map(move |value| [&before[..], slice::from_ref(value)].concat())
            };
            combinations = combinations.iter().flat_map(with).collect();
        }
        if axes.is_empty() {
            return Err("a matrix needs at least one axis, such as `os: [linux, macos]`".to_owned());
        }
        let place = |of: &Variable| axes.iter().position(|(axis, _)| axis == of);
        let unknown = |list: &str, of: &Variable| format!("{list}: the matrix has no `{}`", of.0);
        for entry in exclude {
            let mut wanted = Vec::new();
            for (axis, value) in &entry.0 {
                let at = place(axis).ok_or_else(|| unknown("exclude", axis))?;
                wanted.push((at, value));
            }
            let before = combinations.len();
            combinations.retain(|values| wanted.iter().any(|(at, value)| values[*at] != **value));
            if combinations.len() == before {
                return Err("exclude: an entry matches no combination".to_owned());
            }
        }
        for entry in include {
            if let Some((axis, _)) = entry.0.iter().find(|(axis, _)| place(axis).is_none()) {
                return Err(unknown("include", axis));
            }
            let values = axes.iter().map(|(axis, _)| entry.get(axis).cloned());
            let values: Option<Vec<_>> = values.collect();
            let values = values.ok_or("include: an entry has a value for every axis")?;
            if combinations.contains(&values) {
                return Err("include: the matrix has this combination already".to_owned());
            }
            combinations.push(values);
        }
        match combinations.len() {
            0 => Err("exclude leaves no combination".to_owned()),
            1..=MAX_JOBS => {
                let axes = axes.into_iter().map(|(axis, _)| axis).collect();
                Ok(Self { axes, combinations })
            }
            _ => Err(format!("the matrix has more than {MAX_JOBS} combinations")),
        }
    }
}

impl<'de> Deserialize<'de> for Matrix {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Axes;

        impl<'de> Visitor<'de> for Axes {
            type Value = Matrix;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a matrix: lists of values by name, perhaps `include` and `exclude`")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Matrix, A::Error> {
                let (mut axes, mut include, mut exclude) = (Vec::new(), None, None);
                while let Some(axis) = map.next_key::<Variable>()? {
                    let twice = match axis.0.as_str() {
                        "include" => include.replace(map.next_value()?).is_some(),
                        "exclude" => exclude.replace(map.next_value::<Vec<_>>()?).is_some(),
                        _ => {
                            let twice = axes.iter().any(|(known, _)| *known == axis);
                            axes.push((axis.clone(), map.next_value()?));
                            twice
                        }
                    };
                    if twice {
                        return Err(A::Error::custom(format!("the matrix has `{}` twice", axis.0)));
                    }
                }
                let (include, exclude) = (include.unwrap_or_default(), exclude.unwrap_or_default());
                Matrix::new(axes, include, &exclude).map_err(A::Error::custom)
            }
        }

        deserializer.deserialize_map(Axes)
    }
}

/// One value of each axis.
#[derive(Debug, Clone, Copy)]
pub struct Combination<'a> {
    axes: &'a [Variable],
    values: &'a [AxisValue],
}

impl Combination<'_> {
    /// The combination of a job without a matrix.
    pub const NONE: Self = Self { axes: &[], values: &[] };

    pub fn name(&self, of: &JobName) -> Result<String, String> {
        let mut name = of.0.clone();
        for AxisValue(value) in self.values {
            let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            name.push('-');
            name.extend(value.chars().map(|c| if fits(c) { c } else { '_' }));
        }
        let long = || format!("`{}` of its matrix: expected {}", shown(&name), JobName::EXPECTED);
        JobName::read(&name).map(|name| name.0).ok_or_else(long)
    }

    /// `text` with each `${{ matrix.AXIS }}` replaced.
    pub fn fill(&self, text: &str) -> Result<String, String> {
        self.fill_but(text, |_| false)
    }

    /// `text` with each `${{ matrix.AXIS }}` replaced, except expressions that `stays` accepts.
    fn fill_but(&self, text: &str, stays: fn(&str) -> bool) -> Result<String, String> {
        let (mut filled, mut rest) = (String::new(), text);
        while let Some(at) = rest.find(OPEN) {
            filled.push_str(&rest[..at]);
            let inside = rest[at + OPEN.len()..].split_once("}}");
            if let Some((kept, after)) = inside.filter(|(inside, _)| stays(inside)) {
                filled.extend([OPEN, kept, "}}"]);
                rest = after;
                continue;
            }
            let (name, after) = inside
                .and_then(|(name, after)| Some((name.trim().strip_prefix("matrix.")?, after)))
                .ok_or_else(|| {
                    format!("`{}`: expected ${{{{ matrix.AXIS }}}}", shown(&rest[at..]))
                })?;
            let axis = self.axes.iter().position(|axis| axis.0 == name);
            let value = axis.and_then(|axis| self.values.get(axis)).ok_or_else(|| {
                let axes: Vec<_> = self.axes.iter().map(|axis| &*axis.0).collect();
                match axes.is_empty() {
                    true => format!("matrix.{}: the job has no matrix", shown(name)),
                    false => format!("matrix.{}: the matrix has {}", shown(name), axes.join(", ")),
                }
            })?;
            filled.push_str(&value.0);
            rest = after;
        }
        filled.push_str(rest);
        Ok(filled)
    }

    /// `text` for a variable, which may also refer to needed jobs.
    pub fn fill_variable(&self, text: &str) -> Result<String, String> {
        match self.axes.is_empty() {
            true => Ok(text.to_owned()),
            false => self.fill_but(text, |inside| inside.trim_start().starts_with(NEEDS)),
        }
    }

    /// `text` for a step. Without a matrix, `${{` belongs to the job and stays as it is.
    pub fn fill_own(&self, text: &str) -> Result<String, String> {
        match self.axes.is_empty() {
            true => Ok(text.to_owned()),
            false => self.fill(text),
        }
    }
}

/// A value that may contain values of the job's matrix.
#[derive(Debug)]
pub enum Filled<T> {
    As(T),
    From(String),
}

impl<T: Field + Clone> Filled<T> {
    pub fn with(&self, values: &Combination<'_>) -> Result<T, String> {
        match self {
            Self::As(value) => Ok(value.clone()),
            Self::From(text) => T::parse(&values.fill(text)?),
        }
    }
}

impl<T: Field> Field for Filled<T> {
    const EXPECTED: &'static str = T::EXPECTED;

    fn read(text: &str) -> Option<Self> {
        match text.contains(OPEN) {
            true => Some(Self::From(text.to_owned())),
            false => T::read(text).map(Self::As),
        }
    }
}

impl<'de, T: Field> Deserialize<'de> for Filled<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Text(PhantomData))
    }
}

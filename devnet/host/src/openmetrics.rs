//! Metrics for Prometheus: OpenMetrics text, amounts, rows of series.
//!
//! Each subject has a registry of its own and encodes it as a [`part`]; the answer to a scrape is
//! the [`whole`] of the parts.

use prometheus_client::{
    encoding::{EncodeMetric, MetricEncoder, text},
    metrics::{MetricType, TypedMetric, counter::Counter, gauge::Gauge},
    registry::Registry,
};
use std::{collections::BTreeMap, fmt, sync::atomic::AtomicU64};

/// The MIME type of the text that [`whole`] returns.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A gauge of an amount in wei, which exceeds the range of integers: rounded above 2^53.
pub type AmountGauge = Gauge<f64, AtomicU64>;
/// A counter of amounts, rounded like [`AmountGauge`].
pub type AmountCounter = Counter<f64, AtomicU64>;
/// A gauge of a count.
pub type CountGauge = Gauge<u64, AtomicU64>;

/// Converts an amount for [`AmountGauge`] and [`AmountCounter`].
pub fn amount(wei: u128) -> f64 {
    wei as f64
}

/// Encodes one registry without the end mark that [`whole`] adds.
pub fn part(registry: &Registry) -> String {
    let mut text = String::new();
    text::encode_registry(&mut text, registry).expect("a string takes what is written to it");
    text
}

/// Adds the series of another program to the families of a part that it has as well: the lines for
/// which `wanted` is true.
pub fn with_series(part: &str, other: &str, wanted: impl Fn(&str) -> bool) -> String {
    let mut more = BTreeMap::<&str, Vec<&str>>::new();
    let mut family = "";
    for line in other.lines() {
        family = family_of(line).unwrap_or(family);
        if !line.starts_with('#') && wanted(line) {
            more.entry(family).or_default().push(line);
        }
    }
    let mut text = String::new();
    let mut add = |text: &mut String, family: &str| {
        for line in more.remove(family).into_iter().flatten() {
            text.push_str(line);
            text.push('\n');
        }
    };
    family = "";
    for line in part.lines() {
        if let Some(next) = family_of(line).filter(|next| *next != family) {
            add(&mut text, family);
            family = next;
        }
        text.push_str(line);
        text.push('\n');
    }
    add(&mut text, family);
    text
}

/// The family that a line of comment is about.
fn family_of(line: &str) -> Option<&str> {
    let about = line.strip_prefix("# HELP ").or_else(|| line.strip_prefix("# TYPE "))?;
    about.split(' ').next()
}

/// Joins the texts of registries that share no metric name; the type is [`CONTENT_TYPE`].
pub fn whole(parts: &[String]) -> String {
    let mut text = parts.concat();
    text::encode_eof(&mut text).expect("a string takes what is written to it");
    text
}

/// One series for each value of a label, in the order of the values.
#[derive(Clone, Debug)]
pub struct Row<M> {
    label: &'static str,
    series: Vec<(&'static str, M)>,
}

impl<M: Default> Row<M> {
    pub fn new(label: &'static str, values: impl Iterator<Item = &'static str>) -> Self {
        Self { label, series: values.map(|value| (value, M::default())).collect() }
    }

    /// The series of the value at index `place` among all values.
    pub fn at(&self, place: usize) -> &M {
        &self.series[place].1
    }
}

impl<M: EncodeMetric + TypedMetric> EncodeMetric for Row<M> {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        for (value, series) in &self.series {
            series.encode(encoder.encode_family(&[(self.label, *value)])?)?;
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        M::TYPE
    }
}

/// All samples of a text, by name with labels.
pub fn samples(text: &str) -> BTreeMap<&str, f64> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let (series, value) = line.rsplit_once(' ').expect("a sample is a name and a value");
            (series, value.parse().expect("a value is a number"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_of_another_program_come_after_those_of_their_family() {
        let ours = "# HELP a A.\n# TYPE a gauge\na{v=\"0\"} 1\n# HELP b B.\n# TYPE b counter\n";
        let theirs = "# HELP b B.\n# TYPE b counter\nb_total{v=\"1\"} 2\nb_total{v=\"2\"} 9\n\
                      # HELP c C.\n# TYPE c gauge\nc{v=\"1\"} 3\n\
                      # HELP a A.\n# TYPE a gauge\na{v=\"1\"} 4\n# EOF\n";
        let both = with_series(ours, theirs, |line| line.contains("v=\"1\""));
        let expected = "# HELP a A.\n# TYPE a gauge\na{v=\"0\"} 1\na{v=\"1\"} 4\n\
                        # HELP b B.\n# TYPE b counter\nb_total{v=\"1\"} 2\n";
        assert_eq!(both, expected);
    }
    use std::collections::BTreeMap;

    #[test]
    fn a_whole_has_every_part_and_one_end() {
        let one = |name: &str| {
            let mut registry = Registry::with_prefix(name);
            let row = Row::<CountGauge>::new("reason", ["this", "that"].into_iter());
            row.at(1).set(7);
            registry.register("things", "Things, by reason", row);
            part(&registry)
        };
        let text = whole(&[one("a"), one("b")]);
        let expected = BTreeMap::from([
            ("a_things{reason=\"that\"}", 7.0),
            ("a_things{reason=\"this\"}", 0.0),
            ("b_things{reason=\"that\"}", 7.0),
            ("b_things{reason=\"this\"}", 0.0),
        ]);
        assert_eq!(samples(&text), expected);
        assert!(text.ends_with("\n# EOF\n"), "{text}");
        assert_eq!(text.matches("# EOF").count(), 1, "{text}");
    }
}

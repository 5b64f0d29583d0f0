//! Gauges and counters of presence and of runners' connections, as Prometheus reads them
//! (docs/observability.md).
//!
//! Presence is derived from the newest certificate on the chain of the validator with the highest
//! head. The other metrics are counts of each running validator since it started: a label names the
//! validator, and a validator that does not run has no series.

use super::{convert::count, error::ApiError, view::View};
use crate::validator::journal::{Journal, Mru};
use cowboy_engine::presence::{Bitmap, ThresholdRule, canonical};
use cowboy_host::openmetrics::{self, CountGauge};
use prometheus_client::{
    encoding::{EncodeMetric, MetricEncoder},
    metrics::{MetricType, TypedMetric, counter::Counter, gauge::Gauge},
    registry::Registry,
};
use std::{fmt, sync::atomic::AtomicI64};

/// Series with labels that are only known at the time of a read.
#[derive(Debug)]
struct SeriesTable<M>(Vec<(Vec<(&'static str, String)>, M)>);

impl<M: EncodeMetric + TypedMetric + Send + Sync + fmt::Debug> EncodeMetric for SeriesTable<M> {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        for (labels, series) in &self.0 {
            series.encode(encoder.encode_family(labels)?)?;
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        M::TYPE
    }
}

fn counter(value: u64) -> Counter {
    let counter = Counter::default();
    counter.inc_by(value);
    counter
}

fn gauge(value: u64) -> CountGauge {
    let gauge = CountGauge::default();
    gauge.set(value);
    gauge
}

pub(super) fn part(view: &View) -> Result<String, ApiError> {
    let mut registry = Registry::default();
    presence(view, registry.sub_registry_with_prefix("presence"))?;
    connections(view, registry.sub_registry_with_prefix("runner"));
    Ok(openmetrics::part(&registry))
}

/// Registers the runners of the newest P(h), and the margin of votes by which they are present.
fn presence(view: &View, to: &mut Registry) -> Result<(), ApiError> {
    let newest = view.state.known_presence().map(|known| known.height);
    let stored = newest.map(|height| view.store().presence(height)).transpose()?.flatten();
    let certificate = stored.as_ref().and_then(|stored| stored.certificate().ok());
    let (Some(stored), Some(certificate)) = (stored, certificate) else { return Ok(()) };
    let len = stored.registry.len();
    let present = stored.bitmap().map_or(0, |bitmap| bitmap.ones().count());
    to.register("height", "The block of the newest P(h)", gauge(stored.height.get()));
    to.register("registered", "Runners that the newest P(h) is about", gauge(len.into()));
    to.register("present", "Runners that are present in the newest P(h)", gauge(present as u64));
    let votes = count(certificate.votes.len());
    to.register("votes", "Votes in the certificate of the newest P(h)", gauge(votes.into()));
    let validators = count(view.state.validators_in(view.state.epoch_at(stored.height)).len());
    let needed = match view.state.params().threshold_rule {
        ThresholdRule::Committee => canonical::of(validators),
        ThresholdRule::Quorum => canonical::of(votes),
        // Each runner has its own threshold.
        ThresholdRule::Subset => return Ok(()),
    };
    let ballots: Vec<(u32, &Bitmap)> =
        certificate.votes.iter().map(|vote| (vote.validator, &vote.presence)).collect();
    let counts = canonical::counts(&ballots, len);
    to.register("threshold", "Votes that make a runner present", gauge(needed.into()));
    let margin = |votes: &u32| i64::from(*votes) - i64::from(needed);
    if let Some(least) = counts.iter().map(margin).filter(|margin| *margin >= 0).min() {
        let gauge = Gauge::<i64, AtomicI64>::default();
        gauge.set(least);
        let help = "Votes beyond the threshold of the present runner that has the fewest";
        to.register("margin_votes", help, gauge);
    }
    Ok(())
}

fn connections(view: &View, to: &mut Registry) {
    let slots = view.backend.slots();
    let met = slots.iter().filter_map(|slot| {
        let node = slot.running()?.node;
        Some((slot.name().to_owned(), node.links().len() as u64, node.journal()?))
    });
    let met: Vec<(String, u64, (Journal, usize))> = met.collect();
    let of = |name: &str| vec![("validator", name.to_owned())];
    let each = |value: fn(&Journal) -> u64| {
        SeriesTable(met.iter().map(|(name, _, (met, _))| (of(name), counter(value(met)))).collect())
    };
    let open = met.iter().map(|(name, open, _)| (of(name), gauge(*open)));
    to.register("connections", "Runners connected to a validator", SeriesTable(open.collect()));
    let half = met.iter().map(|(name, _, (_, half))| (of(name), gauge(*half as u64)));
    let help = "Connections to a validator whose handshake is not complete";
    to.register("half_open_connections", help, SeriesTable(half.collect()));
    to.register("handshakes", "Handshakes completed", each(|met| met.connected));
    let help = "Handshakes completed by runners that had been connected before";
    to.register("reconnects", help, each(|met| met.reconnected));
    let ends = met.iter().flat_map(|(name, _, (met, _))| {
        met.ends.iter().map(move |(how, ends)| {
            let (by, reason) = how.names();
            let labels = [("by", by), ("reason", reason)].map(|(at, text)| (at, text.to_owned()));
            ([of(name), labels.to_vec()].concat(), counter(*ends))
        })
    });
    let help = "Connections that ended, by who said goodbye and why";
    to.register("disconnects", help, SeriesTable(ends.collect()));
    let draws = met.iter().flat_map(|(name, _, (met, _))| {
        Mru::ALL.map(|mru| {
            let labels = vec![("mru", mru.name().to_owned())];
            ([of(name), labels].concat(), counter(met.draws.get(&mru).copied().unwrap_or(0)))
        })
    });
    let help = "Draws that found a committee, by what the MRU record did";
    to.register("draws", help, SeriesTable(draws.collect()));
    let outcomes = met.iter().flat_map(|(name, _, (met, _))| {
        met.outcomes.iter().map(move |(answer, count)| {
            let labels = vec![("outcome", answer.name().to_owned())];
            ([of(name), labels].concat(), counter(*count))
        })
    });
    to.register(
        "dispatches",
        "Dispatches of jobs, by how they went",
        SeriesTable(outcomes.collect()),
    );
    let answers = met.iter().map(|(name, _, (met, _))| (of(name), met.answers.clone()));
    let help = "From the dispatch of a job to the runner's answer";
    to.register("dispatch_answer_duration_ms", help, SeriesTable(answers.collect()));
    let starts = met.iter().map(|(name, _, (met, _))| (of(name), met.starts.clone()));
    let help = "From the dispatch of a job to the runner's first report that it works on it";
    to.register("dispatch_start_duration_ms", help, SeriesTable(starts.collect()));
}

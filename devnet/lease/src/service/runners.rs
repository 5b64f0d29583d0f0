//! The runners that ask for work, and the reasons why a queued job is not granted to any of them.

use crate::machine::RunnerId;
use std::collections::{BTreeMap, BTreeSet};

/// How long a runner counts after its last request, in milliseconds; twice the longest wait for
/// work.
const RECENT: u64 = 60_000;

/// The last request for work of each runner with a token, since the server started.
#[derive(Default)]
pub(super) struct Runners(BTreeMap<RunnerId, (BTreeSet<String>, u64)>);

impl Runners {
    pub fn asks(&mut self, runner: &RunnerId, capabilities: &BTreeSet<String>, now: u64) {
        self.0.insert(runner.clone(), (capabilities.clone(), now));
    }

    pub fn forget(&mut self, runner: &RunnerId) {
        self.0.remove(runner);
    }

    /// All runners, sorted by id: id, capabilities, and time of the last request for work.
    pub fn all(&self) -> impl Iterator<Item = (&RunnerId, &BTreeSet<String>, u64)> {
        self.0.iter().map(|(runner, (capabilities, at))| (runner, capabilities, *at))
    }

    /// The reason why no runner has a job with these requirements yet; `seen` returns a runner's
    /// last request.
    pub fn why_queued(
        &self,
        requires: &[String],
        now: u64,
        seen: impl Fn(&RunnerId) -> Option<u64>,
    ) -> String {
        let recent = |runner: &RunnerId, at: u64| {
            now.saturating_sub(seen(runner).unwrap_or(0).max(at)) < RECENT
        };
        let here: Vec<_> = self.all().filter(|(runner, _, at)| recent(runner, *at)).collect();
        if here.is_empty() {
            return "no runner asked for work in the last minute".to_owned();
        }
        let has = |required: &&String| !here.iter().any(|(_, known, _)| known.contains(*required));
        let missing: Vec<_> = requires.iter().filter(has).map(String::as_str).collect();
        if !missing.is_empty() {
            return format!("no runner asked in the last minute that has: {}", missing.join(", "));
        }
        let able = here
            .iter()
            .filter(|(_, known, _)| requires.iter().all(|required| known.contains(required)));
        match able.count() {
            0 => format!(
                "no runner asked in the last minute that has all of: {}",
                requires.join(", ")
            ),
            1 => "the one runner that can do it has other jobs first".to_owned(),
            able => format!("the {able} runners that can do it have other jobs first"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_runner_has_is_named() {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let mut runners = Runners::default();
        let why = |runners: &Runners, requires: &[&str], now| {
            let requires: Vec<_> = requires.iter().map(|name| (*name).to_owned()).collect();
            runners.why_queued(&requires, now, |runner| (runner.0 == "busy").then_some(59_000))
        };
        let none = "no runner asked for work in the last minute";
        assert_eq!(why(&runners, &[], 0), none);
        runners.asks(&"a".into(), &set(&["linux"]), 0);
        runners.asks(&"busy".into(), &set(&["gpu"]), 0);
        assert_eq!(why(&runners, &[], 1), "the 2 runners that can do it have other jobs first");
        assert_eq!(
            why(&runners, &["gpu", "linux", "tpu"], 1),
            "no runner asked in the last minute that has: tpu"
        );
        assert_eq!(
            why(&runners, &["gpu", "linux"], 1),
            "no runner asked in the last minute that has all of: gpu, linux"
        );
        // The runner that is at work has made requests since.
        assert_eq!(
            why(&runners, &["linux"], 61_000),
            "no runner asked in the last minute that has: linux"
        );
        assert_eq!(
            why(&runners, &["gpu"], 61_000),
            "the one runner that can do it has other jobs first"
        );
        runners.forget(&"busy".into());
        assert_eq!(why(&runners, &["gpu"], 61_000), none);
    }
}

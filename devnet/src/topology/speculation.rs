//! `speculation`: how pipelines of tasks run ahead of the chain. Options are nested, as in `proof:
//! {workerThreads: 8}`, or dotted, as in `proof.workerThreads: 8`.

use cowboy_engine::speculation::{
    Config, ConfigError,
    config::{Problem, Setting},
};
use cowboy_host::{duration::parse_duration, located::PathStep};
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_json::Value;
use std::collections::BTreeMap;

/// `speculation`: options by name, with their values as texts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(transparent)]
pub struct SpeculationSection(BTreeMap<String, String>);

/// The maximum nesting depth of options.
const DEPTH: usize = 3;

impl<'de> Deserialize<'de> for SpeculationSection {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let mut options = BTreeMap::new();
        let mut left = vec![(String::new(), 0, value)];
        while let Some((place, depth, value)) = left.pop() {
            let value = match value {
                Value::Object(fields) if depth < DEPTH => {
                    left.extend(fields.into_iter().map(|(name, value)| {
                        let dot = if place.is_empty() { "" } else { "." };
                        (format!("{place}{dot}{name}"), depth + 1, value)
                    }));
                    continue;
                }
                Value::Null if depth == 0 => continue,
                Value::String(text) => text,
                Value::Bool(flag) => flag.to_string(),
                Value::Number(number) => number.to_string(),
                Value::Null | Value::Array(_) | Value::Object(_) => {
                    let place = if place.is_empty() { "it" } else { &place };
                    let message = format!("{place} is not an option with a value");
                    return Err(D::Error::custom(message));
                }
            };
            if place.is_empty() {
                return Err(D::Error::custom("expected the options of `speculation`"));
            }
            if options.insert(place.clone(), value).is_some() {
                return Err(D::Error::custom(format!("option `{place}` is given twice")));
            }
        }
        Ok(Self(options))
    }
}

impl SpeculationSection {
    /// The section that resolves to these options.
    pub fn of(options: &Options) -> Self {
        let explicit = options.explicit().into_iter();
        Self(explicit.map(|(name, value)| (name.to_owned(), value)).collect())
    }

    /// The options, or the path of the first invalid one and the reason.
    pub(super) fn options(&self) -> Result<Options, (Vec<PathStep>, String)> {
        let settings = self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        Options::default().with(settings).map_err(|wrong| {
            let wrong: Vec<_> =
                wrong.iter().map(|e| format!("{}: {}", e.option, e.problem)).collect();
            (vec![PathStep::Key("speculation")], wrong.join("; "))
        })
    }
}

/// The agent's default deposit, in wei.
pub const DEPOSIT: u64 = 100_000_000_000_000;
/// The longest configurable latency, in ms: an hour.
pub const MAX_LATENCY_MS: u64 = 3_600_000;

/// Every option of speculation in a devnet: the engine's ([`Config`]), and the devnet's own, which
/// imitate operations that take longer on other networks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The engine's options.
    pub config: Config,
    /// Latency added to the time that it takes to make a proof, in ms.
    pub proof_latency_ms: u64,
    /// The minimum time from a proof's submission to its confirmation, in ms.
    pub confirmation_latency_ms: u64,
    /// The agent's initial deposit, in wei.
    pub deposit: u64,
    explicit: [bool; 3],
}

impl Default for Options {
    fn default() -> Self {
        Self {
            config: Config::default(),
            proof_latency_ms: 0,
            confirmation_latency_ms: 0,
            deposit: DEPOSIT,
            explicit: [false; 3],
        }
    }
}

/// The names of the devnet's own options, in order.
const OWN: [&str; 3] = ["proof.latency", "confirmation.latency", "stake.deposit"];

impl Options {
    /// These options with `settings` applied, or all errors in the settings.
    pub fn with<'a>(
        &self,
        settings: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, Vec<ConfigError>> {
        let (mut options, mut wrong, mut others) = (self.clone(), Vec::new(), Vec::new());
        let mut seen = [false; 3];
        for (name, value) in settings {
            let short = name.strip_prefix("speculation.").unwrap_or(name);
            let Some(at) = OWN.iter().position(|own| *own == short) else {
                others.push((name, value));
                continue;
            };
            let read = match at {
                2 => value.parse().ok(),
                _ => millis(value),
            };
            let problem = match read {
                None => Some(Problem::OutOfRange { value: value.to_owned(), range: range(at) }),
                Some(_) if seen[at] => Some(Problem::Twice),
                Some(value) => {
                    *options.own(at) = value;
                    None
                }
            };
            (seen[at], options.explicit[at]) = (true, true);
            wrong.extend(problem.map(|problem| ConfigError { option: short.to_owned(), problem }));
        }
        match options.config.with(others) {
            Ok(config) => options.config = config,
            Err(errors) => wrong.extend(errors),
        }
        if wrong.is_empty() {
            wrong.extend(options.contradictions());
        }
        wrong.sort();
        if wrong.is_empty() { Ok(options) } else { Err(wrong) }
    }

    /// Finds options that would let no task be accepted, or make each task late.
    fn contradictions(&self) -> impl Iterator<Item = ConfigError> {
        let config = &self.config;
        let wrong = |option: &str, value: String, other, is: u64, expected| ConfigError {
            option: option.to_owned(),
            problem: Problem::Contradicts { value, other, is: is.to_string(), expected },
        };
        let deposit = (self.deposit < config.min_stake).then(|| {
            let value = self.deposit.to_string();
            wrong(OWN[2], value, "stake.minStake", config.min_stake, "no less than that")
        });
        let shorter = "a shorter span, or every task is late";
        let late = |at: usize, ms: u64, other, most: u64| {
            (ms >= most).then(|| wrong(OWN[at], self.value(at), other, most, shorter))
        };
        let (proof, confirmation) = (self.proof_latency_ms, self.confirmation_latency_ms);
        let most = config.commitment_ttl_ms;
        let made = late(0, proof, "proof.timeoutMs", config.proof_timeout_ms);
        let made = made.or_else(|| late(0, proof, "commitmentTtlMs", most));
        let told = late(1, confirmation, "confirmationTimeoutMs", config.confirmation_timeout_ms);
        let told = told.or_else(|| late(1, confirmation, "commitmentTtlMs", most));
        deposit.into_iter().chain(made).chain(told)
    }

    const fn own(&mut self, at: usize) -> &mut u64 {
        match at {
            0 => &mut self.proof_latency_ms,
            1 => &mut self.confirmation_latency_ms,
            _ => &mut self.deposit,
        }
    }

    fn value(&self, at: usize) -> String {
        match at {
            0 => format!("{}ms", self.proof_latency_ms),
            1 => format!("{}ms", self.confirmation_latency_ms),
            _ => self.deposit.to_string(),
        }
    }

    /// All options with their current values, the engine's first.
    pub fn settings(&self) -> Vec<Setting> {
        let own = OWN.iter().enumerate().map(|(at, option)| Setting {
            option,
            value: self.value(at),
            range: range(at),
            explicit: self.explicit[at],
        });
        self.config.settings().chain(own).collect()
    }

    /// The explicitly set options. Applied to the defaults, they give these options.
    pub fn explicit(&self) -> Vec<(&'static str, String)> {
        let own = (0..OWN.len()).filter(|at| self.explicit[*at]);
        self.config.explicit().chain(own.map(|at| (OWN[at], self.value(at)))).collect()
    }
}

/// A duration in ms.
fn millis(text: &str) -> Option<u64> {
    let ms = u64::try_from(parse_duration(text).ok()?.as_millis()).ok()?;
    (ms <= MAX_LATENCY_MS).then_some(ms)
}

fn range(at: usize) -> String {
    match at {
        2 => "a whole number of wei".to_owned(),
        _ => "a span up to an hour, as 400ms or 5s".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_devnets_own_options_stand_beside_the_engines() {
        let options = Options::default()
            .with([("proof.latency", "5s"), ("speculation.maxDepth", "7"), ("mode", "aggressive")])
            .unwrap();
        assert_eq!((options.proof_latency_ms, options.config.max_depth), (5_000, 7));
        let said = options.explicit();
        assert!(said.contains(&("proof.latency", "5000ms".to_owned())), "{said:?}");
        let said: Vec<_> = said.iter().map(|(name, value)| (*name, value.as_str())).collect();
        assert_eq!(Options::default().with(said).unwrap(), options);
        assert_eq!(options.settings().len(), Config::default().settings().count() + 3);
    }

    #[test]
    fn options_that_contradict_one_another_are_refused() {
        let check = |settings: &[(&str, &str)], expected: &str| {
            let wrong = Options::default().with(settings.iter().copied()).unwrap_err();
            let texts: Vec<String> = wrong.iter().map(ToString::to_string).collect();
            assert_eq!(texts, [expected]);
        };
        check(
            &[("stake.deposit", "5")],
            "speculation.stake.deposit: `5` does not go with `stake.minStake`, which is \
             `100000000000`: expected no less than that",
        );
        check(
            &[("proof.latency", "5s"), ("proof.timeoutMs", "5000")],
            "speculation.proof.latency: `5000ms` does not go with `proof.timeoutMs`, which is \
             `5000`: expected a shorter span, or every task is late",
        );
        check(
            &[("confirmation.latency", "30s")],
            "speculation.confirmation.latency: `30000ms` does not go with \
             `confirmationTimeoutMs`, which is `30000`: expected a shorter span, or every task is \
             late",
        );
        let both = Options::default().with([("stake.deposit", "5"), ("stake.minStake", "5")]);
        let both = both.unwrap();
        assert_eq!(both.with([("stake.minStake", "6")]).unwrap_err().len(), 1);
    }

    #[test]
    fn all_that_is_wrong_is_told() {
        let wrong = Options::default()
            .with([("proof.latency", "5"), ("maxDepth", "77"), ("stake.deposit", "-1"), ("x", "1")])
            .unwrap_err();
        let texts: Vec<String> = wrong.iter().map(ToString::to_string).collect();
        assert_eq!(texts.len(), 4, "{texts:?}");
        assert!(texts.iter().any(|text| text.contains("proof.latency: `5` is out of range")));
        let twice = Options::default().with([("proof.latency", "1s"), ("proof.latency", "2s")]);
        assert_eq!(twice.unwrap_err()[0].problem, Problem::Twice);
    }
}

//! `assert`: waits until expressions about a devnet hold.

use crate::{
    args::{self, HeightArg},
    context::{Context, Deadline},
    error::{CliError, Exit},
    output::{Document, Filter},
};
use clap::Args;
use cowboy_devnet::{
    client::Client,
    report::RECENT_BLOCKS,
    types::{Event, EventQuery, Status},
};
use serde::Serialize;
use std::{
    collections::BTreeMap,
    ops::ControlFlow,
    time::{Duration, Instant},
};

/// Maximum number of events that expressions are about, so that the document stays small.
const MAX_EVENTS: usize = 20_000;

/// `assert`.
#[derive(Debug, Args)]
pub struct Assert {
    /// Expressions in the language of jq, such as '.status.head.height > 10'; all have to hold
    #[arg(value_name = "EXPRESSION", required_unless_present = "show")]
    expressions: Vec<String>,
    /// How long to wait for them; 0s: they have to hold now
    #[arg(long, value_parser = args::duration, value_name = "DURATION", default_value = "30s")]
    timeout: Duration,
    /// The first height whose events count [default: 100 blocks before the head]
    #[arg(long, value_name = "HEIGHT")]
    from: Option<HeightArg>,
    /// Print what expressions are about
    #[arg(long, conflicts_with = "expressions")]
    show: bool,
}

/// What the expressions of `assert` are about.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Assertable {
    /// As `devnet status` prints it.
    status: Status,
    /// The events since `--from`, as `chain events` prints them, if an expression mentions them.
    events: Vec<Event>,
    /// The series of each metric, by its name, if an expression mentions them.
    metrics: BTreeMap<String, Vec<Series>>,
}

/// A value of a metric.
#[derive(Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Series {
    /// Its labels.
    labels: BTreeMap<String, String>,
    /// The value.
    value: f64,
}

/// Expressions that hold.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct AssertReport {
    /// The expressions.
    expressions: Vec<String>,
    /// The head's height then; null without a block.
    height: Option<u64>,
    /// How long they were waited for.
    waited_ms: u64,
}

/// An expression, ready to run.
pub struct Compiled<'a> {
    pub source: &'a str,
    filter: Filter,
}

impl<'a> Compiled<'a> {
    pub fn of(source: &'a str) -> Result<Self, CliError> {
        // By itself, so that an error shows its place.
        drop(Filter::jq(source).map_err(|error| about(error, source))?);
        let filter = Filter::jq(&format!("({source}\n) | if . then true else false end"))?;
        Ok(Self { source, filter })
    }

    /// Whether it gives results, and none of them is false or null.
    pub fn holds(&self, document: &str) -> Result<bool, CliError> {
        let (mut any, mut all) = (false, true);
        let ran = self.filter.apply(document.to_owned(), |line| {
            any = true;
            all &= line == b"true\n";
            Ok(())
        });
        ran.map_err(|error| about(error, self.source))?;
        Ok(any && all)
    }
}

/// An error of a filter as that of an expression.
fn about(error: CliError, source: &str) -> CliError {
    let what = error.what.replacen("--jq: ", "", 1);
    let hint = "try it: cowboyctl assert --show --jq EXPRESSION";
    CliError { what: format!("{source}: {what}"), ..error }.hint(hint)
}

/// The parts of a document that change with each block.
struct Observed<'a> {
    client: &'a Client,
    events: Option<Vec<Event>>,
    /// The first height whose events have not been asked for.
    next: u64,
    metrics: bool,
}

impl Observed<'_> {
    async fn now(&mut self) -> Result<Assertable, CliError> {
        if let Some(events) = &mut self.events {
            loop {
                let query = EventQuery { from: Some(self.next), ..EventQuery::default() };
                let page = self.client.events(&query).await?;
                let last = page.events.last().map(|event| event.height);
                events.extend(page.events);
                if events.len() > MAX_EVENTS {
                    let what = format!("more than {MAX_EVENTS} events since the first height");
                    return Err(CliError::new(Exit::Usage, what).hint("begin later: --from HEIGHT"));
                }
                match (page.next, last) {
                    (Some(next), _) if next > self.next => self.next = next,
                    (_, last) => {
                        self.next = last.map_or(self.next, |last| last + 1);
                        break;
                    }
                }
            }
        }
        let metrics = match self.metrics {
            true => series(&self.client.metrics().await?),
            false => BTreeMap::new(),
        };
        let status = self.client.status().await?;
        Ok(Assertable { status, events: self.events.clone().unwrap_or_default(), metrics })
    }
}

impl Assert {
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        let started = Instant::now();
        let expressions: Vec<_> =
            self.expressions.iter().map(|source| Compiled::of(source)).collect::<Result<_, _>>()?;
        let client = cx.client()?;
        let next = match &self.from {
            Some(at) => at.height(&client).await?,
            None => client.head().await?.height.saturating_sub(RECENT_BLOCKS),
        };
        let mentions =
            |part: &str| self.show || self.expressions.iter().any(|text| text.contains(part));
        let (events, metrics) = (mentions("events").then(Vec::new), mentions("metrics"));
        let mut observed = Observed { client: &client, events, next, metrics };
        if self.show {
            return cx.ui.document(&observed.now().await?);
        }
        let mut look = async || {
            let now = observed.now().await?;
            let height = now.status.head.as_ref().map(|head| head.height);
            let document =
                serde_json::to_string(&now).map_err(|e| CliError::failed(e.to_string()))?;
            for expression in &expressions {
                if !expression.holds(&document)? {
                    let at = match height {
                        Some(height) => format!("at height {height}"),
                        None => "before the first block".to_owned(),
                    };
                    let seen = format!("`{}` does not hold {at}", expression.source);
                    return Ok(ControlFlow::Continue(seen));
                }
            }
            Ok(ControlFlow::Break(height))
        };
        let height = match (look().await?, self.timeout) {
            (ControlFlow::Break(height), _) => height,
            (ControlFlow::Continue(seen), Duration::ZERO) => {
                return Err(CliError::failed(seen).hint(
                    "what it is about: cowboyctl assert --show; to wait for it: --timeout 30s",
                ));
            }
            (ControlFlow::Continue(_), timeout) => {
                let awaited = self.expressions.join(", ");
                Deadline::after(timeout).until(cx.ui, &client, &awaited, look).await?
            }
        };
        let waited_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        cx.ui.document(&AssertReport { expressions: self.expressions, height, waited_ms })
    }
}

/// The series in OpenMetrics text. Other lines are left out.
fn series(text: &str) -> BTreeMap<String, Vec<Series>> {
    let mut all = BTreeMap::<String, Vec<Series>>::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let Some((name, value)) = line.rsplit_once(' ') else { continue };
        let Some(value) = value.parse().ok().filter(|value: &f64| value.is_finite()) else {
            continue;
        };
        let (name, labels) = match name.split_once('{') {
            Some((name, rest)) => (name, labels(rest.trim_end_matches('}'))),
            None => (name, BTreeMap::new()),
        };
        all.entry(name.to_owned()).or_default().push(Series { labels, value });
    }
    all
}

/// Labels such as `a="1",b="2"`; a backslash takes a quote, a backslash or a new line.
fn labels(text: &str) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::new();
    let mut rest = text;
    while let Some((name, after)) = rest.split_once("=\"") {
        let mut value = String::new();
        let mut characters = after.char_indices();
        let mut end = after.len();
        while let Some((at, character)) = characters.next() {
            match character {
                '"' => {
                    end = at + 1;
                    break;
                }
                '\\' => match characters.next() {
                    Some((_, 'n')) => value.push('\n'),
                    Some((_, other)) => value.push(other),
                    None => {}
                },
                other => value.push(other),
            }
        }
        labels.insert(name.trim_start_matches(',').to_owned(), value);
        rest = &after[end..];
    }
    labels
}

impl Document for Assertable {
    fn text(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    fn id(&self) -> String {
        self.status.name.clone()
    }
}

impl Document for AssertReport {
    fn text(&self) -> String {
        let lines = self.expressions.iter().map(|expression| format!("holds  {expression}"));
        lines.collect::<Vec<_>>().join("\n")
    }

    fn id(&self) -> String {
        self.height.map(|height| height.to_string()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::{Compiled, Exit, Series, series};
    use std::collections::BTreeMap;

    #[test]
    fn an_expression_holds_if_all_its_results_are_true() {
        let holds = |source, document| Compiled::of(source).unwrap().holds(document);
        for (source, expected) in [
            (".a > 1", true),
            (".a > 2", false),
            (".a", true),
            (".none", false),
            ("\"false\"", true),
            ("empty", false),
            (".list[] > 0", false),
            (".list[1:][] > 0 # with a comment", true),
        ] {
            assert_eq!(holds(source, r#"{"a":2,"list":[0,1]}"#), Ok(expected), "{source}");
        }
        let error = holds(".a | keys", r#"{"a":2}"#).unwrap_err();
        assert_eq!(error.exit, Exit::Failed);
        assert!(error.what.starts_with(".a | keys: "), "{error:?}");
        let error = Compiled::of(".a >").err().unwrap();
        assert_eq!(error.exit, Exit::Usage);
        assert!(!error.what.contains("--jq"), "{error:?}");
    }

    #[test]
    fn metrics_are_read_with_their_labels() {
        let text = "# HELP a about\na_total 3\nb{x=\"1\",y=\"a \\\"b\\\",c\"} 0.5\nb{x=\"2\"} NaN\n# EOF\n";
        let one = |labels: &[(&str, &str)], value| {
            let labels = labels.iter().map(|(name, value)| ((*name).into(), (*value).into()));
            vec![Series { labels: labels.collect(), value }]
        };
        let expected = [
            ("a_total".to_owned(), one(&[], 3.0)),
            ("b".to_owned(), one(&[("x", "1"), ("y", "a \"b\",c")], 0.5)),
        ];
        assert_eq!(series(text), BTreeMap::from(expected));
    }
}

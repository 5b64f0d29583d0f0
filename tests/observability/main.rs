//! Rules, dashboard, runbooks and docs name only metrics and alerts that exist.
//!
//! The metrics come from the text that a devnet exports ([`Metrics::encode`],
//! [`LaneMetrics::encode`]), the alerts from the rules (`examples/observability/alerts.yml`).
//! If `promtool` is on the PATH, it checks the rules, too; otherwise the test says so and skips
//! only that.

use cowboy_devnet::{api::LaneMetrics, speculation::metrics::Metrics};
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::Command,
};

/// Labels that Prometheus and its configuration add to scraped metrics.
const ADDED: [&str; 3] = ["job", "instance", "devnet"];

/// The prefixes of this project's metrics.
const PREFIXES: [&str; 2] = ["speculation_", "timer_lane_"];

/// The sections of the docs that list metrics.
const LISTS: [&str; 2] = ["Metrics of speculation", "Metrics of the timer lane"];

fn path(below_top: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(below_top)
}

fn read(below_top: &str) -> String {
    let path = path(below_top);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn yaml(below_top: &str) -> Value {
    serde_yaml::from_str(&read(below_top))
        .unwrap_or_else(|error| panic!("{below_top}: not YAML: {error}"))
}

/// The string at a JSON pointer of a document.
fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    let found = value.pointer(pointer).and_then(Value::as_str);
    found.unwrap_or_else(|| panic!("no text at {pointer} of {value:#}"))
}

fn list<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    let found = value.pointer(pointer).and_then(Value::as_array);
    found.unwrap_or_else(|| panic!("no list at {pointer} of {value:#}"))
}

/// An exported metric.
#[derive(Debug, PartialEq, Eq)]
struct Metric {
    kind: String,
    /// Labels with their values, which are empty for the labels of buckets.
    labels: BTreeMap<String, BTreeSet<String>>,
}

struct Exported {
    /// By name; a counter's ends with `_total`.
    metrics: BTreeMap<String, Metric>,
    /// The name of each sample's metric, by the sample's name.
    samples: BTreeMap<String, String>,
}

impl Exported {
    fn new() -> Self {
        let encoded = Metrics::new().encode() + &LaneMetrics::new().encode();
        let mut exported = Self { metrics: BTreeMap::new(), samples: BTreeMap::new() };
        let mut current = (String::new(), String::new());
        for line in encoded.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').expect("a name and a type");
                let total = if kind == "counter" { "_total" } else { "" };
                current = (name.to_owned(), format!("{name}{total}"));
                let metric = Metric { kind: kind.to_owned(), labels: BTreeMap::new() };
                exported.metrics.insert(current.1.clone(), metric);
            } else if !line.starts_with('#') {
                let (series, _) = line.rsplit_once(' ').expect("a name and a value");
                let (name, labels) = series.split_once('{').unwrap_or((series, ""));
                assert!(name.starts_with(&current.0), "{series} is below {}", current.0);
                exported.samples.insert(name.to_owned(), current.1.clone());
                let metric = exported.metrics.get_mut(&current.1).expect("its type came first");
                for (label, value) in matchers(labels.trim_end_matches('}')) {
                    let values = metric.labels.entry(label).or_default();
                    if !name.ends_with("_bucket") {
                        values.insert(value);
                    }
                }
            }
        }
        exported
    }

    /// The metrics that an expression uses, and its errors in this project's names and their
    /// labels.
    fn judge(&self, expression: &str) -> (BTreeSet<String>, Vec<String>) {
        let (mut used, mut wrong) = (BTreeSet::new(), Vec::new());
        let name_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
        let mut rest = expression;
        while let Some(start) = rest.find(name_part) {
            let from = &rest[start..];
            let end = from.find(|c| !name_part(c)).unwrap_or(from.len());
            let (name, after) = from.split_at(end);
            rest = after;
            if !PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
                continue;
            }
            let Some(metric) = self.samples.get(name) else {
                wrong.push(format!("{name} is not exported"));
                continue;
            };
            used.insert(metric.clone());
            let Some((selector, after)) =
                after.strip_prefix('{').and_then(|rest| rest.split_once('}'))
            else {
                continue;
            };
            rest = after;
            for (label, value) in matchers(selector) {
                let values = self.metrics[metric].labels.get(&label);
                match values {
                    None if ADDED.contains(&label.as_str()) => {}
                    None => wrong.push(format!("{name} has no label {label}")),
                    Some(values) => wrong.extend(
                        value
                            .split('|')
                            .filter(|one| !values.is_empty() && !values.contains(*one))
                            .map(|one| format!("{name}: {label} is never {one}")),
                    ),
                }
            }
        }
        (used, wrong)
    }
}

/// Labels and values of a selector without its braces: `a="b",c=~"d|e"`. No value here holds a
/// comma or an escaped quote.
fn matchers(selector: &str) -> Vec<(String, String)> {
    let parts = selector.split(',').filter(|part| !part.trim().is_empty());
    parts
        .map(|part| {
            let (label, value) = part.split_once('=').expect("a label and its value");
            let value = value.trim_start_matches('~').trim_matches('"');
            (label.trim().trim_end_matches('!').to_owned(), value.to_owned())
        })
        .collect()
}

/// An alert's rule.
struct Alert {
    name: String,
    expression: String,
    severity: String,
    runbook: String,
}

fn alerts() -> Vec<Alert> {
    let rules = yaml("examples/observability/alerts.yml");
    let rules = list(&rules, "/groups").iter().flat_map(|group| list(group, "/rules"));
    rules
        .map(|rule| {
            for field in ["summary", "description"] {
                assert!(!text(rule, &format!("/annotations/{field}")).is_empty(), "{rule:#}");
            }
            Alert {
                name: text(rule, "/alert").to_owned(),
                expression: text(rule, "/expr").to_owned(),
                severity: text(rule, "/labels/severity").to_owned(),
                runbook: text(rule, "/annotations/runbook_url").to_owned(),
            }
        })
        .collect()
}

/// Rows of the table of a Markdown section, as cells without backticks; without the head.
fn table(document: &str, heading: &str) -> Vec<Vec<String>> {
    let section = document.split("\n## ").find(|section| section.starts_with(heading));
    let section = section.unwrap_or_else(|| panic!("no section {heading}"));
    let lines = section.lines().skip_while(|line| !line.starts_with('|'));
    let rows = lines.take_while(|line| line.starts_with('|')).skip(2);
    rows.map(|row| {
        let cells = row.trim_matches('|').split('|');
        cells.map(|cell| cell.trim().trim_matches('`').to_owned()).collect()
    })
    .collect()
}

#[test]
fn alerts_are_those_of_the_design_document() {
    let got: Vec<_> = alerts().into_iter().map(|alert| (alert.name, alert.severity)).collect();
    // AgenC §8.4, then §5.4 and §11.2.
    let expected = [
        ("SpeculationRollbackRateHigh", "warning"),
        ("SpeculationConfirmationSlow", "warning"),
        ("SpeculationQueueBacklog", "warning"),
        ("SpeculationStakeExhausted", "critical"),
        ("SpeculationErrorRate", "critical"),
        ("SpeculationDisabled", "critical"),
        ("SpeculationClaimExpiryNear", "warning"),
        ("SpeculationSlashRateHigh", "critical"),
        ("SpeculationManualOverride", "warning"),
    ];
    assert_eq!(got, expected.map(|(name, severity)| (name.to_owned(), severity.to_owned())));
}

#[test]
fn alerts_use_what_is_exported() {
    let exported = Exported::new();
    for Alert { name, expression, .. } in alerts() {
        let (used, wrong) = exported.judge(&expression);
        assert!(wrong.is_empty(), "{name}: {}", wrong.join("; "));
        assert!(!used.is_empty(), "{name} looks at nothing of ours: {expression}");
    }
}

#[test]
fn the_series_of_the_rules_tests_are_exported() {
    let exported = Exported::new();
    let tests = yaml("examples/observability/alerts.test.yml");
    let mut fired = BTreeSet::new();
    for test in list(&tests, "/tests") {
        for input in list(test, "/input_series") {
            let (_, wrong) = exported.judge(text(input, "/series"));
            assert!(wrong.is_empty(), "{}: {}", text(test, "/name"), wrong.join("; "));
        }
        for expected in list(test, "/promql_expr_test").iter().flat_map(|t| list(t, "/exp_samples"))
        {
            let labels = text(expected, "/labels").trim_matches(['{', '}']);
            let labels: BTreeMap<_, _> = matchers(labels).into_iter().collect();
            fired.insert((labels["alertname"].clone(), labels["severity"].clone()));
        }
    }
    let all = alerts().into_iter().map(|alert| (alert.name, alert.severity));
    assert_eq!(fired, all.collect(), "alerts that some test sees fire");
}

#[test]
fn every_alert_has_its_runbook_and_every_runbook_an_alert() {
    let mut expected = BTreeSet::new();
    for Alert { name, runbook, .. } in alerts() {
        assert_eq!(runbook, format!("docs/runbooks/{name}.md"));
        let page = read(&runbook);
        assert!(page.starts_with(&format!("# {name}\n")), "{runbook} has another title");
        let sections: Vec<_> = page.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        assert_eq!(sections, ["Meaning", "Likely causes", "Look at", "Do"], "{runbook}");
        expected.insert(format!("{name}.md"));
    }
    let folder = fs::read_dir(path("docs/runbooks")).expect("docs/runbooks can be listed");
    let names = folder.map(|entry| entry.expect("an entry can be read").file_name());
    let got: BTreeSet<_> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    assert_eq!(got, expected);
}

#[test]
fn the_dashboard_shows_every_metric_and_no_other() {
    let exported = Exported::new();
    let json = read("examples/observability/grafana-dashboard.json");
    let dashboard: Value = serde_json::from_str(&json).expect("the dashboard is JSON");
    let variables: BTreeMap<_, _> = list(&dashboard, "/templating/list")
        .iter()
        .map(|variable| (text(variable, "/name"), text(variable, "/type")))
        .collect();
    assert_eq!(variables.get("datasource"), Some(&"datasource"));

    let (mut shown, mut ids, mut cells) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for panel in list(&dashboard, "/panels") {
        let title = text(panel, "/title");
        assert!(ids.insert(panel["id"].as_u64().expect("an id")), "{title}: its id is taken");
        let place = |side: &str| panel["gridPos"][side].as_u64().expect("a side of gridPos");
        assert!(place("x") + place("w") <= 24, "{title} is beyond the right edge");
        for cell in (place("x")..place("x") + place("w"))
            .flat_map(|x| (place("y")..place("y") + place("h")).map(move |y| (x, y)))
        {
            assert!(cells.insert(cell), "{title} covers another panel at {cell:?}");
        }
        if text(panel, "/type") == "row" {
            continue;
        }
        assert_eq!(text(panel, "/datasource/uid"), "${datasource}", "{title}");
        assert!(!text(panel, "/description").is_empty(), "{title} has no description");
        let mut letters = BTreeSet::new();
        for target in list(panel, "/targets") {
            assert!(letters.insert(text(target, "/refId")), "{title}: two of one letter");
            let (used, wrong) = exported.judge(&known(text(target, "/expr"), &variables));
            assert!(wrong.is_empty(), "{title}: {}", wrong.join("; "));
            shown.extend(used);
        }
        assert!(!letters.is_empty(), "{title} shows nothing");
    }
    let all: BTreeSet<_> = exported.metrics.into_keys().collect();
    assert_eq!(shown, all, "metrics that some panel shows");
}

/// Returns an expression after checking that each of its variables is the dashboard's or Grafana's.
fn known(expression: &str, variables: &BTreeMap<&str, &str>) -> String {
    for rest in expression.split('$').skip(1) {
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let name = &rest[..end];
        let ours = variables.contains_key(name);
        assert!(ours || ["__range", "__rate_interval"].contains(&name), "there is no ${name}");
    }
    expression.to_owned()
}

#[test]
fn the_docs_list_what_is_exported() {
    let document = read("docs/observability.md");
    let documented: BTreeMap<_, _> = LISTS
        .iter()
        .flat_map(|heading| table(&document, heading))
        .map(|row| {
            let labels = Some(&row[2]).filter(|label| !label.is_empty());
            (row[0].clone(), (row[1].clone(), labels.cloned().into_iter().collect()))
        })
        .collect();
    let exported: BTreeMap<_, (_, Vec<_>)> = Exported::new()
        .metrics
        .into_iter()
        .map(|(name, metric)| {
            let labels = metric.labels.into_keys().filter(|label| label != "le").collect();
            (name, (metric.kind, labels))
        })
        .collect();
    assert_eq!(documented, exported);

    // The document names every value of a label.
    for (name, metric) in Exported::new().metrics {
        for value in metric.labels.values().flatten() {
            assert!(document.contains(&format!("`{value}`")), "{name}: {value} is not documented");
        }
    }
    let listed: Vec<_> = table(&document, "Alerts")
        .into_iter()
        .map(|row| (row[0].clone(), row[1].clone(), row[3].clone()))
        .collect();
    let rules: Vec<_> = alerts()
        .into_iter()
        .map(|alert| {
            let link = alert.runbook.trim_start_matches("docs/").to_owned();
            (alert.name, alert.severity, format!("[what to do]({link})"))
        })
        .collect();
    assert_eq!(listed, rules);
}

#[test]
fn the_devnet_is_scraped_on_the_loopback_and_the_rules_are_loaded() {
    let config = yaml("examples/observability/prometheus.yml");
    assert_eq!(list(&config, "/rule_files"), ["alerts.yml"]);
    let scrape = list(&config, "/scrape_configs");
    assert_eq!(scrape.len(), 1);
    assert_eq!(text(&scrape[0], "/metrics_path"), "/metrics");
    let target = text(&scrape[0], "/static_configs/0/targets/0");
    let port = target.strip_prefix("127.0.0.1:").expect("a devnet listens on the loopback");
    assert!(port.parse::<u16>().is_ok_and(|port| port > 0), "{target}");
}

#[test]
fn promtool_accepts_configuration_rules_and_their_tests() {
    let folder = path("examples/observability");
    let found = std::env::var_os("PATH").is_some_and(|paths| {
        std::env::split_paths(&paths).any(|dir| dir.join("promtool").is_file())
    });
    if !found {
        // Not by macro, because the test harness captures the macros' output of a passing test.
        let said = "promtool is not on the PATH: no tool has judged rules and configuration";
        let _ = writeln!(io::stderr(), "{said}");
        return;
    }
    for arguments in [
        ["check", "config", "prometheus.yml"],
        ["check", "rules", "alerts.yml"],
        ["test", "rules", "alerts.test.yml"],
    ] {
        let judged =
            Command::new("promtool").args(arguments).current_dir(&folder).output().unwrap();
        assert!(judged.status.success(), "{arguments:?}: {judged:?}");
    }
}

//! `fault`: breaks nodes and links of a running devnet on purpose, and heals them.

use crate::{
    args, complete,
    context::Context,
    error::{CliError, Exit},
    output::{Document, Row, columns, fields, room, table, time, to_ms, width},
};
use clap::{Args, Subcommand};
use clap_complete::{ArgValueCandidates, ArgValueCompleter};
use cowboy_devnet::{
    client::Client,
    types::{Fault as Entry, FaultRequest, FaultSpec, LieKind},
};
use cowboy_host::duration::Plain;
use serde::Serialize;
use std::{str::FromStr, time::Duration};

#[derive(Debug, Subcommand)]
pub enum Fault {
    /// List the faults in force: since when, until when, and their effects so far
    ///
    /// Dropped and delayed count messages between validators and UDP datagrams between runners and
    /// validators; lies count votes. Faults end with the devnet's process.
    Ls,
    /// Kill a node at once, like a crash: it sends no goodbye and saves nothing
    ///
    /// A validator keeps its disk, a runner loses its current jobs. Healing starts the node again,
    /// and so does `validator start`.
    Kill {
        /// The validator or runner: a name or an address
        #[arg(add = ArgValueCandidates::new(complete::nodes))]
        node: String,
        #[command(flatten)]
        lasting: Lasting,
    },
    /// Cut a node off from every link while it continues to run
    ///
    /// Its connections stay open until the other side times out. Messages sent to it meanwhile are
    /// lost.
    Pause {
        /// The validator or runner: a name or an address
        #[arg(add = ArgValueCandidates::new(complete::nodes))]
        node: String,
        #[command(flatten)]
        lasting: Lasting,
    },
    /// Block all traffic between groups of nodes; a new partition replaces the old one
    ///
    /// Nodes that are in no group form one more. For example, two validators on either side, the
    /// runners with the second two: cowboyctl fault partition validator-0,validator-1
    Partition {
        /// The groups: names or addresses with commas between them
        #[arg(required = true, value_name = "A,B", value_parser = group)]
        #[arg(add = ArgValueCompleter::new(complete::groups))]
        groups: Vec<Group>,
        #[command(flatten)]
        lasting: Lasting,
    },
    /// Delay every message on the links of a node, or on one link, in both directions
    ///
    /// A round trip gets the delay twice. Delays of several faults add up.
    Latency {
        /// The node, or the two ends of a link: NODE or A..B
        #[arg(value_name = "NODE|A..B", add = ArgValueCompleter::new(complete::groups))]
        at: String,
        /// The delay of each message, such as 50ms
        #[arg(value_name = "DURATION", value_parser = args::duration)]
        delay: Duration,
        /// Maximum additional delay of a message, drawn uniformly; messages may then arrive out of
        /// order
        #[arg(long, value_name = "DURATION", value_parser = args::duration, default_value = "0ms")]
        jitter: Duration,
        #[command(flatten)]
        drawn: SeedSource,
        #[command(flatten)]
        lasting: Lasting,
    },
    /// Lose some of the messages on the links of a node, or on one link, in both directions
    Loss {
        /// The node, or the two ends of a link: NODE or A..B
        #[arg(value_name = "NODE|A..B", add = ArgValueCompleter::new(complete::groups))]
        at: String,
        /// The loss in percent, such as 5 or 0.5
        #[arg(value_name = "PERCENT", value_parser = per_mille)]
        percent: u16,
        #[command(flatten)]
        drawn: SeedSource,
        #[command(flatten)]
        lasting: Lasting,
    },
    /// Make a validator vote for runners that it does not see, or against those that it sees
    ///
    /// ones: all are present; zeros: all are absent; flip: the opposite of what it sees. `of
    /// RUNNER` lies about that runner only; on its own it votes the opposite. The validator
    /// otherwise works as before. The effect depends on presence.threshold_rule: `presence
    /// feasibility` tells how many lying validators it takes. For example: cowboyctl fault lie
    /// validator-3 ones of runner-1
    Lie {
        /// The validator: a name or an address
        #[arg(add = ArgValueCandidates::new(complete::validators))]
        validator: String,
        /// What its votes say: ones, zeros or flip, about all runners or one
        #[arg(required = true, num_args = 1..=3, value_name = "ones|zeros|flip|of RUNNER")]
        #[arg(add = ArgValueCandidates::new(complete::lies))]
        votes: Vec<String>,
        #[command(flatten)]
        lasting: Lasting,
    },
    /// Heal faults: all, those laid on a node, or one by its number
    ///
    /// A killed node is started again with its storage. The output lists the healed faults; if none
    /// is in force, a note says so and the exit code is 0.
    Heal {
        /// all, a node by name or address, or a fault's number
        #[arg(value_name = "NODE|FAULT|all", default_value = "all")]
        #[arg(add = ArgValueCandidates::new(complete::faults))]
        what: String,
    },
}

/// How long a fault lasts.
#[derive(Debug, Args)]
pub struct Lasting {
    /// Heal by itself after a time or a number of blocks, such as 30s or +20 [default: stays]
    #[arg(long = "for", value_name = "DURATION|+BLOCKS")]
    lasting: Option<For>,
}

/// The source of random draws.
#[derive(Debug, Args)]
pub struct SeedSource {
    /// The seed of losses and jitter [default: the devnet's seed]
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum For {
    Time(Duration),
    Blocks(u64),
}

impl FromStr for For {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused =
            |_| format!("`{text}` is neither a time nor a number of blocks: expected 30s or +20");
        match text.strip_prefix('+') {
            Some(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => {
                digits.parse().map(Self::Blocks).map_err(|error| refused(error.to_string()))
            }
            Some(_) => Err(refused(String::new())),
            None => args::duration(text).map(Self::Time).map_err(refused),
        }
    }
}

/// Nodes on one side of a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group(Vec<String>);

fn group(text: &str) -> Result<Group, String> {
    let nodes: Vec<_> = text.split(',').map(str::to_owned).collect();
    if nodes.iter().any(String::is_empty) {
        return Err(format!("`{text}` is not a group: expected names with commas between them"));
    }
    Ok(Group(nodes))
}

fn lie(words: &[String]) -> Result<(LieKind, Option<String>), String> {
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    let (kind, rest) = match words[..] {
        ["ones", ref rest @ ..] => (LieKind::Ones, rest),
        ["zeros", ref rest @ ..] => (LieKind::Zeros, rest),
        _ => (LieKind::Flip, words.strip_prefix(&["flip"]).unwrap_or(&words)),
    };
    match rest {
        [] if !words.is_empty() => Ok((kind, None)),
        ["of", runner] => Ok((kind, Some((*runner).to_owned()))),
        _ => Err(format!(
            "`{}` is not a lie: expected ones, zeros or flip, with `of RUNNER` if it is about one \
             runner",
            words.join(" ")
        )),
    }
}

/// A percentage with at most one decimal, as per mille.
fn per_mille(text: &str) -> Result<u16, String> {
    let refused =
        || format!("`{text}` is not a loss: expected a percentage from 0.1 to 100, as 5 or 0.5");
    let (whole, tenth) = text.split_once('.').unwrap_or((text, "0"));
    let digits =
        |t: &str, most| (1..=most).contains(&t.len()) && t.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole, 3) || !digits(tenth, 1) {
        return Err(refused());
    }
    let number = |t: &str| t.parse::<u16>().expect("at most three digits");
    let per_mille = number(whole) * 10 + number(tenth);
    (1..=1_000).contains(&per_mille).then_some(per_mille).ok_or_else(refused)
}

impl Fault {
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        let client = cx.client()?;
        let (fault, seed, Lasting { lasting }) = match self {
            Self::Ls => return cx.ui.list(&client.faults().await?),
            Self::Heal { what } => {
                return heal(cx, &client, Some(what.as_str()).filter(|what| *what != "all")).await;
            }
            Self::Kill { node, lasting } => (FaultSpec::Kill { at: node }, None, lasting),
            Self::Pause { node, lasting } => (FaultSpec::Pause { at: node }, None, lasting),
            Self::Partition { groups, lasting } => {
                let groups = groups.into_iter().map(|Group(nodes)| nodes).collect();
                (FaultSpec::Partition { groups }, None, lasting)
            }
            Self::Latency { at, delay, jitter, drawn, lasting } => {
                let (delay_us, jitter_us) = (micros(delay), micros(jitter));
                (FaultSpec::Latency { at, delay_us, jitter_us }, drawn.seed, lasting)
            }
            Self::Loss { at, percent: per_mille, drawn, lasting } => {
                (FaultSpec::Loss { at, per_mille }, drawn.seed, lasting)
            }
            Self::Lie { validator: at, votes, lasting } => {
                let (votes, of) = lie(&votes).map_err(|error| CliError::new(Exit::Usage, error))?;
                (FaultSpec::Lie { at, votes, of }, None, lasting)
            }
        };
        let (for_ms, for_blocks) = match lasting {
            None => (None, None),
            Some(For::Time(time)) => (Some(to_ms(time)), None),
            Some(For::Blocks(blocks)) => (None, Some(blocks)),
        };
        let request = FaultRequest { fault, seed, for_ms, for_blocks };
        cx.ui.document(&client.lay_fault(&request).await?)
    }
}

/// Heals faults and lists them. If there is nothing to heal, prints a note.
async fn heal(cx: &Context, client: &Client, which: Option<&str>) -> Result<(), CliError> {
    let healed = client.heal_faults(which).await?;
    if !healed.is_empty() {
        return match cx.ui.is_for_people() {
            true => cx.ui.document(&Healed(healed)),
            false => cx.ui.list(&healed),
        };
    }
    let Some(node) = which else {
        cx.ui.note("nothing to heal: no fault is in force");
        return cx.ui.none::<Entry>();
    };
    let others = client.faults().await?;
    let is_partition = |fault: &&Entry| matches!(fault.fault, FaultSpec::Partition { .. });
    cx.ui.note(&format!("nothing to heal: no fault is laid on `{node}`"));
    if let Some(partition) = others.iter().find(is_partition) {
        let id = partition.id;
        cx.ui.note(&format!("a partition concerns all nodes: cowboyctl fault heal {id}"));
    } else if !others.is_empty() {
        cx.ui.note("list the faults in force: cowboyctl fault ls");
    }
    cx.ui.none::<Entry>()
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// The maximum columns of a group in a table on a terminal.
const GROUP: usize = 48;

fn parts(Entry { fault, others, .. }: &Entry) -> (String, String) {
    let time = |micros: u64| Plain(Duration::from_micros(micros)).to_string();
    match fault {
        FaultSpec::Kill { at } => ("kill".to_owned(), at.clone()),
        FaultSpec::Pause { at } => ("pause".to_owned(), at.clone()),
        FaultSpec::Partition { groups } => {
            let all = groups.iter().chain(Some(others).filter(|others| !others.is_empty()));
            ("partition".to_owned(), sides(all))
        }
        FaultSpec::Latency { at, delay_us, jitter_us: 0 } => {
            (format!("latency {}", time(*delay_us)), at.clone())
        }
        FaultSpec::Latency { at, delay_us, jitter_us } => {
            let (from, to) = (time(*delay_us), time(delay_us.saturating_add(*jitter_us)));
            (format!("latency {from} to {to}"), at.clone())
        }
        FaultSpec::Loss { at, per_mille } => {
            let tenth = match per_mille % 10 {
                0 => String::new(),
                tenth => format!(".{tenth}"),
            };
            (format!("loss {}{tenth} %", per_mille / 10), at.clone())
        }
        FaultSpec::Lie { at, votes, of } => {
            let votes = match votes {
                LieKind::Ones => "ones",
                LieKind::Zeros => "zeros",
                LieKind::Flip => "flip",
            };
            let of = of.as_ref().map(|runner| format!(" of {runner}")).unwrap_or_default();
            (format!("lie {votes}{of}"), at.clone())
        }
    }
}

/// The groups of a partition on one line. On a terminal each group begins a new line, and wraps if
/// it is long.
fn sides<'a>(groups: impl Iterator<Item = &'a Vec<String>>) -> String {
    if room().is_none() {
        return groups.map(|group| group.join(",")).collect::<Vec<_>>().join(" | ");
    }
    let lines = groups.enumerate().flat_map(|(index, group)| {
        let mut lines = vec![if index == 0 { "" } else { "| " }.to_owned()];
        for (index, node) in group.iter().enumerate() {
            let comma = if index + 1 == group.len() { "" } else { "," };
            let is_full = lines.last().is_some_and(|line| width(line) + width(node) >= GROUP);
            if is_full && index > 0 {
                lines.push(String::new());
            }
            let line = lines.last_mut().expect("there is one from the start");
            line.push_str(node);
            line.push_str(comma);
        }
        lines
    });
    lines.collect::<Vec<_>>().join("\n")
}

pub fn words(fault: &Entry) -> String {
    let (what, at) = parts(fault);
    format!("{what}, {at}")
}

fn until(fault: &Entry) -> String {
    match (fault.until_height, &fault.until) {
        (Some(height), _) => height.to_string(),
        (None, Some(at)) => time(**at),
        (None, None) => "-".to_owned(),
    }
}

impl Row for Entry {
    columns! { self;
        let (what, at) = parts(self);
        ">fault" => self.id.to_string(),
        "what" => what,
        "=where" => at,
        ">since" => self.since.to_string(),
        "until" => until(self),
        ">dropped" => self.dropped.to_string(),
        ">delayed" => self.delayed.to_string(),
        ">lies" => self.lies.to_string(),
    }
    const LEAST: &'static [&'static str] = &["lies", "delayed", "dropped"];

    fn id(&self) -> String {
        self.id.to_string()
    }
}

impl Document for Entry {
    fn text(&self) -> String {
        let (what, at) = parts(self);
        fields(&[
            ("fault", self.id.to_string()),
            ("what", what),
            ("where", at),
            ("since", self.since.to_string()),
            ("until", until(self)),
        ])
    }

    fn id(&self) -> String {
        self.id.to_string()
    }
}

#[derive(Debug, Serialize)]
#[serde(transparent)]
struct Healed(Vec<Entry>);

impl Document for Healed {
    fn text(&self) -> String {
        let cells = |fault: &Entry| {
            let (what, at) = parts(fault);
            vec![fault.id.to_string(), what, at, fault.since.to_string()]
        };
        table(&[">healed", "what", "=where", ">since block"], self.0.iter().map(cells))
    }

    fn id(&self) -> String {
        self.0.iter().map(Row::id).collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::within;

    fn laid(fault: FaultSpec) -> Entry {
        Entry {
            id: 3,
            fault,
            seed: 0,
            since: 12,
            until_height: None,
            until: None,
            dropped: 0,
            delayed: 0,
            lies: 0,
            others: Vec::new(),
        }
    }

    #[test]
    fn percentages_parse() {
        let check = |text: &str, expected: Option<u16>| {
            assert_eq!(per_mille(text).ok(), expected, "{text}");
        };
        check("5", Some(50));
        check("0.5", Some(5));
        check("100", Some(1_000));
        check("100.0", Some(1_000));
        for bad in ["0", "0.0", "100.1", "150", "-1", "+1", "", ".5", "5.", "1.23", "5%", "1000"] {
            check(bad, None);
        }
    }

    #[test]
    fn times_and_blocks_parse() {
        let check = |text: &str, expected: Option<For>| {
            assert_eq!(text.parse().ok(), expected, "{text}");
        };
        check("30s", Some(For::Time(Duration::from_secs(30))));
        check("+20", Some(For::Blocks(20)));
        for bad in ["20", "+", "++1", "+1s", "soon", ""] {
            check(bad, None);
        }
    }

    #[test]
    fn groups_parse() {
        assert_eq!(group("a,b"), Ok(Group(vec!["a".to_owned(), "b".to_owned()])));
        for bad in ["", ",", "a,", ",a", "a,,b"] {
            assert!(group(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn lies_parse() {
        let check = |text: &str, expected: Option<(LieKind, Option<&str>)>| {
            let words: Vec<_> = text.split(' ').map(str::to_owned).collect();
            let expected = expected.map(|(kind, of)| (kind, of.map(str::to_owned)));
            assert_eq!(lie(&words).ok(), expected, "{text}");
        };
        check("ones", Some((LieKind::Ones, None)));
        check("zeros of runner-1", Some((LieKind::Zeros, Some("runner-1"))));
        check("flip", Some((LieKind::Flip, None)));
        check("of runner-1", Some((LieKind::Flip, Some("runner-1"))));
        for bad in ["", "twos", "runner-1", "ones runner-1", "of", "ones of", "ones zeros of"] {
            check(bad, None);
        }
        assert!(lie(&[]).is_err());
    }

    #[test]
    fn faults_read_well() {
        let check = |fault: FaultSpec, what: &str| assert_eq!(parts(&laid(fault)).0, what);
        let at = "a..b".to_owned();
        let latency =
            |delay_us, jitter_us| FaultSpec::Latency { at: at.clone(), delay_us, jitter_us };
        check(latency(50_000, 0), "latency 50 ms");
        check(latency(1_500_000, 500), "latency 1.5 s to 1.5 s");
        check(FaultSpec::Loss { at: at.clone(), per_mille: 50 }, "loss 5 %");
        check(FaultSpec::Loss { at: at.clone(), per_mille: 5 }, "loss 0.5 %");
        let lie = |of: Option<&str>| {
            let (votes, of) = (LieKind::Ones, of.map(str::to_owned));
            FaultSpec::Lie { at: at.clone(), votes, of }
        };
        check(lie(None), "lie ones");
        check(lie(Some("runner-1")), "lie ones of runner-1");
    }

    #[test]
    fn a_partition_has_all_its_groups() {
        let group = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let groups = vec![group(&["a", "b"]), group(&["c"])];
        let mut fault = laid(FaultSpec::Partition { groups });
        assert_eq!(parts(&fault), ("partition".to_owned(), "a,b | c".to_owned()));
        fault.others = group(&["validator-2", "validator-3", "runner-0", "runner-1", "runner-10"]);
        assert_eq!(
            parts(&fault).1,
            "a,b | c | validator-2,validator-3,runner-0,runner-1,runner-10"
        );
        insta::assert_snapshot!(within(Some(80), || table(Entry::HEADER, [fault.cells()])), @"
        FAULT  WHAT       WHERE                                         SINCE  UNTIL
            3  partition  a,b                                              12  -
                          | c
                          | validator-2,validator-3,runner-0,runner-1,
                          runner-10
        ");
        insta::assert_snapshot!(Healed(vec![fault]).text(), @"
        HEALED  WHAT       WHERE                                                          SINCE BLOCK
             3  partition  a,b | c | validator-2,validator-3,runner-0,runner-1,runner-10           12
        ");
    }
}

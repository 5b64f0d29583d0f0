//! The story of a running devnet, from its API and its log.

use super::{
    FaultSpan, JobSpan, LINES, LaneCounts, NamedRunner, SpeculationSpan, Story, StoryBlock,
    StoryLine, TaskSpan, to_the_second,
};
use crate::error::CliError;
use cowboy_devnet::{
    client::{BlockAt, Client, ClientError},
    types::{Block, JobQuery, LaneQuery, Pipeline, PipelineQuery, Presence, TimeText, Votes},
};
use jiff::Timestamp;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Graphs of speculative tasks, the newest.
const GRAPHS: usize = 50;
/// Jobs, the newest.
const JOBS: usize = 1_000;

/// What the last `blocks` blocks and the log tell. `log` has no secrets.
pub async fn tell(
    client: &Client,
    (title, seed): (String, Option<u64>),
    blocks: u64,
    log: &str,
    now: Timestamp,
) -> Result<Story, CliError> {
    let parameters = client.parameters().await?;
    let head = client.head().await?.height;
    let first = head.saturating_sub(blocks.saturating_sub(1)).max(1).min(head);
    let validators: Vec<_> = client.validators().await?.into_iter().map(|v| v.name).collect();
    let runners = client.runners().await?;
    let place = |names: Vec<&str>| -> HashMap<String, usize> {
        names.into_iter().enumerate().map(|(index, name)| (name.to_owned(), index)).collect()
    };
    let places = Places {
        validators: place(validators.iter().map(String::as_str).collect()),
        runners: place(runners.iter().map(|runner| runner.name.as_str()).collect()),
        subsets: runners.iter().map(|runner| runner.subset.clone()).collect(),
    };
    let mut told = Vec::new();
    let (mut began, mut before) = (None, None);
    for height in first..=head {
        let at = BlockAt::Height(height);
        let (block, presence, votes) =
            tokio::join!(client.block(at), client.presence(at), client.votes(at));
        let block = match block {
            Ok(block) => block,
            // No longer kept.
            Err(ClientError::Refused { .. }) => continue,
            Err(error) => return Err(error.into()),
        };
        let began = *began.get_or_insert(ms(&block.timestamp));
        told.push(places.block(&block, began, before, presence.ok(), votes.ok()));
        before = Some(block.view);
    }
    let mut next = first;
    while next <= head {
        let query = LaneQuery { from: Some(next), limit: None };
        let page = client.timer_fees(&query).await?;
        let Some(last) = page.last().map(|last| last.height) else { break };
        for lane in page {
            let at = told.binary_search_by_key(&lane.height, |block: &StoryBlock| block.height);
            let Ok(at) = at else { continue };
            let (fired, deferred) = (lane.fired, lane.deferred);
            told[at].timers = Some(LaneCounts::of(fired, deferred, lane.lane_basefee));
        }
        next = last + 1;
    }
    let began = began.unwrap_or_default();
    let since = |ms: i64| u64::try_from(ms.saturating_sub(began)).unwrap_or(0);
    let length_ms = told.last().map_or(0, |last| last.time);
    let jobs = client.jobs(&JobQuery { limit: Some(JOBS), ..JobQuery::default() }).await?;
    let jobs = jobs.into_iter().filter(|job| job.final_at.is_none_or(|end| end >= first));
    let mut speculations = Vec::new();
    let (pipelines, speculations_absent) = match client.pipelines(&PipelineQuery::default()).await {
        Ok(pipelines) => (pipelines, None),
        // A devnet whose nodes are elsewhere has no agent.
        Err(ClientError::Refused(refusal)) => (Vec::new(), Some(sentence(&refusal.message))),
        Err(error) => return Err(error.into()),
    };
    for pipeline in pipelines.into_iter().take(GRAPHS) {
        speculations.push(graph(&client.pipeline(pipeline.pipeline).await?, since));
    }
    let mut notes = Vec::new();
    match told.first().map(|block| block.height) {
        Some(told) if told > first => {
            notes.push(format!("blocks 1–{} are left out: they are no longer kept", told - 1));
        }
        Some(told @ 2..) => {
            notes.push(format!("blocks 1–{} are left out: --blocks tells more", told - 1));
        }
        _ => {}
    }
    let lines: Vec<_> = log.lines().collect();
    let (left_out, lines) = lines.split_at(lines.len().saturating_sub(LINES));
    if !left_out.is_empty() {
        let count = left_out.len();
        notes.push(format!("the first {count} lines of the log are left out, and faults in them"));
    }
    let logs: Vec<_> = lines.iter().filter_map(|line| logged(line, began)).collect();
    let began_at = Timestamp::from_millisecond(began).ok().map(to_the_second);
    Ok(Story {
        title,
        kind: "devnet",
        version: env!("CARGO_PKG_VERSION"),
        made_at: to_the_second(now),
        seed,
        began_at: began_at.filter(|_| !told.is_empty()),
        length_ms,
        notes,
        verdict: None,
        checks: Vec::new(),
        faults: faults(&logs),
        logs,
        validators,
        runners: runners
            .iter()
            .map(|runner| NamedRunner {
                name: runner.name.clone(),
                address: runner.address.to_string(),
            })
            .collect(),
        cycles_limit: Some(parameters.cycle_limit),
        blocks: told,
        jobs: jobs
            .map(|job| JobSpan {
                id: job.job_id.to_string(),
                name: job.name,
                kind: job.kind,
                submitted: job.submitted_at,
                assigned: None,
                ended: job.final_at,
                status: job.status.to_string().to_lowercase(),
                runners: job.committee,
                candidates: None,
                text: Some(format!("submitted by {}", job.submitter)),
            })
            .collect(),
        speculations,
        speculations_absent,
    })
}

/// A message as a sentence.
fn sentence(message: &str) -> String {
    let mut letters = message.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string());
    format!("{}{}.", first.unwrap_or_default(), letters.as_str().trim_end_matches('.'))
}

/// The indices of nodes, by name.
struct Places {
    validators: HashMap<String, usize>,
    runners: HashMap<String, usize>,
    /// The validators that each runner connects to.
    subsets: Vec<Vec<String>>,
}

impl Places {
    fn block(
        &self,
        block: &Block,
        began: i64,
        before: Option<u64>,
        presence: Option<Presence>,
        votes: Option<Votes>,
    ) -> StoryBlock {
        let of = |names: &HashMap<String, usize>, name: &str| names.get(name).copied();
        let timestamp = ms(&block.timestamp);
        let between = |from: i64, to: i64| u64::try_from(to.saturating_sub(from)).unwrap_or(0);
        let seen = votes.as_ref().map(|votes| {
            let mut seen = BTreeMap::<usize, u32>::new();
            let runners = votes.votes.iter().flat_map(|vote| &vote.present);
            for runner in runners.filter_map(|runner| of(&self.runners, runner)) {
                *seen.entry(runner).or_default() += 1;
            }
            seen
        });
        let could = votes.as_ref().map(|votes| {
            let voters: HashSet<&str> =
                votes.votes.iter().map(|vote| vote.validator.as_str()).collect();
            let of_runner = |(runner, subset): (usize, &Vec<String>)| {
                let voted = subset.iter().filter(|name| voters.contains(name.as_str())).count();
                (runner, u32::try_from(voted).unwrap_or(u32::MAX))
            };
            self.subsets.iter().enumerate().map(of_runner).collect()
        });
        let voters = votes.map(|votes| {
            votes.votes.iter().filter_map(|vote| of(&self.validators, &vote.validator)).collect()
        });
        StoryBlock {
            height: block.height,
            time: between(began, timestamp),
            hash: block.hash.to_string(),
            proposer: block.proposer.as_deref().and_then(|name| of(&self.validators, name)),
            transactions: block.transactions.len(),
            cycles: Some(block.cycles_used),
            events: block.events.len(),
            // The clock of blocks may have been moved ahead.
            final_after: block
                .finalized_at
                .as_ref()
                .filter(|at| ms(at) >= timestamp)
                .map(|at| between(timestamp, ms(at))),
            // A new epoch begins with view 1.
            views_abandoned: before.and_then(|before| block.view.checked_sub(before + 1)),
            voters,
            present: presence.map(|presence| {
                presence.present.iter().filter_map(|name| of(&self.runners, name)).collect()
            }),
            certified_present: seen,
            certified_could: could,
            timers: None,
        }
    }
}

fn ms(time: &TimeText) -> i64 {
    time.0.as_millisecond()
}

/// The faults that were laid and healed, by the log.
fn faults(logs: &[StoryLine]) -> Vec<FaultSpan> {
    let (mut faults, mut laid) = (Vec::<FaultSpan>::new(), HashMap::new());
    for line in logs {
        let about = |what: &str| {
            let (_, fields) = line.text.split_once(what)?;
            fields.split_once(' ')
        };
        if let Some((id, what)) = about("faults: fault laid id=") {
            let what = what.trim_start_matches("fault=");
            let (what, until) = what.split_once(" until=").unwrap_or((what, ""));
            let (kind, target) = what.split_once(' ').unwrap_or((what, ""));
            laid.insert(id, faults.len());
            faults.push(FaultSpan {
                from: line.time,
                to: None,
                kind: kind.to_owned(),
                target: target.to_owned(),
                text: match until {
                    "" => "until it is healed".to_owned(),
                    until => format!("until {}", until.trim_matches('"')),
                },
            });
        } else if let Some((id, _)) = about("faults: fault healed id=")
            && let Some(fault) = laid.remove(id)
        {
            faults[fault].to = Some(line.time);
        }
    }
    faults
}

fn graph(pipeline: &Pipeline, since: impl Fn(i64) -> u64) -> SpeculationSpan {
    let from = since(ms(&pipeline.summary.submitted_at));
    let tasks = pipeline.graph.iter().filter_map(|task| {
        let times = task.times;
        Some(TaskSpan {
            name: task.task.clone(),
            from: from + times.scheduled_ms?,
            to: times.confirmed_ms.or(times.ended_ms).map(|end| from + end),
            status: task.status.to_string(),
        })
    });
    SpeculationSpan {
        id: format!("{} {}", pipeline.summary.pipeline, pipeline.summary.name),
        status: pipeline.summary.status.to_string(),
        tasks: tasks.collect(),
    }
}

/// A line as the devnet's process logs it: time, level, the part of the program, text.
fn logged(line: &str, began: i64) -> Option<StoryLine> {
    let (time, rest) = line.trim_start().split_once(' ')?;
    let time: Timestamp = time.parse().ok()?;
    let (level, text) = rest.trim_start().split_once(' ')?;
    let node = ["validator=", "runner=", "node="].iter().find_map(|field| {
        let (_, after) = text.split_once(field)?;
        let name = after.trim_start_matches('"');
        let end = name.find([' ', '"', '}', ',', ':']).unwrap_or(name.len());
        (end > 0).then(|| name[..end].to_owned())
    });
    let time = u64::try_from(time.as_millisecond().saturating_sub(began)).unwrap_or(0);
    Some(StoryLine { time, node, level: level.to_owned(), text: text.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::{faults, logged, sentence};

    #[test]
    fn a_refusal_is_shown_as_a_sentence() {
        let cases = [
            (
                "this devnet has no agent: it runs no pipelines",
                "This devnet has no agent: it runs no pipelines.",
            ),
            ("Ärger.", "Ärger."),
        ];
        for (message, expected) in cases {
            assert_eq!(sentence(message), expected);
        }
    }

    #[test]
    fn lines_of_the_log_are_taken_apart() {
        let line = "2026-11-29T02:27:02.662637Z  WARN cowboy_devnet::validator: lost validator=\"validator-1\" after_ms=468";
        let line = logged(line, 1_795_919_222_000).unwrap();
        assert_eq!((line.time, line.level.as_str()), (662, "WARN"));
        assert_eq!(line.node.as_deref(), Some("validator-1"));
        assert!(line.text.starts_with("cowboy_devnet::validator: lost"), "{}", line.text);
        assert!(logged("no time at all", 0).is_none());
    }

    #[test]
    fn faults_are_found_in_the_log() {
        let at = |second: u32, text: &str| {
            let line = format!("2026-11-29T02:33:{second:02}Z  INFO cowboy_devnet::api::{text}");
            logged(&line, 1_795_919_580_000).unwrap()
        };
        let lines = [
            at(1, "faults: fault laid id=1 fault=pause runner-1 until=\"2026-11-29T02:33:07Z\""),
            at(2, "faults: fault laid id=2 fault=kill validator-2"),
            at(7, "faults: fault healed id=1 fault=pause runner-1"),
        ];
        let found: Vec<_> = faults(&lines)
            .into_iter()
            .map(|fault| (fault.kind, fault.target, fault.to.map(|to| to - fault.from)))
            .collect();
        let fault = |kind: &str, target: &str, took| (kind.to_owned(), target.to_owned(), took);
        let expected =
            [fault("pause", "runner-1", Some(6_000)), fault("kill", "validator-2", None)];
        assert_eq!(found, expected);
    }
}

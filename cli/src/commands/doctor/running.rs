//! Checks of a running devnet: its own status, and what its process has open.

use super::finding::Finding;
use crate::{commands::fault, context::Context};
use cowboy_devnet::{
    home::{DevnetHome, DevnetRecord},
    types::{
        BEHIND, PresenceCondition, RunnerState, RunnerStatus, SpeculationStatus, Status,
        ValidatorState,
    },
};
use cowboy_engine::{presence::canonical::quorum, primitives::CBY, registry::MIN_STAKE};
use jiff::Timestamp;
use std::{fs, path::Path, time::Duration};

/// The chain has stopped if no block was final for this many block times, and for at least
/// `SILENT_MS`: a change of leaders takes seconds.
const SILENT_BLOCKS: u64 = 20;
const SILENT_MS: u64 = 10_000;

/// The maximum number of runners and of commands to fix them that a finding names.
const SHOWN: usize = 8;

pub async fn check(
    cx: &Context,
    devnet: &DevnetHome,
    record: &DevnetRecord,
    timeout: Duration,
) -> Vec<Finding> {
    let name = devnet.name();
    let restart = format!(
        "cowboyctl devnet logs {name}; start it again: cowboyctl devnet down {name}, then up"
    );
    let client = match cx.client_of(devnet) {
        Ok(client) => client.with_timeout(timeout),
        Err(error) => {
            return vec![Finding::problem("answers", name, error.what).fix(restart)];
        }
    };
    let status = match client.status().await {
        Ok(status) => status,
        Err(error) => {
            let what = format!("process {} does not answer: {error}", record.pid);
            return vec![Finding::problem("answers", name, what).fix(restart)];
        }
    };
    let mut findings = vec![Finding::ok("answers", name, format!("at {}", record.rpc_url))];
    findings.extend(open_files(name.as_str(), &Path::new("/proc").join(record.pid.to_string())));
    findings.push(validators(&status));
    findings.push(runners(&status));
    findings.push(faults(&status));
    if let Ok(parameters) = client.parameters().await {
        findings.push(finality(&status, parameters.block_time_ms, Timestamp::now()));
    }
    if let Ok(speculation) = client.speculation().await {
        findings.push(speculating(name.as_str(), &speculation));
    }
    findings
}

fn validators(status: &Status) -> Finding {
    let name = &status.name;
    let runs = |state| {
        use ValidatorState::{Died, Paused, Stopped};

        !matches!(state, Stopped | Died | Paused)
    };
    let highest = status.validators.iter().map(|v| v.height).max().unwrap_or(0);
    let behind = status.validators.iter().filter(|v| {
        !runs(v.status) || v.status == ValidatorState::CatchingUp || v.height + BEHIND < highest
    });
    let behind: Vec<_> = behind
        .map(|v| match runs(v.status) {
            true => format!("{} is at {} of {highest}", v.name, v.height),
            false => {
                let reason = v.reason.as_ref().map_or(String::new(), |why| format!(": {why}"));
                format!("{} {} at block {}{reason}", v.name, v.status, v.height)
            }
        })
        .collect();
    let (all, running) =
        (status.validators.len(), status.validators.iter().filter(|v| runs(v.status)).count());
    let fix = format!("cowboyctl validator start NAME --devnet {name}, or see its faults");
    let quorum = quorum(all as u32) as usize;
    if running < quorum {
        let what = format!("{running} of {all} run, {quorum} have to: {}", behind.join(", "));
        return Finding::problem("validators", name, what).fix(fix);
    }
    match behind.as_slice() {
        [] => Finding::ok("validators", name, format!("all {all} are at {highest}")),
        behind => Finding::warning("validators", name, behind.join(", ")).fix(fix),
    }
}

fn runners(status: &Status) -> Finding {
    let name = &status.name;
    let away: Vec<_> = status
        .runners
        .iter()
        .filter_map(|runner| {
            let state = match runner.status {
                RunnerState::Stopped => return Some(format!("{} is stopped", runner.name)),
                RunnerState::Connecting => "is not fully connected",
                RunnerState::Connected => "is not present",
            };
            match &runner.unmet {
                Some(unmet) if unmet.condition == PresenceCondition::TooFewVotes => None,
                Some(unmet) => Some(format!("{} {state} ({unmet})", runner.name)),
                None if runner.status == RunnerState::Connected => None,
                None => Some(format!("{} {state}", runner.name)),
            }
        })
        .collect();
    if away.is_empty() {
        return Finding::ok("runners", name, format!("all {} are connected", status.runners.len()));
    }
    let what = match away.len() {
        0..=SHOWN => away.join(", "),
        all => format!("{}, and {} more", away[..SHOWN].join(", "), all - SHOWN),
    };
    let ways: Vec<_> = status.runners.iter().filter_map(|runner| way_back(runner, name)).collect();
    Finding::warning("runners", name, what).fix(match ways.as_slice() {
        [] => format!("cowboyctl runner show NAME --devnet {name}"),
        ways => ways[..ways.len().min(SHOWN)].join("; "),
    })
}

fn way_back(runner: &RunnerStatus, devnet: &str) -> Option<String> {
    let name = &runner.name;
    if runner.status == RunnerState::Stopped {
        return Some(format!("cowboyctl runner start {name} --devnet {devnet}"));
    }
    let command = match runner.unmet.as_ref()?.condition {
        PresenceCondition::InsufficientStake => {
            let stake = MIN_STAKE.get() / CBY;
            return Some(format!(
                "cowboyctl runner update {name} --stake {stake}cby --devnet {devnet} (its account \
                 pays what is missing: `cowboyctl account fund` before, where it has too little)"
            ));
        }
        PresenceCondition::TakesNoJobs => format!("runner resume {name}"),
        PresenceCondition::WithdrewWhatIsNeeded => format!("runner capability add {name} LABEL"),
        // Only the next blocks or the topology can change it (`presence feasibility`).
        PresenceCondition::TooFewVotes => return None,
        _ => format!("runner show {name}"),
    };
    Some(format!("cowboyctl {command} --devnet {devnet}"))
}

fn faults(status: &Status) -> Finding {
    let laid: Vec<_> = status.faults.iter().map(fault::words).collect();
    match laid.as_slice() {
        [] => Finding::ok("faults", &status.name, "none"),
        laid => Finding::warning("faults", &status.name, laid.join("; "))
            .fix(format!("cowboyctl fault heal --devnet {}", status.name)),
    }
}

fn finality(status: &Status, block_time_ms: u64, now: Timestamp) -> Finding {
    let name = &status.name;
    let last = status.head.as_ref().and_then(|head| head.finalized_at).or(status.started_at);
    let (Some(head), Some(last)) = (&status.head, last) else {
        return Finding::warning("finality", name, "it does not report a final block")
            .fix(format!("wait for its first blocks: cowboyctl devnet status {name}"));
    };
    let since = now.duration_since(*last).as_millis();
    let silent = SILENT_MS.max(SILENT_BLOCKS * block_time_ms);
    match u64::try_from(since) {
        Ok(ms) if ms <= silent => {
            Finding::ok("finality", name, format!("block {} {ms} ms ago", head.height))
        }
        Ok(ms) => {
            let what = format!("no block was final for {} s, since {}", ms / 1_000, head.height);
            Finding::problem("finality", name, what)
                .fix(format!("see faults and stopped validators: cowboyctl devnet status {name}"))
        }
        Err(_) => {
            let what =
                format!("the newest block is {} ms from now: the clock has gone back", -since);
            Finding::warning("clock", name, what).fix("set the clock: timedatectl")
        }
    }
}

/// The alerts of docs/observability.md about speculation that the current status shows.
fn speculating(name: &str, status: &SpeculationStatus) -> Finding {
    let alert = |alert: &str, what: String| {
        Finding::warning("alerts", name, format!("{alert}: {what}"))
            .fix(format!("docs/runbooks/{alert}.md says what to do"))
    };
    match status.breaker.as_str() {
        "closed" => Finding::ok("alerts", name, "none"),
        breaker => alert("SpeculationDisabled", format!("the circuit breaker is {breaker}")),
    }
}

fn open_files(name: &str, process: &Path) -> Option<Finding> {
    let open = fs::read_dir(process.join("fd")).ok()?.count() as u64;
    let limits = fs::read_to_string(process.join("limits")).ok()?;
    let limit = limits.lines().find_map(|line| {
        line.strip_prefix("Max open files")?.split_whitespace().next()?.parse::<u64>().ok()
    })?;
    let what = format!("{open} of {limit} open");
    Some(match open.saturating_mul(10) < limit.saturating_mul(8) {
        true => Finding::ok("files", name, what),
        false => Finding::warning("files", name, what)
            .fix(format!("start it again with more: ulimit -n {}", limit.saturating_mul(4))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::doctor::finding::Severity::{self, Ok as Fine, Problem, Warning};
    use cowboy_devnet::types::{Head, Text};
    use cowboy_engine::primitives::Hash;

    fn status(heights: &[(u64, ValidatorState)]) -> Status {
        let validators = heights.iter().enumerate().map(|(index, (height, status))| {
            let key = cowboy_engine::primitives::SecretKey::derive(b"x", "v");
            cowboy_devnet::types::ValidatorStatus {
                index: None,
                reason: (*status == ValidatorState::Died).then(|| "its disk is full".to_owned()),
                name: format!("validator-{index}"),
                address: key.address().into(),
                height: *height,
                status: *status,
            }
        });
        let head = Head {
            height: 42,
            hash: Text(Hash([1; 32])),
            finalized_at: Some(Text(Timestamp::from_second(1_000).unwrap())),
        };
        Status {
            name: "a".to_owned(),
            running: true,
            ready: true,
            chain_id: None,
            head: Some(head),
            kept_from: Some(1),
            validators: validators.collect(),
            runners: Vec::new(),
            faults: Vec::new(),
            supply: None,
            pid: None,
            started_at: Some(Text(Timestamp::from_second(900).unwrap())),
            died: None,
        }
    }

    #[test]
    fn validators_that_are_behind_or_gone_are_named() {
        use ValidatorState::{Died, Running, Stopped};

        let check = |heights: &[_], expected: Severity, named: &str| {
            let found = validators(&status(heights));
            assert_eq!(found.state, expected, "{found:?}");
            assert!(found.what.contains(named), "{found:?}");
        };
        check(&[(9, Running); 4], Fine, "all 4 are at 9");
        let one = (9, Running);
        check(&[one, one, one, (6, Running)], Warning, "validator-3 is at 6 of 9");
        check(&[one, one, one, (6, Stopped)], Warning, "validator-3 stopped at block 6");
        check(
            &[one, one, one, (6, Died)],
            Warning,
            "validator-3 died at block 6: its disk is full",
        );
        check(&[one, one, (6, Stopped), (6, Stopped)], Problem, "2 of 4 run, 3 have to");
    }

    #[test]
    fn a_runner_that_is_not_present_is_named_with_the_reason_and_the_way_back() {
        let runner = |state, unmet: Option<(PresenceCondition, &str)>| {
            let key = cowboy_engine::primitives::SecretKey::derive(b"x", "r");
            RunnerStatus {
                name: "runner-1".to_owned(),
                address: key.address().into(),
                status: state,
                connected_validators: Vec::new(),
                unmet: unmet.map(|(condition, detail)| {
                    let detail = detail.to_owned();
                    cowboy_devnet::types::UnmetPresence { condition, detail }
                }),
            }
        };
        let check = |one: RunnerStatus, expected: Severity, what: &str, fix: Option<&str>| {
            let found = runners(&Status { runners: vec![one], ..status(&[]) });
            assert_eq!((found.state, found.what.as_str()), (expected, what));
            let given = found.fix.as_deref().map(|fix| fix.split(" (").next().unwrap());
            assert_eq!(given, fix);
        };
        use RunnerState::{Connected, Connecting, Stopped};

        check(runner(Connected, None), Fine, "all 1 are connected", None);
        check(
            runner(Stopped, Some((PresenceCondition::NotConnected, "it has none"))),
            Warning,
            "runner-1 is stopped",
            Some("cowboyctl runner start runner-1 --devnet a"),
        );
        let stake = "it has locked 9900 CBY, 10000 CBY are needed";
        check(
            runner(Connecting, Some((PresenceCondition::InsufficientStake, stake))),
            Warning,
            &format!("runner-1 is not fully connected (insufficient_stake: {stake})"),
            Some("cowboyctl runner update runner-1 --stake 10000cby --devnet a"),
        );
        check(
            runner(Connected, Some((PresenceCondition::TakesNoJobs, "paused"))),
            Warning,
            "runner-1 is not present (takes_no_jobs: paused)",
            Some("cowboyctl runner resume runner-1 --devnet a"),
        );
    }

    #[test]
    fn silence_is_measured_in_blocks() {
        let status = status(&[]);
        let check = |now, block_time_ms, expected: Severity| {
            let now = Timestamp::from_second(now).unwrap();
            assert_eq!(finality(&status, block_time_ms, now).state, expected, "{now}");
        };
        check(1_009, 250, Fine);
        check(1_011, 250, Problem);
        check(1_011, 1_000, Fine);
        check(1_021, 1_000, Problem);
        check(999, 1_000, Warning);
    }
}

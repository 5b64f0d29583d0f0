//! Topologies, the plans they resolve to, and the errors of invalid ones.

use super::*;
use crate::storage::Keep;
use cowboy_engine::{
    fees::basefee::LaneCurve,
    job::SeedRule,
    presence::{Connectivity, Phase, ThresholdRule},
    primitives::{CBY, Height, Wei},
    speculation::Bonds,
    timer::{self, Governed, Key, TimerConfig},
};
use std::time::Duration;

fn resolve(text: &str) -> Result<Plan, TopologyError> {
    Topology::parse(text, "devnet.yaml")?.resolve(&Overrides::default(), text, "devnet.yaml")
}

#[test]
fn the_template_is_the_defaults() {
    let plan = resolve(TEMPLATE).unwrap();
    assert_eq!(plan, resolve("").unwrap());
    assert_eq!(plan, resolve("# nothing\n---\n").unwrap());
    assert_eq!(plan, resolve("{}").unwrap());
    assert_eq!(plan.name.as_str(), "local");
    assert_eq!(plan.block_time, Duration::from_secs(1));
    assert_eq!((plan.validators.len(), plan.runners.len()), (4, 4));
    assert_eq!(plan.accounts.len(), 13);
    let names: Vec<_> = plan.accounts[..4].iter().map(|account| account.name.as_str()).collect();
    assert_eq!(names, [FAUCET, GOVERNANCE, AGENT, "dev-0"]);
    assert_eq!(plan.timers, timer::Params::default());
    assert_eq!(plan.phase, Phase::HotPath);
    assert_eq!(plan.runners[3].name.as_str(), "runner-3");
}

#[test]
fn the_template_documents_its_runner() {
    // The commented runner of the template has the defaults that it claims.
    let commented = "runners:\n  - name: worker\n    kinds: [custom, http]\n    stake: 10000cby\n    \
                     price_per_second: 0.001cby\n    max_concurrent_jobs: 4\n";
    let lines = TEMPLATE.lines().filter_map(|l| l.strip_prefix("#   "));
    let lines: Vec<_> =
        lines.map(|l| l.split_once("  # ").map_or(l, |(line, _)| line.trim_end())).collect();
    assert!(lines.join("\n").contains(commented.trim_end()));
    assert_eq!(resolve(commented).unwrap(), resolve("runners: [{name: worker}]").unwrap());
}

#[test]
fn a_full_file_resolves() {
    let plan = resolve(
        "name: big
chain: {block_time: 250ms, seed: 7, presence: {threshold_rule: subset}}
selection: {seed: certificate}
migration: {phase: shadow}
validators: [{name: alpha}, {name: beta}]
runners:
  - {name: worker, kinds: [http], stake: 20000cby, price_per_second: 5, max_concurrent_jobs: 1}
accounts: {count: 1, balance: 3cby, extra: [{name: alice, balance: 340282366920938463463}]}
storage: {keep: 1000, reserve: 0}
api: {port: 20123}
",
    )
    .unwrap();
    assert_eq!(plan.block_time, Duration::from_millis(250));
    assert_eq!(plan.threshold_rule, ThresholdRule::Subset);
    assert_eq!(plan.selection_seed, SeedRule::Certificate);
    assert_eq!(plan.phase, Phase::Shadow);
    assert_eq!(plan.validators[1].name.as_str(), "beta");
    let worker = &plan.runners[0];
    assert_eq!(worker.kinds, [RunnerKind::Http]);
    assert_eq!(worker.stake, Wei::cby(20_000));
    assert_eq!(plan.accounts[3].balance, Wei::new(3 * CBY));
    assert_eq!(plan.accounts[4].balance, Wei::new(340_282_366_920_938_463_463));
    assert_eq!((plan.keep, plan.reserve), (Keep::Blocks(1_000), Reserve(Size(0))));
    assert_eq!(plan.api_port, Some(20_123));
    assert_eq!(resolve(&plan.to_yaml()).unwrap(), plan, "a saved plan is the plan");
    let all = resolve("storage: {keep: all}").unwrap();
    assert_eq!(all.keep, Keep::All);
    assert_eq!(resolve(&all.to_yaml()).unwrap(), all);
}

const EXECUTORS: &str =
    "{llm: {base_url: 'http://h/v1', api_key_env: THE_KEY, models: {small: real}}}";

#[test]
fn a_runner_takes_what_its_executors_can_do() {
    let plan = resolve(&format!("runners: [{{name: worker, executors: {EXECUTORS}}}]")).unwrap();
    assert_eq!(plan.runners[0].kinds, [RunnerKind::Custom, RunnerKind::Http, RunnerKind::Llm]);
    assert!(plan.to_yaml().contains("api_key_env: THE_KEY"));
    assert_eq!(resolve(&plan.to_yaml()).unwrap(), plan, "a saved plan is the plan");
    let text = format!("runners: [{{name: worker, kinds: [llm], executors: {EXECUTORS}}}]");
    assert_eq!(resolve(&text).unwrap().runners[0].kinds, [RunnerKind::Llm]);
    let text =
        "runners: [{name: all, executors: {mcp: {m: {command: [m]}}, eth: {url: 'http://h'}}}]";
    let plan = resolve(text).unwrap();
    assert_eq!(
        plan.runners[0].kinds,
        [RunnerKind::Custom, RunnerKind::Http, RunnerKind::Mcp, RunnerKind::EthSend]
    );
    assert_eq!(resolve(&plan.to_yaml()).unwrap(), plan, "a saved plan is the plan");

    let error = resolve("runners:\n  - name: worker\n    kinds: [custom, llm]\n").unwrap_err();
    assert_eq!(
        told(&error),
        "devnet.yaml:3: runners[0].kinds: for `llm` jobs the runner's `executors` need an \
         OpenAI-compatible endpoint in `llm`: base_url and models"
    );
    let text = "runners:\n  - name: worker\n    executors:\n      llm:\n        base_url: h\n";
    let error = told(&resolve(text).unwrap_err());
    let expected = "devnet.yaml:5: runners[0].executors.llm.base_url: not a URL";
    assert!(error.starts_with(expected), "{error}");
}

#[test]
fn executors_in_a_file_of_their_own_are_those_of_a_topology() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("executors.yaml");
    std::fs::write(&path, EXECUTORS).unwrap();
    let plan = resolve(&format!("runners: [{{name: worker, executors: {EXECUTORS}}}]")).unwrap();
    assert_eq!(load_executors(&path).unwrap(), plan.runners[0].executors);
    std::fs::write(&path, "# nothing\n").unwrap();
    assert!(load_executors(&path).unwrap().is_default());
    std::fs::write(&path, "llm:\n  base_url: 'http://h'\n  models: {}\n").unwrap();
    let error = load_executors(&path).unwrap_err();
    let line = error.located.place.as_ref().map(|place| place.line);
    assert_eq!(line, Some(3));
    assert!(error.located.message.starts_with("llm.models: "), "{error}");
    assert!(load_executors(&folder.path().join("none")).is_err());
}

#[test]
fn the_command_line_wins() {
    let text = "name: a\nvalidators: [{name: alpha}]\nrunners: 2\n";
    let overrides = Overrides {
        hosts: None,
        name: Some("b".parse().unwrap()),
        validators: Some(3),
        runners: Some(0),
        block_time: Some("0ms".parse().unwrap()),
        seed: Some(9),
    };
    let plan = Topology::parse(text, "f").unwrap().resolve(&overrides, text, "f").unwrap();
    assert_eq!(plan.name.as_str(), "b");
    assert_eq!((plan.validators.len(), plan.runners.len()), (3, 0));
    assert_eq!((plan.block_time, plan.seed), (Duration::ZERO, 9));
}

#[test]
fn keys_follow_seed_and_name() {
    let key = |text: &str, name: &str| resolve(text).unwrap().key(&name.parse().unwrap());
    let address = key("", "dev-0").address();
    assert_eq!(key("name: other", "dev-0").address(), address);
    assert_ne!(key("chain: {seed: 1}", "dev-0").address(), address);
    assert_ne!(key("", "dev-1").address(), address);
}

/// An error without its column, which follows from the quoted line.
fn told(error: &TopologyError) -> String {
    let text = error.to_string();
    match &error.located.place {
        Some(FilePlace { line, column, .. }) => {
            text.replacen(&format!(":{line}:{column}: "), &format!(":{line}: "), 1)
        }
        None => text,
    }
}

#[test]
fn an_error_has_the_whole_line_and_the_column_in_it() {
    let error = resolve("chain:\n  block_time: soon\n").unwrap_err();
    let text = "  block_time: soon".to_owned();
    assert_eq!(error.located.place, Some(FilePlace { line: 2, column: 15, text }));
    assert!(error.to_string().starts_with("devnet.yaml:2:15: chain.block_time: "), "{error}");
}

#[test]
fn errors_name_file_line_field_and_allowed_values() {
    let check = |text: &str, message: &str| {
        assert_eq!(told(&resolve(text).unwrap_err()), message, "{text}");
    };
    check(
        "name: x\nvalidatorz: 4\n",
        "devnet.yaml:2: unknown field `validatorz`, expected one of `name`, `hosts`, `image`, \
         `chain`, `selection`, `migration`, `connectivity`, `timers`, `tasks`, `speculation`, `lease`, `storage`, \
         `telemetry`, `validators`, `runners`, `accounts`, `api`",
    );
    check(
        "selection:\n  seed: beacon\n",
        "devnet.yaml:2: selection.seed: unknown variant `beacon`, expected `parent` or \
         `certificate`",
    );
    check(
        "migration:\n  phase: dusk\n",
        "devnet.yaml:2: migration.phase: unknown variant `dusk`, expected one of `shadow`, \
         `hot-path`, `sunset`",
    );
    check(
        "chain:\n  presence:\n    threshold_rule: most\n",
        "devnet.yaml:3: chain.presence.threshold_rule: unknown variant `most`, expected one of \
         `committee`, `quorum`, `subset`",
    );
    check(
        "telemetry:\n  otlp: http://me:secret@127.0.0.1:4318\n",
        "devnet.yaml:2: telemetry.otlp: bad collector address, it contains a user name or \
         password: expected http:// or https:// with a host, as `http://127.0.0.1:4318`",
    );
    check(
        "telemetry: {otlp: grpc://127.0.0.1}\n",
        "devnet.yaml:1: telemetry.otlp: bad collector address, it is not an HTTP address: expected \
         http:// or https:// with a host, as `http://127.0.0.1:4318`",
    );
    let keep = "devnet.yaml:2: storage.keep: invalid value: ";
    let kept = "expected a number of blocks, 512 or more, a size for each validator, 64MB or more, \
                as `4GB`, or `all`";
    check("storage:\n  keep: 511\n", &format!("{keep}integer `511`, {kept}"));
    check("storage:\n  keep: 63MB\n", &format!("{keep}string \"63MB\", {kept}"));
    check(
        "storage:\n  reserve: 5\n",
        "devnet.yaml:2: storage.reserve: invalid value: integer `5`, expected a size, as `256MB`, \
         or 0",
    );
    check("storage:\n  keep: much\n", &format!("{keep}string \"much\", {kept}"));
    check(
        "storage:\n  reserve: much\n",
        "devnet.yaml:2: storage.reserve: `much` is not a size: expected a whole number and MB, GB, \
         TB, MiB, GiB or TiB, as `500MB` or `4GB`",
    );
    check(
        "chain:\n  blocktime: 1s\n",
        "devnet.yaml:2: chain: unknown field `blocktime`, expected one of `name`, `block_time`, \
         `seed`, `epoch_blocks`, `python`, `powers`, `presence`",
    );
    check(
        "chain:\n  epoch_blocks: 3\n",
        "devnet.yaml:2: chain.epoch_blocks: invalid value: integer `3`, expected a whole number \
         from 8 to 4294967296",
    );
    check(
        "chain:\n  block_time: 5 parsecs\n",
        "devnet.yaml:2: chain.block_time: invalid value: string \"5 parsecs\", expected a duration \
         from 0ms to 60s, as 250ms or 1s",
    );
    check(
        "chain:\n  block_time: 250\n",
        "devnet.yaml:2: chain.block_time: invalid type: integer `250`, expected a duration from \
         0ms to 60s, as 250ms or 1s",
    );
    check(
        "chain:\n  block_time: 2m\n",
        "devnet.yaml:2: chain.block_time: invalid value: string \"2m\", expected a duration from \
         0ms to 60s, as 250ms or 1s",
    );
    check(
        "chain:\n  seed: -1\n",
        "devnet.yaml:2: chain.seed: invalid type: integer `-1`, expected a whole number from 0 to \
         18446744073709551615",
    );
    check(
        "name: x\n\nvalidators: 0\n",
        "devnet.yaml:3: validators: invalid value: integer `0`, expected a whole number from 1 to \
         64, or a list of that length",
    );
    check(
        "validators: 65\n",
        "devnet.yaml:1: validators: invalid value: integer `65`, expected a whole number from 1 to \
         64, or a list of that length",
    );
    check(
        "validators: []\n",
        "devnet.yaml:1: validators: invalid length 0, expected a whole number from 1 to 64, or a \
         list of that length",
    );
    check(
        "validators: many\n",
        "devnet.yaml:1: validators: invalid type: string \"many\", expected a whole number from 1 \
         to 64, or a list of that length",
    );
    check(
        "validators:\n  - name: a\n  - {}\n",
        "devnet.yaml:3: validators[1]: missing field `name`",
    );
    check(
        "validators:\n  - name: a\n    stake: 5cby\n",
        "devnet.yaml:3: validators[0]: unknown field `stake`, expected one of `name`, \
             `binary`, `env`, `cpus`, `memory`, `core_dumps`, `restart`",
    );
    check(
        "validators:\n  - name: a\n  - name: b\n  - name: a\n",
        "devnet.yaml:4: validators[2].name: `a` is already the name of validators[0].name; names \
         are unique",
    );
    check(
        "validators: [{name: a}]\nrunners:\n  - name: dev-1\n",
        "devnet.yaml:3: runners[0].name: `dev-1` is already the name of the account dev-1; names \
         are unique",
    );
    check(
        "runners: [{name: Worker}]\n",
        "devnet.yaml:1: runners[0].name: invalid value: string \"Worker\", expected a name: 1 to \
         32 of a-z, 0-9 and -, the first not -",
    );
    check(
        "runners:\n  - name: worker\n    kinds: [custom, fax]\n",
        "devnet.yaml:3: runners[0].kinds[1]: unknown variant `fax`, expected one of `custom`, \
         `http`, `llm`, `mcp`, `eth_send`",
    );
    check(
        "runners:\n  - name: worker\n    kinds: []\n",
        "devnet.yaml:3: runners[0].kinds: no kind: expected at least one of `custom`, `http`, \
         `llm`, `mcp`, `eth_send`",
    );
    check(
        "runners:\n  - name: worker\n    kinds: [http, http]\n",
        "devnet.yaml:3: runners[0].kinds: `http` is listed twice",
    );
    check(
        "runners:\n  - name: worker\n    stake: 1cby\n",
        "devnet.yaml:3: runners[0].stake: 1000000000 wei are less than a runner must lock: \
         expected at least 10000000000000 wei (10000cby)",
    );
    check(
        "runners:\n  - name: worker\n    stake: lots\n",
        "devnet.yaml:3: runners[0].stake: invalid value: string \"lots\", expected an amount: wei \
         as 1500, or CBY as 1.5cby",
    );
    check(
        "runners:\n  - name: worker\n    max_concurrent_jobs: 0\n",
        "devnet.yaml:3: runners[0].max_concurrent_jobs: invalid value: integer `0`, expected a \
         whole number from 1 to 1024",
    );
    check(
        "runners: 5000\n",
        "devnet.yaml:1: runners: invalid value: integer `5000`, expected a whole number from 0 to \
         4096, or a list of that length",
    );
    check(
        "accounts:\n  count: 2000\n",
        "devnet.yaml:2: accounts.count: invalid value: integer `2000`, expected a whole number \
         from 0 to 1000",
    );
    check(
        "accounts:\n  extra:\n    - name: alice\n",
        "devnet.yaml:3: accounts.extra[0]: missing field `balance`",
    );
    check(
        "accounts:\n  balance: 340282366920938463463374607431768211455\n",
        "devnet.yaml:2: accounts: balances and stakes together are more than 2^127 wei",
    );
    check(
        "api:\n  port: 70000\n",
        "devnet.yaml:2: api.port: invalid value: integer `70000`, expected a whole number from 0 \
         to 65535",
    );
    check(
        "- a\n- b\n",
        "devnet.yaml:1: invalid type: sequence, expected a topology: fields and their values",
    );
    check("name: a: b\n", "devnet.yaml:1: mapping values are not allowed in this context");
    check(
        "name: x\nvalidators: 16\n",
        "devnet.yaml:1: chain.presence.threshold_rule: with 16 validators `committee` needs 6 votes \
         and a runner has 5 connections: no runner would ever be present; expected `subset`, or \
         fewer validators",
    );
}

#[test]
fn timers_are_as_written() {
    let plan = resolve(
        "timers:
  policy: fifo
  activation: {policy: eip1559, height: 500}
  deprecation_blocks: 7
  fairness: {scope: deployer, window_blocks: 50}
  genesis_lane_basefee: 3cby
  max_ttl_blocks: 1
  max_cycles_per_fire: 2
  max_cells_per_fire: 3
  max_timers_per_actor: 4
  gc_cycles_per_block: 5
  lane_timer_cycles: 6
  lane_timer_cells: 640
  max_cycles_per_fire_auction_phase: 7
  priority_tier_multipliers: {economy: 8, standard: 9, fast: 10, urgent: 11}
  priority_tier_floor: 13
  least_share_of_bought_cycles: 14
  lane_fee_multiplier: 15
  lane_basefee_change_denominator: 16
  lane_basefee_min: 17
  lane_basefee_max: 900000000000000000
  weight_lambda: 19
  weight_min: 20
  weight_starvation_floor: 21
  weight_max: 1000022
",
    )
    .unwrap();
    let expected = timer::Params {
        policy: timer::Policy::Fifo,
        activation: Some(timer::Activation {
            policy: timer::Policy::Eip1559,
            height: Height::new(500),
        }),
        deprecation_blocks: 7,
        scope: timer::FairnessScope::Deployer,
        genesis_lane_basefee: Wei::cby(3),
        config: TimerConfig {
            max_ttl_blocks: 1,
            max_cycles_per_fire: 2,
            max_cells_per_fire: 3,
            max_timers_per_actor: 4,
            gc_cycles_per_block: 5,
            lane_timer_cycles: 6,
            lane_timer_cells: 640,
            max_cycles_per_fire_auction_phase: 7,
            fairness_window_blocks: 50,
            priority_tier_multipliers: timer::Tiers {
                economy: 8,
                standard: 9,
                fast: 10,
                urgent: 11,
            },
            priority_tier_floor: 13,
            least_share_of_bought_cycles: 14,
            lane_fee_multiplier: 15,
            lane_basefee: LaneCurve {
                change_denominator: 16,
                min: 17,
                max: 900_000_000_000_000_000,
            },
            weights: timer::auction::Weighting {
                lambda: 19,
                min: 20,
                max: 1_000_022,
                starvation_floor: 21,
            },
        },
    };
    assert_eq!(plan.timers, expected);
    assert_eq!(resolve(&plan.to_yaml()).unwrap(), plan, "a saved plan is the plan");
    let part = resolve("timers: {fairness: {scope: deployer}}\n").unwrap().timers;
    let scope = timer::FairnessScope::Deployer;
    assert_eq!(part, timer::Params { scope, ..timer::Params::default() });
}

#[test]
fn limits_of_timers_have_the_bounds_of_their_keys() {
    let of_timers = |key: &&Key| {
        ![Key::CONNECTIVITY, Key::TASKS].iter().any(|subject| key.name.starts_with(subject))
    };
    for key in Governed::KEYS.iter().filter(of_timers).filter(|key| key.words.is_empty()) {
        let name = key.name.rsplit(':').next().unwrap();
        // Other fields that must be consistent with it.
        let others = match name {
            "lane_basefee_min" => "genesis_lane_basefee: 1000000000000000000wei",
            "lane_basefee_max" => "genesis_lane_basefee: 1wei, lane_basefee_min: 1",
            "weight_starvation_floor" => "weight_min: 1, weight_max: 10000000",
            "weight_min" | "weight_max" => "weight_starvation_floor: 1000000",
            _ => "deprecation_blocks: 1000",
        };
        let text = |value: u64| match name.split_once('.') {
            Some((outer, inner)) => format!("timers: {{{outer}: {{{inner}: {value}}}}}\n"),
            None if name == "fairness_window_blocks" => {
                format!("timers: {{fairness: {{window_blocks: {value}}}}}\n")
            }
            None => format!("timers: {{{others}, {name}: {value}}}\n"),
        };
        for value in [key.min, key.max] {
            let timers = resolve(&text(value)).unwrap().timers;
            let first = Governed::first(&timers, Connectivity::DEFAULT, Bonds::DEFAULT);
            assert_eq!(first.get(key.name), Some(value), "{name}");
        }
        for value in [key.min.checked_sub(1), Some(key.max + 1)].into_iter().flatten() {
            let error = resolve(&text(value)).unwrap_err().to_string();
            let range = format!("expected a whole number from {} to {}", key.min, key.max);
            assert!(error.contains(&range) && error.contains("timers"), "{error}");
        }
    }
}

#[test]
fn connectivity_has_the_bounds_of_its_keys() {
    for key in Governed::KEYS.iter().filter(|key| key.name.starts_with(Key::CONNECTIVITY)) {
        let name = key.name.rsplit(':').next().unwrap();
        // Other fields that must be consistent with it.
        let others = match name {
            "heartbeat_blocks" => "presence_timeout_blocks: 60, ack_timeout_blocks: 60",
            "overlap_blocks" => "subset_epoch_blocks: 100000",
            "subset_epoch_blocks" => "overlap_blocks: 1",
            _ => "",
        };
        let comma = if others.is_empty() { "" } else { ", " };
        let text = |value: u64| format!("connectivity: {{{others}{comma}{name}: {value}}}\n");
        for value in [key.min, key.max] {
            let plan = resolve(&text(value)).unwrap();
            let first = Governed::first(&plan.timers, plan.connectivity, plan.bonds);
            assert_eq!(first.get(key.name), Some(value), "{name}");
            assert_eq!(resolve(&plan.to_yaml()).unwrap(), plan, "a saved plan is the plan");
        }
        for value in [key.min - 1, key.max + 1] {
            let error = resolve(&text(value)).unwrap_err().to_string();
            let range = format!("expected a whole number from {} to {}", key.min, key.max);
            assert!(error.contains(&range) && error.contains("connectivity"), "{error}");
        }
    }
    assert_eq!(resolve("").unwrap().connectivity, Connectivity::DEFAULT);
}

#[test]
fn bonds_have_the_bounds_of_their_keys() {
    for key in Governed::KEYS.iter().filter(|key| key.name.starts_with(Key::TASKS)) {
        let name = key.name.rsplit(':').next().unwrap();
        let text = |value: u64| format!("tasks: {{{name}: {value}}}\n");
        for value in [key.min, key.max] {
            let plan = resolve(&text(value)).unwrap();
            let first = Governed::first(&plan.timers, plan.connectivity, plan.bonds);
            assert_eq!(first.get(key.name), Some(value), "{name}");
            assert_eq!(resolve(&plan.to_yaml()).unwrap(), plan, "a saved plan is the plan");
        }
        for value in [key.min.checked_sub(1), Some(key.max + 1)].into_iter().flatten() {
            let error = resolve(&text(value)).unwrap_err().to_string();
            let range = format!("expected a whole number from {} to {}", key.min, key.max);
            assert!(error.contains(&range) && error.contains("tasks"), "{error}");
        }
    }
    assert_eq!(resolve("").unwrap().bonds, Bonds::DEFAULT);
}

#[test]
fn what_connectivity_cannot_be_is_said() {
    let check = |text: &str, message: &str| {
        assert_eq!(told(&resolve(text).unwrap_err()), message, "{text}");
    };
    check(
        "connectivity:\n  overlap_blocks: 64\n  subset_epoch_blocks: 64\n",
        "devnet.yaml:2: connectivity.overlap_blocks: 64: expected less than 64, which is \
         `subset_epoch_blocks`",
    );
    check(
        "connectivity:\n  subset_epoch_blocks: 16\n",
        "devnet.yaml:2: connectivity.subset_epoch_blocks: 16: expected more than 32, which is \
         `overlap_blocks`",
    );
    check(
        "connectivity: {presence_timeout_blocks: 4, heartbeat_blocks: 4}\n",
        "devnet.yaml:1: connectivity.heartbeat_blocks: 4: expected less than 4, which is \
         `presence_timeout_blocks`",
    );
}

#[test]
fn what_timers_cannot_be_is_said() {
    let check = |text: &str, message: &str| {
        assert_eq!(told(&resolve(text).unwrap_err()), message, "{text}");
    };
    check(
        "timers:\n  policy: lifo\n",
        "devnet.yaml:2: timers.policy: unknown variant `lifo`, expected one of `eip1559`, `fifo`, \
         `gba-auction`",
    );
    check(
        "timers:\n  policy: fifo\n  activation:\n    policy: fifo\n    height: 9\n",
        "devnet.yaml:4: timers.activation.policy: `fifo` is the policy from the start; expected \
         another one, or no activation",
    );
    check(
        "timers:\n  activation: {policy: fifo}\n",
        "devnet.yaml:2: timers.activation: missing field `height`",
    );
    check(
        "timers:\n  genesis_lane_basefee: 0\n",
        "devnet.yaml:2: timers.genesis_lane_basefee: 0 wei per cycle is not a lane basefee: \
         expected 1 to 1000000000000000000 wei",
    );
    check(
        "timers:\n  weight_min: 900000\n  weight_starvation_floor: 800000\n",
        "devnet.yaml:2: timers: ParameterConflict: system:cip1:weight_min would be 900000, above \
         system:cip1:weight_starvation_floor, which would be 800000",
    );
    check(
        "accounts:\n  extra:\n    - {name: governance, balance: 1}\n",
        "devnet.yaml:3: accounts.extra[0].name: `governance` is already the name of the account \
         governance; names are unique",
    );
}

#[test]
fn feasibility_follows_the_known_limits() {
    for n in 1..=64 {
        // Spec connectivity.md §5: certain only for n <= 6 and n = 9; with 16 never. 17 and 18 have
        // one connection more, and then all six validators must be among the votes.
        let expected = match n {
            1..=6 | 9 => Visibility::Always,
            7 | 8 | 10..=15 | 17 | 18 => Visibility::Sometimes,
            _ => Visibility::Never,
        };
        let feasibility = Feasibility::of(n, ThresholdRule::Committee);
        assert_eq!(feasibility.visibility, expected, "{n}");
        let (some, all) = feasibility.present.expect("a u128 holds it");
        let visibility = match some {
            0 => Visibility::Never,
            _ if some == all => Visibility::Always,
            _ => Visibility::Sometimes,
        };
        assert_eq!(visibility, expected, "{n}");
    }
    // The numbers given in the spec.
    let [seven, ten] = [7, 10].map(|n| Feasibility::of(n, ThresholdRule::Committee));
    assert_eq!((seven.present, seven.present_in().as_str()), (Some((5, 7)), "71.4 %"));
    assert_eq!((ten.present, ten.present_in().as_str()), (Some((1, 2)), "50.0 %"));
    let literal = Feasibility::of(4, ThresholdRule::Quorum);
    assert_eq!((literal.threshold, literal.to_fabricate), (1, 1));
    // One vote is enough, and a certificate leaves out (n - 1) / 3 of them.
    for n in 1..=64 {
        let feasibility = Feasibility::of(n, ThresholdRule::Subset);
        let certain = feasibility.subset > (n as u32 - 1) / 3;
        let expected = if certain { Visibility::Always } else { Visibility::Sometimes };
        assert_eq!(feasibility.visibility, expected, "{n}");
    }
}

#[test]
fn a_large_committee_without_runners_is_fine() {
    assert!(resolve("validators: 20\nrunners: 0\n").is_ok());
    assert!(resolve("validators: 20\nchain: {presence: {threshold_rule: subset}}\n").is_ok());
}

#[test]
fn a_chain_has_the_devnet_s_name_or_one_of_its_own() {
    let plan = resolve("name: one\n").unwrap();
    assert_eq!(plan.chain_name.as_str(), "one");
    assert!(!plan.to_yaml().contains("chain_name"));
    let plan = resolve("name: two\nchain: {name: one}\n").unwrap();
    assert_eq!((plan.name.as_str(), plan.chain_name.as_str()), ("two", "one"));
    assert_eq!(resolve(&plan.to_yaml()).unwrap(), plan);
}

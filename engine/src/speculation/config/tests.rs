//! Options: their ranges, their errors, their modes.

use super::*;

fn problems<'a>(settings: &[(&'a str, &'a str)]) -> Vec<String> {
    let wrong = Config::default().with(settings.iter().copied()).unwrap_err();
    wrong.iter().map(ToString::to_string).collect()
}

#[test]
fn every_option_has_a_value_within_its_range() {
    let config = Config::default();
    for setting in config.settings() {
        let again = config.with([(setting.option, setting.value.as_str())]).unwrap();
        assert_eq!(again.get(setting.option), Some(setting.value), "{}", setting.option);
    }
}

#[test]
fn an_error_names_option_value_and_range() {
    let check = |option: &str, value: &str, expected: &str| {
        assert_eq!(problems(&[(option, value)]), [expected]);
    };
    check("maxDepth", "21", "speculation.maxDepth: `21` is out of range: expected 1 to 20");
    check(
        "speculation.maxDepth",
        "deep",
        "speculation.maxDepth: `deep` is out of range: expected 1 to 20",
    );
    check("enabled", "yes", "speculation.enabled: `yes` is out of range: expected true or false");
    check(
        "limits.maxMemoryMb",
        "511",
        "speculation.limits.maxMemoryMb: `511` is out of range: expected 512 or more",
    );
    check(
        "features.rolloutPercentage",
        "100.1",
        "speculation.features.rolloutPercentage: `100.1` is out of range: expected 0 to 100, at most 2 decimals",
    );
    check(
        "slash.proofFailed",
        "0.5",
        "speculation.slash.proofFailed: the chain says that, not its agents: `chain params get slash_proof_failed` shows it; a topology has it as `tasks: {slash_proof_failed: …}`, in basis points",
    );
    check(
        "proof.generator",
        "plonk",
        "speculation.proof.generator: `plonk` is not available: expected groth16, mock",
    );
    check(
        "features.enableCrossAgent",
        "true",
        "speculation.features.enableCrossAgent: `true` is not available: expected false",
    );
    check("maxDpeth", "5", "speculation.maxDpeth: there is no such option");
}

#[test]
fn all_that_is_wrong_is_told_and_nothing_changes() {
    let config = Config::default();
    let wrong = config.with([("proof.queueSize", "5"), ("maxDepth", "3"), ("mode", "fast")]);
    let options: Vec<_> = wrong.unwrap_err().into_iter().map(|error| error.option).collect();
    assert_eq!(options, ["mode", "proof.queueSize"]);
    assert_eq!(problems(&[("maxDepth", "3"), ("speculation.maxDepth", "4")]).len(), 1);
    assert_eq!(config, Config::default());
}

#[test]
fn what_is_set_by_itself_wins_over_the_mode() {
    let read = |config: &Config| {
        (config.max_depth, config.max_parallel_branches, config.min_stake, config.stake_per_depth)
    };
    let config = Config::default();
    let mode = |mode: &'static str| config.with([("mode", mode)]).unwrap();
    assert_eq!(read(&config), (5, 4, 100_000_000_000, 50_000_000_000));
    assert_eq!(read(&mode("conservative")), (2, 2, 500_000_000_000, 250_000_000_000));
    assert_eq!(read(&mode("balanced")), read(&config));
    assert_eq!(read(&mode("aggressive")), (10, 8, 50_000_000_000, 25_000_000_000));
    assert_eq!(read(&mode("aggressive").with([("mode", "custom")]).unwrap()).0, 10);
    let depth = config.with([("maxDepth", "7"), ("mode", "conservative")]).unwrap();
    assert_eq!(read(&depth), (7, 2, 500_000_000_000, 250_000_000_000));
    let later = depth.with([("mode", "aggressive")]).unwrap();
    assert_eq!(read(&later), (7, 8, 50_000_000_000, 25_000_000_000));
    assert!(later.is_explicit("maxDepth") && !later.is_explicit("stake.minStake"));
}

#[test]
fn options_that_contradict_one_another_are_refused() {
    let check = |settings: &[(&str, &str)], expected: &str| {
        assert_eq!(problems(settings), [expected]);
    };
    check(
        &[("stake.maxStake", "999999")],
        "speculation.stake.minStake: `100000000000` does not go with `stake.maxStake`, which \
         is `999999`: expected no more than that",
    );
    check(
        &[("mode", "conservative"), ("stake.maxStake", "1000000")],
        "speculation.stake.minStake: `500000000000` does not go with `stake.maxStake`, which \
         is `1000000`: expected no more than that",
    );
    let both = [("stake.minStake", "5"), ("stake.maxStake", "5")];
    assert_eq!(Config::default().with(both).unwrap().max_stake, 5);
    assert_eq!(
        problems(&[("claimBufferMs", "43200001")]),
        ["speculation.claimBufferMs: `43200001` is out of range: expected 0 to 43200000"]
    );
}

#[test]
fn decimals_are_exact() {
    let check = |text: &str, places: u32, expected: Option<u64>| {
        assert_eq!(decimal(text, places), expected, "{text}");
    };
    check("0.1", 4, Some(1_000));
    check("0.1000", 4, Some(1_000));
    check("0.10000000", 4, Some(1_000));
    check("0.00001", 4, None);
    check("10", 4, Some(100_000));
    check("100.0", 2, Some(10_000));
    check("33.33", 2, Some(3_333));
    check("1.", 2, None);
    check(".5", 2, None);
    check("-1", 2, None);
    check("99999999999999999999", 2, None);
    assert_eq!(point(10_000, 2), "100");
    assert_eq!(point(3_330, 2), "33.3");
    assert_eq!(point(1, 4), "0.0001");
}

//! Files as written, and what is said of those that cannot be.

use super::Config;
use clap::{Arg, ArgAction, Command, builder::FalseyValueParser, value_parser};
use std::ffi::OsString;

fn command() -> Command {
    let flag = |name: &'static str, short| {
        let arg = Arg::new(name).long(name).short(short).global(true).action(ArgAction::SetTrue);
        arg.value_parser(FalseyValueParser::new()).env("COWBOYCTL_TEST_NOT_SET")
    };
    let up = Command::new("up")
        .arg(
            Arg::new("validators")
                .long("validators")
                .value_parser(value_parser!(u64).range(1..=64)),
        )
        .arg(Arg::new("kinds").long("kinds").value_delimiter(','))
        .arg(Arg::new("seed").long("seed").conflicts_with("seeds"))
        .arg(Arg::new("seeds").long("seeds"))
        .arg(Arg::new("detach").long("detach").action(ArgAction::SetTrue));
    Command::new("cowboyctl")
        .arg(Arg::new("devnet").long("devnet").global(true))
        .arg(Arg::new("output").long("output").short('o').global(true).default_value("table"))
        .arg(flag("quiet", 'q'))
        .subcommand(Command::new("devnet").subcommand(up).subcommand(Command::new("status")))
        .subcommand(Command::new("job").subcommand(Command::new("ls")))
}

fn read(text: &str) -> Result<Config, String> {
    let config =
        Config::parse("config.toml", text.to_owned()).map_err(|error| error.to_string())?;
    config.check(&command()).map_err(|error| error.to_string())?;
    Ok(config)
}

/// What the first argument of a command comes to, by the file.
fn value(text: &str, line: &str, option: &str) -> Vec<String> {
    let config = read(text).unwrap();
    let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
    let with = |given| config.applied(command(), given).try_get_matches_from(&words).unwrap();
    let first = with(None);
    let found = with(Some(&first));
    let mut at = &found;
    while let Some((_, below)) = at.subcommand() {
        at = below;
    }
    let raw = at.get_raw(option).into_iter().flatten();
    raw.map(|value| value.to_string_lossy().into_owned()).collect()
}

#[test]
fn defaults_count_where_nothing_else_is_said() {
    let file = "output = 'json'\nquiet = true\n[defaults.\"devnet up\"]\nvalidators = 7\n\
                kinds = ['a', 'b']\ndetach = true\nseeds = '1..3'\n";
    let check = |line: &str, option: &str, expected: &[&str]| {
        assert_eq!(value(file, line, option), expected, "{line} --{option}");
    };
    check("cowboyctl devnet up", "validators", &["7"]);
    check("cowboyctl devnet up --validators 3", "validators", &["3"]);
    check("cowboyctl devnet up", "kinds", &["a", "b"]);
    check("cowboyctl devnet up", "detach", &["true"]);
    check("cowboyctl devnet up", "output", &["json"]);
    check("cowboyctl devnet up -o yaml", "output", &["yaml"]);
    check("cowboyctl devnet status", "quiet", &["true"]);
    // What is said excludes it.
    check("cowboyctl devnet up", "seeds", &["1..3"]);
    check("cowboyctl devnet up --seed 4", "seeds", &[]);
}

#[test]
fn aliases_stand_for_commands_behind_global_options() {
    let config = read(
        "[alias]\nst = 'devnet status'\nup7 = ['devnet', 'up', '--validators', '7']\nagain = 'st -q'\n",
    )
    .unwrap();
    let check = |line: &str, expected: &str| {
        let words = line.split(' ').map(OsString::from).collect();
        let expanded = config.expand(&command(), words);
        let expanded: Vec<_> = expanded.iter().map(|word| word.to_string_lossy()).collect();
        assert_eq!(expanded.join(" "), expected);
    };
    check("cowboyctl st", "cowboyctl devnet status");
    check("cowboyctl -o json st x", "cowboyctl -o json devnet status x");
    check(
        "cowboyctl -qo json --devnet a --output=yaml st",
        "cowboyctl -qo json --devnet a --output=yaml devnet status",
    );
    check("cowboyctl again", "cowboyctl devnet status -q");
    check("cowboyctl up7 --detach", "cowboyctl devnet up --validators 7 --detach");
    // What is not the command stays.
    check("cowboyctl --devnet st job ls st", "cowboyctl --devnet st job ls st");
    check("cowboyctl -- st", "cowboyctl -- st");
    check("cowboyctl", "cowboyctl");
}

#[test]
fn what_cannot_be_is_told_with_its_line_and_what_to_do() {
    let told = |text: &str| read(text).unwrap_err();
    insta::assert_snapshot!(told("devnet = \"a\"\noutptu = 'json'\n"), @"");
    insta::assert_snapshot!(told("validators = 7\n"), @"");
    insta::assert_snapshot!(told("a = [1,\n"), @"");
    insta::assert_snapshot!(told("[defaults]\nx = 1\n"), @"");
    insta::assert_snapshot!(told("[defaults.\"devnet upp\"]\nvalidators = 7\n"), @"");
    insta::assert_snapshot!(told("[defaults.\"devnet up\"]\nvalidatrs = 7\n"), @"");
    insta::assert_snapshot!(told("[defaults.\"devnet up\"]\noutput = 'json'\n"), @"");
    insta::assert_snapshot!(told("[defaults.\"devnet up\"]\nvalidators = 70\n"), @"");
    insta::assert_snapshot!(told("[defaults.\"devnet up\"]\nvalidators = [1, 2]\n"), @"");
    insta::assert_snapshot!(told("[defaults.\"devnet up\"]\ndetach = 'yes'\n"), @"");
    insta::assert_snapshot!(told("[defaults.\"devnet up\"]\nkinds = 2026-11-20\n"), @"");
    insta::assert_snapshot!(told("[defaults.\"devnet up\"]\nseed = ''\n"), @"");
    insta::assert_snapshot!(told("[alias]\njob = 'devnet status'\n"), @"");
    insta::assert_snapshot!(told("[alias]\na = 'b'\nb = 'c -q'\nc = 'a'\n"), @"");
    insta::assert_snapshot!(told("[alias]\na = 'devnt status'\n"), @"");
    insta::assert_snapshot!(told("[alias]\na = '-q'\n"), @"");
    insta::assert_snapshot!(told("[alias]\na = 7\n"), @"");
    insta::assert_snapshot!(told("[alias]\n-a = 'devnet status'\n"), @"");
}

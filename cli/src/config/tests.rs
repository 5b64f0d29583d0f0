//! Configuration files, and the errors about invalid ones.

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

/// The values of an option after parsing, with the file.
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
    // A given option excludes a setting.
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
    // Only the command is expanded.
    check("cowboyctl --devnet st job ls st", "cowboyctl --devnet st job ls st");
    check("cowboyctl -- st", "cowboyctl -- st");
    check("cowboyctl", "cowboyctl");
}

#[test]
fn what_cannot_be_is_told_with_its_line_and_what_to_do() {
    let told = |text: &str| read(text).unwrap_err();
    insta::assert_snapshot!(told("devnet = \"a\"\noutptu = 'json'\n"), @"
    config.toml:2:1: unknown key `outptu`
      2 | outptu = 'json'
        | ^^^^^^
      did you mean `output`?
      expected devnet, node, output, quiet, wide, [defaults.…] or [alias]
    ");
    insta::assert_snapshot!(told("validators = 7\n"), @r#"
    config.toml:1:1: unknown key `validators`
      1 | validators = 7
        | ^^^^^^^^^^
      options of one command go into a table of it, as [defaults."devnet up"]
      expected devnet, node, output, quiet, wide, [defaults.…] or [alias]
    "#);
    insta::assert_snapshot!(told("a = [1,\n"), @"
    config.toml:1:8: unclosed array, expected `]`
      1 | a = [1,
        |        ^
      the format is TOML: https://toml.io
    ");
    insta::assert_snapshot!(told("[defaults]\nx = 1\n"), @r#"
    config.toml:2:1: `defaults.x` is not a table of options
      2 | x = 1
        | ^
      write [defaults."devnet up"], and below it validators = 7
    "#);
    insta::assert_snapshot!(told("[defaults.\"devnet upp\"]\nvalidators = 7\n"), @"
    config.toml:2:1: there is no command `devnet upp`
      2 | validators = 7
        | ^^^^^^^^^^
      did you mean `up` for `upp`?
      list them: cowboyctl --help
    ");
    insta::assert_snapshot!(told("[defaults.\"devnet up\"]\nvalidatrs = 7\n"), @"
    config.toml:2:1: `devnet up` has no option --validatrs
      2 | validatrs = 7
        | ^^^^^^^^^
      did you mean `validators`?
      list its options: cowboyctl devnet up --help
    ");
    insta::assert_snapshot!(told("[defaults.\"devnet up\"]\noutput = 'json'\n"), @"
    config.toml:2:1: `devnet up` has no option --output
      2 | output = 'json'
        | ^^^^^^
      global options are set above all tables
      list its options: cowboyctl devnet up --help
    ");
    insta::assert_snapshot!(told("[defaults.\"devnet up\"]\nvalidators = 70\n"), @"
    config.toml:2:14: invalid value '70' for '--validators': 70 is not in 1..=64
      2 | validators = 70
        |              ^^
      see what it takes: cowboyctl devnet up --help
    ");
    insta::assert_snapshot!(told("[defaults.\"devnet up\"]\nvalidators = [1, 2]\n"), @"
    config.toml:2:14: `validators` takes one value
      2 | validators = [1, 2]
        |              ^^
      write it without brackets
    ");
    insta::assert_snapshot!(told("[defaults.\"devnet up\"]\ndetach = 'yes'\n"), @"
    config.toml:2:10: `detach` is true or false
      2 | detach = 'yes'
        |          ^^^^^
      write it without quotes
    ");
    insta::assert_snapshot!(told("[defaults.\"devnet up\"]\nkinds = 2026-11-20\n"), @"
    config.toml:2:9: `kinds` is not a text, a number, true or false, or a list of them
      2 | kinds = 2026-11-20
        |         ^^^^^^^^^^
      write it as on a command line
    ");
    insta::assert_snapshot!(told("[defaults.\"devnet up\"]\nseed = ''\n"), @"
    config.toml:2:8: `seed` is empty
      2 | seed = ''
        |        ^^
      leave the line out to set nothing
    ");
    insta::assert_snapshot!(told("[alias]\njob = 'devnet status'\n"), @"
    config.toml:2:1: alias `job` has the name of a command
      2 | job = 'devnet status'
        | ^^^
      give it another name: commands cannot be replaced
    ");
    insta::assert_snapshot!(told("[alias]\na = 'b'\nb = 'c -q'\nc = 'a'\n"), @"
    config.toml:2:1: alias `a` comes back to itself
      2 | a = 'b'
        | ^
      a → b → c → a
      let one of them begin with a command
    ");
    insta::assert_snapshot!(told("[alias]\na = 'devnt status'\n"), @"
    config.toml:2:1: alias `a`: there is no command `devnt`
      2 | a = 'devnt status'
        | ^
      did you mean `devnet`?
      list them: cowboyctl --help
    ");
    insta::assert_snapshot!(told("[alias]\na = '-q'\n"), @r#"
    config.toml:2:1: alias `a` names no command
      2 | a = '-q'
        | ^
      begin it with one, as "devnet status"
    "#);
    insta::assert_snapshot!(told("[alias]\na = 7\n"), @r#"
    config.toml:2:5: alias `a` is not the words of a command line
      2 | a = 7
        |     ^
      write [alias], and below it st = "devnet status"
    "#);
    insta::assert_snapshot!(told("[alias]\n-a = 'devnet status'\n"), @"
    config.toml:2:1: `-a` is not a name for an alias
      2 | -a = 'devnet status'
        | ^^
      expected a word that does not begin with -
    ");
}

//! Properties of the whole command line, for every command.

use super::*;
use clap::{Arg, Command as ClapCommand};

/// Every command that has no subcommands, by its path.
fn leaves(command: &ClapCommand, path: &str, found: &mut Vec<String>) {
    let mut children = command.get_subcommands().peekable();
    if children.peek().is_none() {
        found.push(path.to_owned());
    }
    for child in children {
        leaves(child, format!("{path} {}", child.get_name()).trim(), found);
    }
}

#[test]
fn the_command_line_is_consistent() {
    command().debug_assert();
}

#[test]
fn there_are_these_commands() {
    let mut found = Vec::new();
    leaves(&command(), "", &mut found);
    insta::assert_snapshot!(found.join("\n"));
}

#[test]
fn help_is_as_people_see_it() {
    let mut command = command().term_width(96);
    insta::assert_snapshot!(command.render_help().to_string());
}

/// Flags whose meaning differs between commands: one variable would set them all. `devnet env` sets
/// COWBOYCTL_RPC_URL for other programs; a runner follows the devnet by its name. It also sets
/// COWBOYCTL_TOKEN_FILE, and a lease runner has a token of its own.
const AMBIGUOUS: [&str; 7] = ["as", "from", "impersonate", "payer", "wait", "rpc-url", "tee"];

#[test]
fn every_flag_has_its_variable() {
    fn check(command: &ClapCommand) {
        let has_flag = |arg: &&Arg| arg.get_long().is_some() && !arg.is_hide_set();
        for arg in command.get_arguments().filter(has_flag) {
            let flag = arg.get_long().expect("filtered");
            let is_own = (command.get_name(), flag) == ("runner", "token-file");
            let expected = (!AMBIGUOUS.contains(&flag) && !is_own)
                .then(|| format!("COWBOYCTL_{}", flag.replace('-', "_").to_uppercase()));
            let variable = arg.get_env().map(|name| name.to_string_lossy().into_owned());
            assert_eq!(variable, expected, "--{flag} of {}", command.get_name());
            assert!(arg.is_hide_env_values_set() || expected.is_none(), "--{flag} shows a value");
        }
        command.get_subcommands().for_each(check);
    }
    check(&command());
}

#[test]
fn command_lines_parse() {
    let parses = |line: &str| Cli::try_parse_from(line.split_whitespace()).map(|_| ());
    let check = |line: &str| assert!(parses(line).is_ok(), "{line}: {}", parses(line).unwrap_err());
    let refuse = |line: &str| assert_eq!(parses(line).unwrap_err().exit_code(), 2, "{line}");
    check("cowboyctl devnet up --detach --wait 3 --block-time 250ms -o json");
    check("cowboyctl devnet up -f devnet.yaml --name a --validators 4 --runners 0 --seed 7");
    check("cowboyctl job submit custom --wait -- sh -c echo");
    check("cowboyctl job submit custom --max-price 1.5cby --env A=b -- env");
    check("cowboyctl job submit http http://127.0.0.1/ --header Accept:text --pointer /a");
    check("cowboyctl presence show +10 --node validator-2");
    check("cowboyctl presence show");
    check("cowboyctl chain wait +3 --timeout 5s");
    check("cowboyctl chain advance --blocks 100 --timeout 5m");
    check("cowboyctl chain advance 70");
    refuse("cowboyctl chain advance");
    check("cowboyctl timer fees --limit 3");
    // Its former name.
    check("cowboyctl timer fees --blocks 3");
    check("cowboyctl account new alice --fund 1.5cby");
    check("cowboyctl devnet snapshot save");
    check("cowboyctl devnet snapshot save before --timeout 5m");
    check("cowboyctl devnet snapshot load before --name other --force");
    check("cowboyctl devnet snapshot rm a b");
    check("cowboyctl devnet report --force");
    check("cowboyctl job ls --status verified");
    check("cowboyctl --quiet devnet ls");
    check("cowboyctl actor deploy counter.star --from dev-1 --timeout 5s");
    check("cowboyctl actor ls --deployer dev-1 --limit 3");
    check("cowboyctl actor show 0x12ab --prefix a/ --limit 3");
    check("cowboyctl actor call 0x12ab bump");
    check("cowboyctl actor call 0x12ab bump @- --value 1.5cby --cycles 5000 --cells 10");
    check("cowboyctl actor call 0x12ab bump 0x00 --dry-run --at 7");
    check("cowboyctl actor call 0x12ab bump --timer-allowance 1.5cby");
    check("cowboyctl timer schedule 0x12ab --in 3 --payer sender --cells 640");
    check("cowboyctl timer schedule 0x12ab --in 3 --payer sender --timer-allowance 2cby");
    check("cowboyctl timer ls --payer dev-0 --all");
    check("cowboyctl actor logs 0x12ab --from +0 --follow");
    check("cowboyctl fault partition a,b c --for +10");
    check("cowboyctl fault latency a..b 50ms --jitter 5ms --seed 7 --for 2m");
    check("cowboyctl fault loss a 0.5");
    check("cowboyctl fault heal");
    check("cowboyctl runner register --key-file a --kinds http --max-jobs 2 --from dev-0");
    check("cowboyctl runner start --key-file a --name b --kinds custom,http --detach");
    check("cowboyctl runner start runner-0");
    check("cowboyctl lease submit ci.yaml --wait --timeout 5m --env A=b --env C=d --job unit");
    check("cowboyctl lease submit - --server http://127.0.0.1:1 --token-file t --ca c");
    check("cowboyctl lease ls --run latest --state running --limit 3");
    check("cowboyctl lease ls --runs");
    check("cowboyctl lease logs latest/unit --follow --attempt 2");
    check("cowboyctl lease artifacts job_1 a.txt b.txt --download out");
    check("cowboyctl lease cancel run_1 --wait");
    check("cowboyctl lease token issue r1 --file r1.token");
    check("cowboyctl man job submit");
    refuse("cowboyctl");
    refuse("cowboyctl devnet");
    refuse("cowboyctl devnet up --validators 0");
    refuse("cowboyctl devnet up --validators 65");
    refuse("cowboyctl devnet up --runners 4097");
    refuse("cowboyctl devnet up --wait 3");
    refuse("cowboyctl devnet up --block-time 5");
    refuse("cowboyctl devnet up --name Not_A_Name");
    refuse("cowboyctl chain block -1");
    refuse("cowboyctl chain wait soon");
    refuse("cowboyctl chain advance");
    refuse("cowboyctl chain advance --blocks 0");
    refuse("cowboyctl chain advance --blocks 100001");
    refuse("cowboyctl account new");
    refuse("cowboyctl account new Not_A_Name");
    refuse("cowboyctl devnet snapshot load");
    refuse("cowboyctl devnet snapshot rm");
    refuse("cowboyctl account transfer a b 1.5");
    refuse("cowboyctl job submit custom");
    refuse("cowboyctl job ls --status done");
    refuse("cowboyctl -o xml devnet ls");
    refuse("cowboyctl actor");
    refuse("cowboyctl actor deploy");
    check("cowboyctl actor call 0x12ab bump --dry-run --with-code next.star");
    check("cowboyctl actor repl 0x12ab --from faucet --with-code next.star --keep-going");
    refuse("cowboyctl actor repl");
    refuse("cowboyctl actor call 0x12ab bump --with-code next.star");
    refuse("cowboyctl actor call 0x12");
    refuse("cowboyctl actor call 0x12 bump --at 3");
    refuse("cowboyctl actor call 0x12 bump --value lots");
    refuse("cowboyctl actor logs 0x12 --lines 3 --from 4");
    refuse("cowboyctl fault kill");
    refuse("cowboyctl fault loss a 150");
    refuse("cowboyctl fault pause a --for 10");
    refuse("cowboyctl runner register");
    refuse("cowboyctl runner register runner-0 --max-jobs 2");
    refuse("cowboyctl runner start runner-0 --key-file a");
    refuse("cowboyctl runner backpressure runner-0 --max 0");
    check("cowboyctl runner capability remove runner-0 http llm:small mcp:files tee pool:eu");
    refuse("cowboyctl runner capability remove runner-0");
    refuse("cowboyctl runner capability add runner-0 fax");
    check("cowboyctl runner update runner-0 --tee --models a,b");
    check("cowboyctl runner update --key-file a --tee=false --model a --stake 20000cby");
    refuse("cowboyctl runner update runner-0");
    refuse("cowboyctl runner update --tee=perhaps runner-0");
    refuse("cowboyctl lease submit");
    refuse("cowboyctl lease submit ci.yaml --env A");
    refuse("cowboyctl lease ls --runs --state running");
    refuse("cowboyctl lease ls --state done");
    refuse("cowboyctl lease logs job_1 --attempt 0");
    refuse("cowboyctl lease token issue");
    check("cowboyctl help job submit");
    check("cowboyctl devnet rm a b");
    check("cowboyctl devnet rm --stopped");
    refuse("cowboyctl devnet rm a --all");
}

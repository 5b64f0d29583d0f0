//! The choice of the devnet and of options: flags, environment, `devnet use`, the configuration
//! file.

use crate::{
    answers::{answer, head},
    completing::pretend,
    shape,
    support::{Fake, Folder, Outcome, outcome},
};
use serde_json::Value;
use std::fs;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// Runs a command with this configuration file.
fn configured(folder: &Folder, file: &str, args: &[&str]) -> Outcome {
    let path = folder.path("config.toml");
    fs::write(&path, file).unwrap();
    outcome(folder.command(args).env("COWBOYCTL_CONFIG", path))
}

/// Runs a command that succeeds with this configuration file, and returns its output.
fn prints(folder: &Folder, file: &str, args: &[&str]) -> String {
    let outcome = configured(folder, file, args);
    shape::check(args, &outcome.stdout);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""), "{args:?}: {outcome:?}");
    outcome.stdout
}

#[test]
fn a_devnet_is_chosen_for_commands_that_name_none() {
    let fake = Fake::new(answer);
    let folder = &fake.folder;
    let _other = pretend(folder, "other", "http://127.0.0.1:1");
    let height = format!("{}\n", head().height);
    let asks = |args: &[&str]| folder.run(&[&["-q", "chain", "head"], args].concat());
    insta::assert_snapshot!(folder.fails(2, &["chain", "head"]), @"
    error: several devnets are running: local, other
      say which: --devnet NAME, or cowboyctl devnet use NAME
    ");
    assert_eq!(
        folder.prints(&["devnet", "use", "local"]),
        "commands that name no devnet take `local`\n"
    );
    assert_eq!(asks(&[]).stdout, height);
    // A flag and a variable take precedence over `devnet use`.
    assert_eq!(asks(&["--devnet", "other"]).code, 4);
    let named = outcome(folder.command(&["chain", "head"]).env("COWBOYCTL_DEVNET", "other"));
    assert_eq!(named.code, 4, "{named:?}");
    // `devnet use` takes precedence over the file.
    assert_eq!(prints(folder, "devnet = 'other'", &["-q", "chain", "head"]), height);
    let all = json(&folder.prints(&["-o", "json", "devnet", "ls"]));
    let current: Vec<_> = all.as_array().unwrap().iter().map(|d| &d["current"]).collect();
    assert_eq!(current, [true, false]);
    assert!(folder.prints(&["devnet", "ls"]).contains("\nlocal (current)  running"));
    assert_eq!(json(&folder.prints(&["-o", "json", "devnet", "use"]))["devnet"], "local");
    assert_eq!(folder.prints(&["-q", "devnet", "use"]), "local\n");
    shape::seen(&["devnet use"]);

    folder.prints(&["devnet", "use", "other"]);
    assert_eq!(asks(&[]).code, 4);
    assert_eq!(
        folder.prints(&["devnet", "use", "-"]),
        "commands that name no devnet take the only one running\n"
    );
    assert_eq!(prints(folder, "devnet = 'local'", &["-q", "chain", "head"]), height);
    assert_eq!(configured(folder, "devnet = 'other'", &["chain", "head"]).code, 4);
    folder.prints(&["devnet", "use", "local"]);
    folder.prints(&["devnet", "use", "--unset"]);
    assert_eq!(asks(&[]).code, 2);
    let flag = folder.fails(2, &["devnet", "use", "--unsett"]);
    assert!(flag.contains("'--unset'"), "{flag}");
    let refused = folder.fails(4, &["devnet", "use", "othr"]);
    assert!(refused.contains("did you mean `other`?"), "{refused}");
    insta::assert_snapshot!(folder.fails(2, &["devnet", "use", "No Name"]), @"error: invalid value 'No Name' for '[DEVNET]': `No Name` is not a name: expected 1 to 32 of a-z, 0-9 and -, the first not -, or -");
}

#[test]
fn a_chosen_devnet_that_is_stopped_or_gone_is_told() {
    let fake = Fake::new(answer);
    let folder = &fake.folder;
    drop(folder.devnet("other").lock().unwrap());
    folder.prints(&["devnet", "use", "other"]);
    insta::assert_snapshot!(folder.fails(4, &["chain", "head"]), @"
    error: devnet `other` is not running
      start it: cowboyctl devnet up --detach --name other
    ");
    // The chosen devnet is gone: the default is the only running one again, and a note says why.
    fs::remove_dir_all(folder.devnet("other").path()).unwrap();
    let gone = folder.run(&["-o", "json", "chain", "head"]);
    assert_eq!(gone.code, 0, "{gone:?}");
    insta::assert_snapshot!(gone.stderr, @"devnet `other`, which `devnet use` chose, is gone: cowboyctl devnet use --unset");
    assert_eq!(folder.run(&["-q", "chain", "head"]).stderr, "");
    // The file names a devnet that does not exist.
    folder.prints(&["devnet", "use", "--unset"]);
    let told = configured(folder, "devnet = 'nowhere'", &["chain", "head"]);
    insta::assert_snapshot!(told.stderr, @"
    error: there is no devnet `nowhere`
      the configuration file names it: cowboyctl config path
      start one: cowboyctl devnet up --detach --name nowhere
    ");
    assert_eq!(told.code, 4);
}

#[test]
fn options_come_from_the_line_the_environment_and_the_file_in_this_order() {
    let folder = Folder::new();
    fs::write(folder.path("devnet.yaml"), "name: a\n").unwrap();
    let file = "output = 'json'\n[alias]\nscenarios = 'sim ls'\n";
    let listed = json(&prints(&folder, file, &["scenarios"]));
    assert!(listed.as_array().unwrap().len() > 3, "{listed}");
    assert!(prints(&folder, file, &["-o", "table", "scenarios"]).starts_with("SCENARIO"));
    let config = folder.path("config.toml");
    let mut command = folder.command(&["scenarios"]);
    command.env("COWBOYCTL_CONFIG", config).env("COWBOYCTL_OUTPUT", "yaml");
    assert!(outcome(&mut command).stdout.starts_with("- name: "));
    // Errors are printed in the configured format.
    let refused = configured(&folder, file, &["sim", "show", "nothing"]);
    assert_eq!(json(&refused.stderr)["error"]["code"], "not_found", "{refused:?}");
    let refused = configured(&folder, file, &["sim", "shw"]);
    assert_eq!(json(&refused.stderr)["error"]["code"], "usage", "{refused:?}");
}

#[test]
fn options_of_one_command_are_set_for_it_alone() {
    let folder = Folder::new();
    // A run with a valid range would take a minute; a refused one also shows that it is set.
    let file = "[defaults.\"sim run\"]\nseeds = '5..4'\n";
    let set = configured(&folder, file, &["sim", "run", "calm"]);
    assert_eq!(set.code, 2, "{set:?}");
    insta::assert_snapshot!(folder.fails(2, &["sim", "run", "calm", "--seeds", "5..4"]), @"error: invalid value '5..4' for '--seeds <A..B>': `5..4` is not a seed range: expected a number, or A..B of at most 1000000");
    let file = "[defaults.\"doctor\"]\ndeep = 'perhaps'\n";
    let told = configured(&folder, file, &["sim", "ls"]);
    assert_eq!(told.code, 2);
    assert!(told.stderr.contains("config.toml:2:"), "{told:?}");
}

#[test]
fn the_file_is_where_its_variables_say() {
    let folder = Folder::new();
    let home = folder.path("user");
    fs::create_dir_all(home.join(".config/cowboyctl")).unwrap();
    fs::create_dir_all(folder.path("xdg/cowboyctl")).unwrap();
    fs::write(home.join(".config/cowboyctl/config.toml"), "quiet = true\n").unwrap();
    let ask = |arguments: &[&str], variables: &[(&str, &str)]| {
        let mut command = folder.command(arguments);
        command.env_remove("COWBOYCTL_CONFIG").env("HOME", &home);
        for (name, value) in variables {
            command.env(name, value);
        }
        let outcome = outcome(&mut command);
        (outcome.stdout, outcome.stderr)
    };
    // `quiet` counts, so the path alone is printed, unless a format is typed.
    let (path, _) = ask(&["config", "path"], &[]);
    assert_eq!(path.trim_end(), home.join(".config/cowboyctl/config.toml").to_str().unwrap());
    let show = |variables: &[(&str, &str)]| ask(&["-o", "json", "config", "path"], variables);
    assert_eq!(json(&show(&[]).0)["path"], path.trim_end());
    let xdg = folder.path("xdg").display().to_string();
    let (place, _) = show(&[("XDG_CONFIG_HOME", &xdg)]);
    shape::check(&["-o", "json", "config", "path"], &place);
    shape::seen(&["config path"]);
    let place = json(&place);
    assert_eq!(place["path"], format!("{xdg}/cowboyctl/config.toml"));
    assert_eq!(place["exists"], false);
    // An empty variable counts as unset, and a named file has to exist.
    assert_eq!(json(&show(&[("COWBOYCTL_CONFIG", "")]).0)["path"], path.trim_end());
    let (_, told) = show(&[("COWBOYCTL_CONFIG", "/no/such/file")]);
    assert_eq!(json(&told)["error"]["code"], "not_found", "{told}");
}

#[test]
fn what_the_file_says_is_shown() {
    let folder = Folder::new();
    let file = "# mine\nwide = true\n[defaults.\"devnet up\"]\nvalidators = 7\n[alias]\n\
                st = ['devnet', 'status']\n";
    insta::assert_snapshot!(prints(&folder, file, &["config", "show"]), @"
    KIND     COMMAND    NAME        VALUE          LINE
    default  every      wide        true              2
    default  devnet up  validators  7                 4
    alias    -          st          devnet status     6
    ");
    let lines = json(&prints(&folder, file, &["-o", "json", "config", "show"]));
    assert_eq!(lines[1]["values"], serde_json::json!(["7"]));
    shape::seen(&["config show"]);
}

#[test]
fn a_file_that_cannot_be_read_is_told_and_help_is_there() {
    let folder = Folder::new();
    let told = configured(&folder, "devnet = \n", &["sim", "ls"]);
    assert_eq!(told.code, 2, "{told:?}");
    assert!(told.stderr.contains("config.toml:1:"), "{told:?}");
    let help = configured(&folder, "devnet = \n", &["sim", "--help"]);
    assert_eq!((help.code, help.stderr.as_str()), (0, ""), "{help:?}");
    let long = format!("# {}\n", "x".repeat(64 << 10));
    let told = configured(&folder, &long, &["sim", "ls"]);
    assert_eq!(told.code, 2, "{told:?}");
    assert!(told.stderr.contains("longer than 65536 bytes"), "{told:?}");
    fs::write(folder.path("bytes.toml"), b"\xff").unwrap();
    let bytes = folder.path("bytes.toml");
    let told = outcome(folder.command(&["sim", "ls"]).env("COWBOYCTL_CONFIG", bytes));
    assert_eq!(told.code, 2, "{told:?}");
}

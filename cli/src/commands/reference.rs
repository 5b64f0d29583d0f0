//! The committed copies of what the command line generates: `docs/cli.md`, `docs/topology.md`,
//! `docs/events.md`, `docs/man`, `docs/schemas`, `completions`. The test compares them; with
//! `UPDATE_DOCS=1` it writes them.

use super::{
    completions::Shell,
    explain::{Explanation, Topic},
    man, schemas,
};
use clap::{Command, ValueEnum as _};
use std::{collections::BTreeMap, env, fs, path::PathBuf};

/// Every generated file: its path in the repository, and its text.
fn generated() -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    files.insert(PathBuf::from("docs/cli.md"), reference().into_bytes());
    files.insert(PathBuf::from("docs/topology.md"), topology().into_bytes());
    files.insert(PathBuf::from("docs/events.md"), events().into_bytes());
    for (file, text) in man::pages().expect("pages are written to memory") {
        files.insert(PathBuf::from("docs/man").join(file), text);
    }
    for (file, text) in schemas::files() {
        files.insert(PathBuf::from("docs/schemas").join(file), text);
    }
    for shell in Shell::value_variants() {
        let name = match shell {
            Shell::Bash => "cowboyctl.bash",
            Shell::Elvish => "cowboyctl.elv",
            Shell::Fish => "cowboyctl.fish",
            Shell::Powershell => "cowboyctl.ps1",
            Shell::Zsh => "_cowboyctl",
        };
        let script = shell.script().expect("scripts are written to memory");
        files.insert(PathBuf::from("completions").join(name), script);
    }
    files
}

fn reference() -> String {
    let mut root = super::command().term_width(96);
    root.build();
    let mut text = String::from(
        "# cowboyctl\n\nEvery command and its options, as `--help` shows them. Generated: \
         `UPDATE_DOCS=1 cargo test -p cowboyctl reference` writes this file, the manual pages in \
         `docs/man`, the schemas in `docs/schemas` and the scripts in `completions`.\n",
    );
    append(&mut root, &mut text);
    text
}

fn append(command: &mut Command, text: &mut String) {
    let name = command.get_bin_name().unwrap_or(command.get_name()).to_owned();
    // Global options are listed once, in the first section.
    let is_root = !name.contains(' ');
    let help = command.render_long_help().to_string();
    let help = match help.split_once("\nGlobal options:\n") {
        Some((own, _)) if !is_root => own.to_owned(),
        _ => help,
    };
    let lines: Vec<_> = help.lines().map(str::trim_end).collect();
    text.extend(["\n## ", &name, "\n\n```text\n", lines.join("\n").trim_end(), "\n```\n"]);
    for subcommand in command.get_subcommands_mut() {
        append(subcommand, text);
    }
}

fn topology() -> String {
    let mut text = String::from(
        "# The topology\n\nEvery field of a topology file. All may be left out; an item of a list is `[]`. \
         `cowboyctl devnet init` writes a file with the defaults, and `cowboyctl explain \
         topology.chain.block_time` prints one of these in a terminal. Generated from the file's parser \
         and the comments of `devnet/src/topology/template.yaml`: `UPDATE_DOCS=1 cargo test -p cowboyctl \
         reference` writes this page.\n",
    );
    let fields = Topic::Topology.all();
    for field in fields.iter().skip(1) {
        let path = field.name.trim_start_matches("topology.");
        if !path.contains(['.', '[']) {
            text += &format!("\n## {path}\n\n{}\n\n", cell(&field.about));
            text += "| field | takes | default | what it is |\n|---|---|---|---|\n";
        }
        let default = field.default.as_deref().map(|default| format!("`{default}`"));
        let takes = field.takes.as_deref().unwrap_or_default();
        let cells = [takes, &default.unwrap_or_default(), &field.about].map(cell);
        text += &format!("| `{path}` | {} |\n", cells.join(" | "));
    }
    text
}

fn events() -> String {
    let mut text = String::from(
        "# Events\n\nWhat happens in blocks: `kind` and `data` of what `cowboyctl chain events -o json` \
         prints. `cowboyctl explain event NAME` prints one of these in a terminal. Generated from the \
         engine's documentation: `UPDATE_DOCS=1 cargo test -p cowboyctl reference` writes this page.\n",
    );
    for Explanation { name, about, fields, .. } in Topic::Event.all() {
        text += &format!("\n## {name}\n\n{about}\n\n| field | is | what it is |\n|---|---|---|\n");
        for field in fields {
            let cells = [&field.takes, &field.about].map(|text| cell(text));
            text += &format!("| `{}` | {} |\n", field.name, cells.join(" | "));
        }
    }
    text
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[test]
fn committed_copies_are_fresh() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let update = env::var_os("UPDATE_DOCS").is_some_and(|value| value == "1");
    let mut stale = Vec::new();
    let files = generated();
    for (path, text) in &files {
        let target = root.join(path);
        if fs::read(&target).is_ok_and(|committed| committed == *text) {
            continue;
        }
        if update {
            fs::create_dir_all(target.parent().expect("every file is in a folder")).unwrap();
            fs::write(&target, text).unwrap();
        } else {
            stale.push(path.display().to_string());
        }
    }
    // A page of a removed command is stale, too.
    for folder in ["docs/man", "docs/schemas", "completions"] {
        for entry in fs::read_dir(root.join(folder)).into_iter().flatten() {
            let path = PathBuf::from(folder).join(entry.unwrap().file_name());
            if !files.contains_key(&path) {
                stale.push(path.display().to_string());
            }
        }
    }
    assert!(stale.is_empty(), "run UPDATE_DOCS=1 cargo test -p cowboyctl reference: {stale:?}");
}

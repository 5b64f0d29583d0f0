//! The book, followed as a reader would: each page's commands in order, in a shell with a separate
//! home and devnet. Each command has to print what the page shows.
//!
//! A `console` block has commands after `$ ` and their output below them. A line `...` matches any
//! lines, `[..]` matches anything within a line. Ids, heights and times are examples, and numbers
//! are compared only if `<!-- exact -->` is above the block. A block with `<!-- file: NAME -->`
//! above it is saved under that name. Commands that no test can run are in a `sh` block with
//! `<!-- not run: REASON -->` above it or at the top of its section.
//! `UPDATE_DOCS=1` writes output that differs into the pages.

mod compare;
mod page;
mod shell;
mod terminal;

use crate::{pvm, support::Home};
use compare::{compare, mask};
use page::Page;
use shell::Shell;
use std::{
    env, fs,
    path::{Path, PathBuf},
};

/// Makes a test for each page that is followed.
macro_rules! pages {
    ($($name:ident: $path:literal,)*) => {
        const FOLLOWED: &[&str] = &[$($path,)* PYTHON];
        $(
            #[test]
            fn $name() {
                follow($path);
            }
        )*
    };
}

pages! {
    readme: "README.md",
    quick_start: "docs/quick-start.md",
    first_quarter_hour: "docs/tutorials/first-quarter-hour.md",
    first_timer: "docs/tutorials/first-timer.md",
    not_selected: "docs/tutorials/not-selected.md",
    break_it: "docs/tutorials/break-it.md",
    speculation: "docs/tutorials/speculation.md",
    ci_by_lease: "docs/tutorials/ci-by-lease.md",
    ci: "docs/ci.md",
    actors: "docs/actors.md",
    faults: "docs/faults.md",
    jobs: "docs/jobs.md",
    migration: "docs/migration.md",
    nodes: "docs/nodes.md",
    operations: "docs/operations.md",
    powers: "docs/powers.md",
    presence: "docs/presence.md",
    proofs: "docs/proofs.md",
    tasks: "docs/tasks.md",
    timers: "docs/timers.md",
    troubleshooting: "docs/troubleshooting.md",
    verification: "docs/verification.md",
}

/// The page that needs the machine of actors in Python, and a Python with pytest and the SDK.
const PYTHON: &str = "docs/tutorials/python-agent.md";

#[test]
fn python_agent() {
    if let (Some(home), Some(_)) = (Home::with_machine(), pvm::python()) {
        follow_in(&home, PYTHON);
    }
}

/// The repository's top.
fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

fn is_update() -> bool {
    env::var_os("UPDATE_DOCS").is_some_and(|value| value == "1")
}

fn follow(path: &str) {
    follow_in(&Home::new(), path);
}

/// Runs a page's commands and compares what they print.
fn follow_in(home: &Home, path: &str) {
    let top = top();
    let page = Page::read(&top, path);
    let steps = page.steps();
    assert!(!steps.is_empty(), "{path} has no `console` block: take it off the list");
    let mut shell = Shell::open(&top, home);
    let mut others = Vec::new();
    let mut report = String::new();
    for step in &steps {
        for (name, text) in &step.files {
            shell.save(name, text);
        }
        let (printed, code) = shell.run(&step.command);
        assert_eq!(
            code, 0,
            "{path}:{}: `{}` failed: {printed}\nbefore it: {report}",
            step.line, step.command
        );
        if let Err(difference) = compare(&printed, &step.output, step.exact) {
            report += &format!("{path}:{}: `{}`\n{difference}\n", step.line, step.command);
            others.push((step, printed));
        }
    }
    if is_update() && !others.is_empty() {
        fs::write(top.join(path), page.with(&others)).unwrap();
    } else {
        assert!(report.is_empty(), "run with UPDATE_DOCS=1, or repair what they do:\n{report}");
    }
}

/// Every Markdown page for readers, except generated ones.
fn written() -> Vec<String> {
    let top = top();
    let mut pages = vec!["README.md".to_owned()];
    let mut folders = vec![top.join("docs"), top.join("examples")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path.strip_prefix(&top).unwrap().display().to_string());
            }
        }
    }
    pages.retain(|page| page != "docs/cli.md");
    pages.sort();
    pages
}

#[test]
fn no_command_goes_unseen() {
    let top = top();
    let mut report = String::new();
    for path in written() {
        let page = Page::read(&top, &path);
        for block in page.blocks() {
            let prompts = page.text(block).iter().any(|line| line.starts_with("$ "));
            let wrong = match block.language.as_str() {
                "console" if !FOLLOWED.contains(&path.as_str()) => {
                    "no test follows this page: put it on the list in tests/devnet/book.rs"
                }
                "sh" | "bash" | "shell" if !block.excused => {
                    "make it a `console` block, or say `<!-- not run: REASON -->` above it"
                }
                "console" | "sh" => continue,
                "bash" | "shell" => "call it `sh`",
                _ if prompts && !block.excused => {
                    "commands with prompts belong in a `console` block"
                }
                _ => continue,
            };
            report += &format!("{path}:{}: {wrong}\n", block.line);
        }
    }
    assert!(report.is_empty(), "commands that no test runs:\n{report}");
}

#[test]
fn the_book_has_every_page() {
    let top = top();
    let summary = fs::read_to_string(top.join("docs/SUMMARY.md")).unwrap();
    let listed: Vec<String> = summary
        .split("](")
        .skip(1)
        .filter_map(|rest| Some(format!("docs/{}", rest.split(')').next()?)))
        .collect();
    for page in &listed {
        assert!(top.join(page).is_file(), "docs/SUMMARY.md lists {page}, which is not there");
        assert_eq!(listed.iter().filter(|other| *other == page).count(), 1, "{page} twice");
    }
    let missing: Vec<_> = written()
        .into_iter()
        .filter(|page| page.starts_with("docs/") && page != "docs/SUMMARY.md")
        .filter(|page| !listed.contains(page))
        .collect();
    assert!(missing.is_empty(), "docs/SUMMARY.md does not list {missing:?}");
}

#[test]
fn the_picture_is_of_this_program() {
    const PICTURE: &str = "docs/pictures/quickstart.svg";
    let home = Home::new();
    let drawn = terminal::picture(&home, &[&["quickstart", "--down"]]);
    let path = top().join(PICTURE);
    let form = |svg: &str| svg.lines().map(|line| mask(line) + "\n").collect::<String>();
    let kept = fs::read_to_string(&path).unwrap_or_default();
    if form(&kept) == form(&drawn) {
        return;
    }
    assert!(is_update(), "{PICTURE} is of another program: run with UPDATE_DOCS=1");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, drawn).unwrap();
}

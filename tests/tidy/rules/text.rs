//! Text: width, length, targets of links, and names that it must not contain.

use super::{Rule, Sample};
use crate::{
    Finding,
    source::{File, Kind, Rust, Token, Tree, join},
};

/// Maximum columns of a line of Rust without its string literals, as in rustfmt.toml.
const COLUMNS: usize = 100;

/// Maximum lines of a Rust file.
const LINES: usize = 800;

/// Lines are at most [`COLUMNS`] wide.
pub const WIDTH: Rule = Rule {
    name: "width",
    check: width,
    samples: &[
        Sample {
            files: &[(
                "engine/src/lib.rs",
                concat!(
                    "// 34567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890\n",
                    "/// 4567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890\n",
                    "const ABC: [u8; 34] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5];\n"
                ),
            )],
            found: &["engine/src/lib.rs:1", "engine/src/lib.rs:2", "engine/src/lib.rs:3"],
        },
        Sample {
            files: &[(
                "engine/src/lib.rs",
                concat!(
                    "// 3456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789 ü\n",
                    "const A: &str = \"7890123456789012345678901234567890123456789012345678901234567890123456789012345678901\";\n"
                ),
            )],
            found: &["engine/src/lib.rs:1"],
        },
        Sample {
            files: &[(
                "engine/src/lib.rs",
                concat!(
                    "// 345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678ü\n",
                    "const A: &str = \"78901234567890123456789012345678901234567890123456789012345678901234567890123456\n",
                    "789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678\";\n"
                ),
            )],
            found: &[],
        },
    ],
};

/// Files are at most [`LINES`] long.
pub const LENGTH: Rule = Rule {
    name: "length",
    check: length,
    samples: &[
        Sample { files: &[("engine/src/lib.rs", LONG)], found: &["engine/src/lib.rs:801"] },
        Sample { files: &[("engine/src/lib.rs", ""), ("docs/long.md", LONG)], found: &[] },
    ],
};

/// Relative links in Markdown have existing targets, and paths in backticks are those of files.
/// A path is what begins with a package's folder or `docs/`.
pub const LINKS: Rule = Rule {
    name: "links",
    check: links,
    samples: &[
        Sample {
            files: &[
                ("README.md", "[a](docs/a.md#part) and\n[b](docs/b.md), [c](docs)\n"),
                (
                    "docs/a.md",
                    "[up](../README.md) [down](a/b.md) [there](https://example.com) [here](#part)\n",
                ),
            ],
            found: &["README.md:2", "docs/a.md:1"],
        },
        Sample {
            files: &[
                (
                    "README.md",
                    "`engine/src/a.rs`, `engine/src`,\n`engine/src/b.rs` or `docs/b.md`\n",
                ),
                ("engine/src/a.rs", ""),
            ],
            found: &["README.md:2", "README.md:2"],
        },
        Sample {
            files: &[(
                "README.md",
                "[me](README.md) `[x](y)` `cli/*` `engine/a b`\n```\n[x](y) `cli/x`\n```\n",
            )],
            found: &[],
        },
    ],
};

/// Nothing names a path of one machine or a package registry's host.
pub const PLACES: Rule = Rule {
    name: "places",
    check: places,
    samples: &[
        Sample {
            files: &[
                (".ci/run", concat!("cd /ro", "ot/project\n")),
                ("README.md", concat!("see\nhttps://crates", ".io/x and (/ho", "me/me/x)\n")),
                ("cli/src/main.rs", concat!("const A: &str = \"/wo", "rk/a\";\n")),
            ],
            found: &[".ci/run:1", "README.md:2", "cli/src/main.rs:1"],
        },
        Sample {
            files: &[
                (
                    "README.md",
                    concat!("~/.local/state, $HOME/wo", "rk/x, network/a, runners/x/wo", "rk/\n"),
                ),
                (
                    "Cargo.lock",
                    concat!(
                        "source = \"registry+https://github.com/rust-lang/crates",
                        ".io-index\"\n"
                    ),
                ),
            ],
            found: &[],
        },
    ],
};

/// Longer than [`LINES`]: eight hundred and two lines of one byte each.
const LONG: &str = match std::str::from_utf8(&[b'\n'; 802]) {
    Ok(text) => text,
    Err(_) => panic!("line feeds are UTF-8"),
};

fn width(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, rust) in tree.rust() {
        for (number, line) in (1..).zip(file.text.lines()) {
            let columns = line.chars().count();
            if columns > COLUMNS && columns - quoted(file, rust, number, columns) > COLUMNS {
                let text = format!("{columns} columns: break the line within {COLUMNS}");
                findings.push(Finding::new(&file.path, number, text));
            }
        }
    }
    findings
}

/// The number of a line's `columns` that belong to string literals.
fn quoted(file: &File, rust: &Rust, line: usize, columns: usize) -> usize {
    rust.tokens
        .iter()
        .filter(|token| token.kind == Kind::Literal && token.text.ends_with(['"', '#']))
        .filter(|token| (token.start.line..=token.end.line).contains(&line))
        .filter(|token| !is_comment(file, token))
        .map(|token| {
            let from = if token.start.line == line { token.start.column } else { 0 };
            let to = if token.end.line == line { token.end.column } else { columns };
            to - from
        })
        .sum()
}

/// Whether a literal is the text of a doc comment, which has the comment's position.
fn is_comment(file: &File, token: &Token) -> bool {
    let line = file.text.lines().nth(token.start.line - 1);
    line.and_then(|line| line.chars().nth(token.start.column)) == Some('/')
}

fn length(tree: &Tree) -> Vec<Finding> {
    tree.rust()
        .map(|(file, _)| (file, file.text.lines().count()))
        .filter(|(_, lines)| *lines > LINES)
        .map(|(file, lines)| {
            let text = format!("{lines} lines, at most {LINES}: split the file by its ideas");
            Finding::new(&file.path, LINES + 1, text)
        })
        .collect()
}

fn links(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files().filter(|file| file.path.ends_with(".md")) {
        let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let mut fenced = false;
        for (number, line) in (1..).zip(file.text.lines()) {
            fenced ^= line.trim_start().starts_with("```");
            if fenced {
                continue;
            }
            // Code between backticks is every second part.
            let linked = line.split('`').step_by(2).flat_map(targets).filter_map(|target| {
                let path = target.split('#').next().unwrap_or_default();
                (!path.is_empty() && !path.contains(':')).then(|| join(folder, path))
            });
            let named = line.split('`').skip(1).step_by(2).filter(|code| is_path(code));
            for path in linked.chain(named.map(|path| join("", path))) {
                if !tree.holds(&path) {
                    let text = format!("{path} is not there");
                    findings.push(Finding::new(&file.path, number, text));
                }
            }
        }
    }
    findings
}

/// Whether code in Markdown is the path of one of this project's files or folders.
fn is_path(code: &str) -> bool {
    let top = code.split_once('/').map_or("", |(top, _)| top);
    ["engine", "devnet", "cli", "tests", "examples", "docs", ".ci"].contains(&top)
        && code.chars().all(|char| char.is_ascii_alphanumeric() || "/._-".contains(char))
}

/// The targets of the links in Markdown.
fn targets(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).filter_map(|rest| rest.split(')').next())
}

fn places(tree: &Tree) -> Vec<Finding> {
    // Split into parts, because this file would break the rule otherwise.
    let folders = [
        concat!("/wo", "rk/"),
        concat!("/ro", "ot/"),
        concat!("/ho", "me/"),
        concat!("/Us", "ers/"),
    ];
    let hosts = [
        concat!("crates", ".io"),
        concat!("docs", ".rs"),
        concat!("npmjs", ".org"),
        concat!("npmjs", ".com"),
        concat!("pypi", ".org"),
        concat!("rubygems", ".org"),
        concat!("proxy.golang", ".org"),
    ];
    let mut findings = Vec::new();
    // Cargo writes the registry into its lock file.
    for File { path, text, .. } in tree.files().filter(|file| !file.path.ends_with("Cargo.lock")) {
        for (number, line) in (1..).zip(text.lines()) {
            if let Some(host) = hosts.iter().find(|host| line.contains(**host)) {
                let text = format!("{host} is a registry's host: name the package instead");
                findings.push(Finding::new(path, number, text));
            }
            if let Some(folder) = folders.iter().find(|folder| is_absolute(line, folder)) {
                let text = format!("{folder} is a place on one machine: name it from the top");
                findings.push(Finding::new(path, number, text));
            }
        }
    }
    findings
}

/// Whether a path in the line begins with `folder`.
fn is_absolute(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|c| {
            !c.is_alphanumeric() && !matches!(c, '_' | '-' | '.' | '~' | ']' | '}' | ')' | '>')
        })
    })
}

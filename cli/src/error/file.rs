//! Errors about files that the user names: files that cannot be read, and files with invalid
//! contents. The latter show the line.

use super::{CliError, Excerpt, Exit, nearest};
use std::{io, path::Path};

impl CliError {
    /// A file or folder that cannot be read or written: not found if it does not exist, else this
    /// exit code.
    pub fn file(exit: Exit, path: &Path, error: &io::Error) -> Self {
        let exit = match error.kind() {
            io::ErrorKind::NotFound => Exit::NotFound,
            _ => exit,
        };
        let refused = Self::new(exit, format!("{}: {error}", path.display()));
        match error.kind() {
            io::ErrorKind::NotFound => {
                let from = match std::env::current_dir() {
                    Ok(folder) if path.is_relative() => {
                        format!("; paths begin at {}", folder.display())
                    }
                    _ => String::new(),
                };
                refused.hint(format!("check its name{from}"))
            }
            io::ErrorKind::PermissionDenied => refused.hint(match path.parent() {
                Some(folder) if path.is_absolute() || folder.components().next().is_some() => {
                    format!("check the permissions: ls -ld {} {}", folder.display(), path.display())
                }
                _ => format!("check the permissions: ls -ld . {}", path.display()),
            }),
            io::ErrorKind::IsADirectory => refused.hint("name a file in it"),
            io::ErrorKind::StorageFull => refused.hint("make room, or name a file elsewhere"),
            _ => refused,
        }
    }

    /// A YAML text with invalid contents. `problem` may contain the place as YAML errors do, or the
    /// faulty thing in backticks.
    pub fn yaml(exit: Exit, file: &str, text: &str, problem: &str) -> Self {
        let (problem, place) = without_place(problem);
        let word = problem.split('`').nth(1).unwrap_or_default();
        let excerpt = match place {
            Some((line, column)) => Excerpt::of_line(text, line, column).map(|e| e.under(word)),
            None => entry(text, word).and_then(|line| Excerpt::of_line(text, line, 1)),
        };
        let excerpt = excerpt.map(|excerpt| excerpt.under(word));
        let at = excerpt.as_ref().and_then(Excerpt::place);
        let at = at.map_or(String::new(), |(line, column)| format!(":{line}:{column}"));
        let error = Self::new(exit, format!("{file}{at}: {problem}")).excerpt(excerpt);
        match meant(&problem) {
            Some(meant) => error.detail(format!("did you mean `{meant}`?")),
            None => error,
        }
    }
}

/// The expected name that an unknown one is probably a typo of.
pub fn meant(problem: &str) -> Option<&str> {
    let (before, expected) = problem.split_once(", expected ")?;
    let (_, typed) = before.split_once("unknown ")?;
    let typed = typed.split('`').nth(1)?;
    nearest(typed, expected.split('`').skip(1).step_by(2))
}

/// A YAML error without its place, and the place.
fn without_place(problem: &str) -> (String, Option<(usize, usize)>) {
    let found = problem.rsplit_once(" at line ").and_then(|(before, rest)| {
        let (line, rest) = rest.split_once(" column ")?;
        let digits = rest.find(|char: char| !char.is_ascii_digit()).unwrap_or(rest.len());
        let (column, after) = rest.split_at(digits);
        Some((format!("{before}{after}"), (line.parse().ok()?, column.parse().ok()?)))
    });
    match found {
        Some((problem, place)) => (problem, Some(place)),
        None => (problem.to_owned(), None),
    }
}

/// The line on which an entry with this name begins: as a key, or with its `id` or `name`.
fn entry(text: &str, name: &str) -> Option<usize> {
    let is_name = |value: &str| {
        let value = value.trim().trim_matches(['"', '\'']);
        !name.is_empty() && value == name
    };
    let line = text.lines().position(|line| {
        let fields = line.trim().trim_start_matches("- ").trim_matches(['{', '}', ' ']);
        fields.split(',').any(|field| match field.split_once(':') {
            Some((key, value)) => {
                is_name(key) || (matches!(key.trim(), "id" | "name") && is_name(value))
            }
            None => false,
        })
    })?;
    Some(line + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_yaml_error_draws_its_line() {
        let text = "name: p\ntasks:\n- {id: a, command: [x], colour: red}\n";
        let check = |problem: &str, expected: &str| {
            let error = CliError::yaml(Exit::Usage, "p.yaml", text, problem);
            assert_eq!(error.to_string(), expected);
        };
        check(
            "tasks[0]: unknown field `colour`, expected one of `id`, `colours` at line 3 column 25",
            "p.yaml:3:25: tasks[0]: unknown field `colour`, expected one of `id`, `colours`\n  \
             3 | - {id: a, command: [x], colour: red}\n    |                         ^^^^^^\n  \
             did you mean `colours`?",
        );
        check(
            "task `a`: it is wrong",
            "p.yaml:3:8: task `a`: it is wrong\n  3 | - {id: a, command: [x], colour: red}\n    \
             |        ^",
        );
        check("missing field `jobs`", "p.yaml: missing field `jobs`");
        check("too long", "p.yaml: too long");
    }

    #[test]
    fn a_file_that_is_not_there_says_where_it_was_looked_for() {
        let error = io::Error::from_raw_os_error(2);
        let error_of = |path: &str| CliError::file(Exit::Failed, Path::new(path), &error);
        assert_eq!(error_of("a.yaml").exit, Exit::NotFound);
        let text = error_of("a.yaml").to_string();
        let (what, hint) = text.split_once('\n').unwrap();
        assert_eq!(what, "a.yaml: no such file or folder");
        assert!(hint.starts_with("  check its name; paths begin at /"), "{hint}");
        assert_eq!(error_of("/a").to_string(), "/a: no such file or folder\n  check its name");
        let denied = io::Error::from(io::ErrorKind::PermissionDenied);
        assert_eq!(CliError::file(Exit::Failed, Path::new("a"), &denied).exit, Exit::Failed);
    }
}

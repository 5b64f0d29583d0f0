//! Errors about files that the user names: files that cannot be read, and files with invalid
//! contents. The latter show the line.

use super::{CliError, Excerpt, Exit, nearest};
use cowboy_devnet::topology::TopologyError;
use cowboy_host::located::{FilePlace, Located};
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
        let mut located = Located::named(problem, text);
        let word = quoted(&located.message);
        located.place = located.place.or_else(|| entry(text, word));
        let excerpt = excerpt(&located);
        let at = excerpt.as_ref().and_then(Excerpt::place);
        let at = at.map_or(String::new(), |(line, column)| format!(":{line}:{column}"));
        Self::new(exit, format!("{file}{at}: {}", located.message))
            .excerpt(excerpt)
            .corrected(&located.message)
    }

    /// Adds the expected name that an unknown one is probably a typo of.
    fn corrected(self, problem: &str) -> Self {
        self.meant(problem.split_once(", expected ").and_then(|(before, expected)| {
            let (_, typed) = before.split_once("unknown ")?;
            nearest(quoted(typed), expected.split('`').skip(1).step_by(2))
        }))
    }
}

impl From<TopologyError> for CliError {
    fn from(error: TopologyError) -> Self {
        Self::new(Exit::Usage, error.to_string())
            .excerpt(excerpt(&error.located))
            .corrected(&error.located.message)
            .hint("every field with its default: cowboyctl devnet init -")
    }
}

/// The line with the error; the carets are under what the message quotes, if the line has it.
fn excerpt(located: &Located) -> Option<Excerpt> {
    let place = located.place.as_ref()?;
    Some(Excerpt::of_place(place).under(quoted(&located.message)))
}

fn quoted(problem: &str) -> &str {
    problem.split('`').nth(1).unwrap_or_default()
}

/// The line on which an entry with this name begins: as a key, or with its `id` or `name`.
fn entry(text: &str, name: &str) -> Option<FilePlace> {
    let is_name = |value: &str| {
        let value = value.trim().trim_matches(['"', '\'']);
        !name.is_empty() && value == name
    };
    let entry = |line: &str| {
        let fields = line.trim().trim_start_matches("- ").trim_matches(['{', '}', ' ']);
        fields.split(',').any(|field| match field.split_once(':') {
            Some((key, value)) => {
                is_name(key) || (matches!(key.trim(), "id" | "name") && is_name(value))
            }
            None => false,
        })
    };
    let (line, text) = (1..).zip(text.lines()).find(|(_, line)| entry(line))?;
    Some(FilePlace { line, column: 1, text: text.to_owned() })
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

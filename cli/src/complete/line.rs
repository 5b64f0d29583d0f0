//! The command line as typed so far, for candidates that depend on its other words.

use std::env;

/// The words of a command line that is being completed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Line(Vec<String>);

impl Line {
    /// The line that the shell asks about: the arguments of this process after `--`.
    pub fn typed() -> Self {
        Self::of(env::args_os().map(|word| word.to_string_lossy().into_owned()))
    }

    fn of(args: impl IntoIterator<Item = String>) -> Self {
        let words = args.into_iter().skip_while(|word| word != "--").skip(1);
        // The words after another `--` belong to another program.
        Self(words.take_while(|word| word != "--").collect())
    }

    /// The value of a flag, else of its variable; a flag after the cursor counts, too.
    pub fn value(&self, flag: &str) -> Option<String> {
        let variable = format!("COWBOYCTL_{}", flag.replace('-', "_").to_uppercase());
        let set = || env::var(variable).ok();
        self.given(flag).or_else(set).filter(|value| !value.is_empty())
    }

    pub fn has(&self, word: &str) -> bool {
        self.0.iter().any(|other| other == word)
    }

    fn given(&self, flag: &str) -> Option<String> {
        let long = format!("--{flag}");
        let mut words = self.0.iter().map(String::as_str);
        let value = words.find_map(|word| match word.strip_prefix(&long)? {
            "" => Some(None),
            rest => rest.strip_prefix('=').map(Some),
        })?;
        let value = match value {
            Some(value) => value,
            // bash splits --flag=value.
            None => {
                words.next().and_then(|word| if word == "=" { words.next() } else { Some(word) })?
            }
        };
        Some(value.trim_matches(['"', '\'']).to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_has_its_value_wherever_it_stands() {
        let check = |line: &str, expected: Option<&str>| {
            let line = Line::of(line.split(' ').map(str::to_owned));
            assert_eq!(line.given("devnet").as_deref(), expected, "{line:?}");
        };
        check("cowboyctl -- cowboyctl --devnet a job show ", Some("a"));
        check("cowboyctl -- cowboyctl job show  --devnet=a", Some("a"));
        check("cowboyctl -- cowboyctl --devnet = a job show ", Some("a"));
        check("cowboyctl -- cowboyctl --devnet 'a' job show ", Some("a"));
        check("cowboyctl -- cowboyctl --devnets a", None);
        check("cowboyctl -- cowboyctl job show ", None);
        check("cowboyctl -- cowboyctl job submit custom -- x --devnet a", None);
        check("cowboyctl --devnet a", None);
        check("cowboyctl -- cowboyctl --devnet", None);
    }
}

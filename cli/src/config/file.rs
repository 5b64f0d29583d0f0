//! Parses the TOML file.

use super::{Alias, Config, GLOBAL, Setting};
use crate::error::{CliError, nearest};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

type ConfigEntry<'t> = (&'t str, usize, &'t Spanned<DeValue<'t>>);

impl Config {
    /// Parses a text; `file` is its name in errors.
    pub(super) fn parse(file: &str, text: String) -> Result<Self, CliError> {
        let mut config = Self { file: file.to_owned(), text, ..Self::default() };
        let text = config.text.clone();
        let table = DeTable::parse(&text).map_err(|error| {
            let at = error.span().map_or(text.len(), |span| span.start);
            let message = error.message().lines().collect::<Vec<_>>().join(", ");
            config.wrong(at, &message).hint("the format is TOML: https://toml.io")
        })?;
        for (key, at, value) in entries(table.get_ref()) {
            match key {
                "defaults" => config.read_defaults(at, value)?,
                "alias" => config.read_aliases(at, value)?,
                _ if GLOBAL.contains(&key) => {
                    let setting = config.setting("", key, at, value)?;
                    config.settings.push(setting);
                }
                _ => {
                    let known = GLOBAL.iter().copied().chain(["defaults", "alias"]);
                    let error = config.wrong(at, &format!("unknown key `{key}`"));
                    let error = error
                        .detail(
                            "options of one command go into a table of it, as \
                             [defaults.\"devnet up\"]",
                        )
                        .meant(nearest(key, known));
                    let known = GLOBAL.join(", ");
                    return Err(error.hint(format!("expected {known}, [defaults.…] or [alias]")));
                }
            }
        }
        Ok(config)
    }

    fn read_defaults(&mut self, at: usize, value: &Spanned<DeValue<'_>>) -> Result<(), CliError> {
        let form = "write [defaults.\"devnet up\"], and below it validators = 7";
        let Some(commands) = value.get_ref().as_table() else {
            return Err(self.wrong(at, "`defaults` has a table for each command").hint(form));
        };
        for (command, at, options) in entries(commands) {
            let Some(options) = options.get_ref().as_table() else {
                let what = format!("`defaults.{command}` is not a table of options");
                return Err(self.wrong(at, &what).hint(form));
            };
            for (option, at, value) in entries(options) {
                if value.get_ref().is_table() {
                    let what = format!("`{command}.{option}` is not an option with a value");
                    return Err(self.wrong(at, &what).hint(form));
                }
                let command = command.split_whitespace().collect::<Vec<_>>().join(" ");
                let setting = self.setting(&command, option, at, value)?;
                self.settings.push(setting);
            }
        }
        Ok(())
    }

    fn setting(
        &self,
        command: &str,
        option: &str,
        at: usize,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<Setting, CliError> {
        let value_at = value.span().start;
        let values = match value.get_ref() {
            DeValue::Array(values) => values.iter().map(|value| scalar(value.get_ref())).collect(),
            one => scalar(one).map(|value| vec![value]),
        };
        let values: Option<Vec<_>> = values;
        let Some(values) = values.filter(|values| !values.is_empty()) else {
            let what =
                format!("`{option}` is not a text, a number, true or false, or a list of them");
            return Err(self.wrong(value_at, &what).hint("write it as on a command line"));
        };
        if values.iter().any(String::is_empty) {
            let error = self.wrong(value_at, &format!("`{option}` is empty"));
            return Err(error.hint("leave the line out to set nothing"));
        }
        Ok(Setting {
            command: command.to_owned(),
            option: option.to_owned(),
            values,
            is_flag: value.get_ref().is_bool(),
            at,
            value_at,
        })
    }

    fn read_aliases(&mut self, at: usize, value: &Spanned<DeValue<'_>>) -> Result<(), CliError> {
        let form = "write [alias], and below it st = \"devnet status\"";
        let Some(aliases) = value.get_ref().as_table() else {
            return Err(self.wrong(at, "`alias` is not a table").hint(form));
        };
        for (name, at, value) in entries(aliases) {
            let words: Option<Vec<String>> = match value.get_ref() {
                DeValue::String(text) => Some(text.split_whitespace().map(str::to_owned).collect()),
                DeValue::Array(words) => {
                    words.iter().map(|word| word.get_ref().as_str().map(str::to_owned)).collect()
                }
                _ => None,
            };
            let Some(words) = words.filter(|words| !words.is_empty()) else {
                let what = format!("alias `{name}` is not the words of a command line");
                return Err(self.wrong(value.span().start, &what).hint(form));
            };
            self.aliases.push(Alias { name: name.to_owned(), words, at });
        }
        Ok(())
    }
}

/// The entries of a table, in the order of the file.
fn entries<'t>(table: &'t DeTable<'t>) -> Vec<ConfigEntry<'t>> {
    let entry = |(key, value)| -> ConfigEntry<'t> {
        let (key, value): (&Spanned<std::borrow::Cow<'t, str>>, _) = (key, value);
        (key.get_ref().as_ref(), key.span().start, value)
    };
    let mut entries: Vec<_> = table.iter().map(entry).collect();
    entries.sort_by_key(|(_, at, _)| *at);
    entries
}

/// A value as text, as on a command line.
fn scalar(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.clone().into_owned()),
        DeValue::Boolean(flag) => Some(flag.to_string()),
        DeValue::Integer(number) => {
            let digits = number.as_str().replace('_', "");
            Some(i128::from_str_radix(&digits, number.radix()).ok()?.to_string())
        }
        DeValue::Float(number) => Some(number.as_str().replace('_', "")),
        DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => None,
    }
}

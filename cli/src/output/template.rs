//! `--template`: minijinja over a document's fields. `this` is the document as a whole, for lists.
//! An unknown name is an error, and nothing is escaped.

use super::filter::{Filter, Program};
use crate::error::{CliError, Excerpt, Exit, nearest};
use minijinja::{
    AutoEscape, Environment, Error, ErrorKind, UndefinedBehavior, Value, value::ValueKind,
};

const HINT: &str = "the language is that of Jinja; examples: docs/output.md";

/// The name of the whole document.
const THIS: &str = "this";

/// The template's name in the library's own messages, which print it in brackets.
const NAME: &str = "template";

impl Filter {
    pub fn template(source: &str) -> Result<Self, CliError> {
        Self::of(source, program)
    }
}

/// Compiles a template; an error shows the faulty place.
fn program(source: &str) -> Result<Program, CliError> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_debug(true);
    environment
        .add_template_owned(NAME, source.to_owned())
        .map_err(|error| described(source, &error, Exit::Usage).hint(HINT))?;
    let source = source.to_owned();
    Ok(Box::new(move |document, print| {
        // Parsed directly into the library's values, which keep the order of fields.
        let this: Value = serde_json::from_str(document)
            .map_err(|error| CliError::failed(format!("--template: the document: {error}")))?;
        let names = names(this);
        let text = environment
            .get_template(NAME)
            .and_then(|template| template.render(Value::from_pairs(names.clone())))
            .map_err(|error| {
                let exit = match error.kind() {
                    ErrorKind::UnknownFilter
                    | ErrorKind::UnknownFunction
                    | ErrorKind::UnknownTest => Exit::Usage,
                    _ => Exit::Failed,
                };
                let described = described(&source, &error, exit);
                if error.kind() != ErrorKind::UndefinedError {
                    return described;
                }
                let all = names.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>();
                match word_at(&source, &error).and_then(|name| nearest(name, all.iter().copied())) {
                    Some(meant) => described.hint(format!("did you mean `{meant}`?")),
                    None => described.hint(format!("the document has: {}", all.join(", "))),
                }
            })?;
        if !text.is_empty() {
            let end = if text.ends_with('\n') { "" } else { "\n" };
            print((text + end).into_bytes());
        }
        Ok(())
    }))
}

/// The names that a template can use: the document's fields, and the document.
fn names(this: Value) -> Vec<(String, Value)> {
    let is_map = this.kind() == ValueKind::Map;
    let keys = this.try_iter().into_iter().flatten().filter(|_| is_map);
    let mut names: Vec<_> = keys
        .map(|key| {
            let value = this.get_item(&key).unwrap_or_default();
            (key.to_string(), value)
        })
        .collect();
    names.push((THIS.to_owned(), this));
    names
}

fn word_at<'a>(source: &'a str, error: &Error) -> Option<&'a str> {
    source.get(error.range()?).map(|part| part.rsplit('.').next().unwrap_or(part))
}

fn described(source: &str, error: &Error, exit: Exit) -> CliError {
    let kind = error.kind().to_string();
    let what = match error.detail() {
        Some(detail) => format!("--template: {kind}: {detail}"),
        None => format!("--template: {kind}"),
    };
    let described = CliError::new(exit, what);
    match error.range() {
        Some(range) => described.excerpt(Excerpt::of_argument(source, range)),
        None => described,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(source: &str, document: &str) -> Result<String, CliError> {
        let mut printed = Vec::new();
        program(source)?(document, &mut |bytes| {
            printed.extend(bytes);
            true
        })?;
        Ok(String::from_utf8(printed).unwrap())
    }

    #[test]
    fn fields_are_names_and_the_document_is_this() {
        let check = |source: &str, document: &str, expected: &str| {
            assert_eq!(render(source, document).unwrap(), expected);
        };
        check(
            "{{ name }} at {{ head.height }}",
            r#"{"name":"a<b","head":{"height":7}}"#,
            "a<b at 7\n",
        );
        check(
            "{% for r in this %}{{ r.name }}\n{% endfor %}",
            r#"[{"name":"a"},{"name":"b"}]"#,
            "a\nb\n",
        );
        check("{{ this | tojson }}", r#"{"b":1,"a":[2]}"#, "{\"b\": 1, \"a\": [2]}\n");
        check("{% if a %}{% endif %}", r#"{"a":1}"#, "");
    }

    #[test]
    fn what_is_wrong_is_shown() {
        let check = |source: &str, exit, expected: &str| {
            let error = render(source, r#"{"height":1,"hash":"0x"}"#).unwrap_err();
            assert_eq!((error.exit, error.to_string().as_str()), (exit, expected));
        };
        check(
            "{{ heigt }}",
            Exit::Failed,
            "--template: undefined value: `heigt` is undefined\n  {{ heigt }}\n     ^^^^^\n  did you mean `height`?",
        );
        let error = |source: &str| render(source, r#"{"height":1}"#).unwrap_err();
        let has = "the document has: height, this";
        assert_eq!(error("{{ xyz }}").hint.as_deref(), Some(has));
        for source in ["{{ height", "{% fo r %}", "a\n{{ height | nope }}"] {
            let error = error(source);
            assert_eq!(error.exit, Exit::Usage, "{error}");
            assert!(error.excerpt.is_some() && error.to_string().contains('^'), "{error}");
        }
    }
}

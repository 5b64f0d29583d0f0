//! `--jq`: the jq language, run by jaq. Strings are printed raw, any other value as compact JSON,
//! one per line.
//!
//! A filter with endless recursion would overflow its thread's stack, which ends the process
//! without an error. Every step of a filter requests the table of its functions, so the depth of
//! the stack is checked there ([`Data`]).

use super::filter::{ENDLESS, Filter, Program, STACK_BYTES};
use crate::error::{CliError, Excerpt, Exit, nearest};
use jaq_core::{
    Compiler, Ctx, DataT, Lut, Vars, compile,
    data::HasLut,
    load,
    load::{Arena, File, Loader},
    unwrap_valr,
};
use jaq_json::Val;
use std::{
    ops::Range,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
};

const HINT: &str = "the language is that of jq; examples: docs/output.md";

/// The part of its thread's stack that a filter may use; the rest is for dropping what it has
/// built.
const DEPTH_BYTES: usize = STACK_BYTES / 2;

/// Filters on JSON with a check of their stack's depth.
struct Bounded;

impl DataT for Bounded {
    type V<'a> = Val;
    type Data<'a> = Data<'a>;
}

#[derive(Clone, Copy)]
struct Data<'a> {
    lut: &'a Lut<Bounded>,
    /// The stack's address when the filter begins.
    bottom: usize,
}

/// The panic payload of a filter's thread whose stack has become too deep.
struct TooDeep;

impl<'a> HasLut<'a, Bounded> for Data<'a> {
    fn lut(&self) -> &'a Lut<Bounded> {
        if self.bottom.abs_diff(stack()) > DEPTH_BYTES {
            // This is not a bug of this program, so no panic message is printed.
            resume_unwind(Box::new(TooDeep));
        }
        self.lut
    }
}

/// The maximum nesting of a printed value, because printing is recursive.
const LEVELS: usize = 10_000;

fn is_too_deep(value: &Val) -> bool {
    let mut left = vec![(value, 0)];
    while let Some((value, level)) = left.pop() {
        if level > LEVELS {
            return true;
        }
        match value {
            Val::Arr(items) => left.extend(items.iter().map(|item| (item, level + 1))),
            Val::Obj(fields) => {
                let parts = fields.iter().flat_map(|(key, field)| [key, field]);
                left.extend(parts.map(|part| (part, level + 1)));
            }
            _ => {}
        }
    }
    false
}

fn stack() -> usize {
    let here = 0_u8;
    std::ptr::from_ref(&here).addr()
}

impl Filter {
    pub fn jq(source: &str) -> Result<Self, CliError> {
        Self::of(source, program)
    }
}

/// Compiles a filter; an error shows the faulty place.
fn program(source: &str) -> Result<Program, CliError> {
    let filter = compile(source)?;
    Ok(Box::new(move |document, print| {
        let run = || run(&filter, document, print);
        catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| match panic.is::<TooDeep>() {
            true => Err(CliError::failed("--jq: the filter calls itself too deeply").hint(ENDLESS)),
            false => resume_unwind(panic),
        })
    }))
}

fn run(
    filter: &jaq_core::Filter<Bounded>,
    document: &str,
    print: &mut dyn FnMut(Vec<u8>) -> bool,
) -> Result<(), CliError> {
    let input = jaq_json::read::parse_single(document.as_bytes())
        .map_err(|error| CliError::failed(format!("--jq: the document: {error}")))?;
    let data = Data { lut: &filter.lut, bottom: stack() };
    let cx = Ctx::<Bounded>::new(data, Vars::new([]));
    for output in filter.id.run((cx, input)).map(unwrap_valr) {
        let output = output.map_err(|error| {
            CliError::failed(format!("--jq: {error}"))
                .hint("the document that it runs on: the same command with --output json")
        })?;
        if is_too_deep(&output) {
            let what = format!("--jq: an output is nested in more than {LEVELS} levels");
            return Err(CliError::failed(what).hint(ENDLESS));
        }
        let mut line = match output {
            Val::TStr(text) => text.to_vec(),
            other => other.to_string().into_bytes(),
        };
        line.push(b'\n');
        if !print(line) {
            break;
        }
    }
    Ok(())
}

fn compile(source: &str) -> Result<jaq_core::Filter<Bounded>, CliError> {
    let defs = jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs());
    let arena = Arena::default();
    let file = File { code: source, path: () };
    let modules = Loader::new(defs).load(&arena, file).map_err(|errors| {
        let error = errors.into_iter().map(|(_, error)| error).next();
        let (what, part) = match error {
            Some(load::Error::Lex(errors)) => first(errors, |(expected, got)| {
                // The parser returns the rest of the program, which begins with the fault.
                let end = got.char_indices().nth(1).map_or(got.len(), |(at, _)| at);
                (format!("expected {}", expected.as_str()), &got[..end])
            }),
            Some(load::Error::Parse(errors)) => first(errors, |(expected, got)| {
                let found = match got {
                    "" => "the end".to_owned(),
                    got => format!("`{got}`"),
                };
                (format!("expected {}, got {found}", expected.as_str()), got)
            }),
            Some(load::Error::Io(errors)) => {
                first(errors, |(path, _)| (format!("there is no module `{path}`"), path))
            }
            None => None,
        }
        .unwrap_or_else(|| ("not a filter".to_owned(), source));
        refused(source, &what, part)
    })?;
    let funs = jaq_core::funs().chain(jaq_std::funs()).chain(jaq_json::funs());
    Compiler::default().with_funs(funs).compile(modules).map_err(|errors| {
        let undefined = errors.into_iter().flat_map(|(_, errors)| errors).next();
        let Some((name, kind)) = undefined else {
            return refused(source, "not a filter", source);
        };
        let arity = match kind {
            compile::Undefined::Filter(arity) if arity > 0 => format!("/{arity}"),
            _ => String::new(),
        };
        let error =
            refused(source, &format!("there is no {} `{name}{arity}`", kind.as_str()), name);
        match nearest(name, names().iter().map(String::as_str)) {
            Some(meant) => error.hint(format!("did you mean `{meant}`?")),
            None => error,
        }
    })
}

fn first<T, R>(errors: Vec<T>, describe: impl FnOnce(T) -> R) -> Option<R> {
    errors.into_iter().next().map(describe)
}

fn names() -> Vec<String> {
    let defs = jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs());
    let funs = jaq_core::funs::<Bounded>().chain(jaq_std::funs()).chain(jaq_json::funs());
    let natives = funs.map(|(name, ..)| name.to_owned());
    defs.map(|def| def.name.to_owned()).chain(natives).collect()
}

fn refused(source: &str, what: &str, part: &str) -> CliError {
    CliError::new(Exit::Usage, format!("--jq: {what}"))
        .excerpt(Excerpt::of_argument(source, range_of(source, part)))
        .hint(HINT)
}

/// The position of a part of a text; the end of the text if it is not a part.
fn range_of(source: &str, part: &str) -> Range<usize> {
    let start = (part.as_ptr() as usize).wrapping_sub(source.as_ptr() as usize);
    if start > source.len() {
        return source.len()..source.len();
    }
    start..(start + part.len()).min(source.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(source: &str, expected: &str) {
        let error = program(source).err().map(|error| error.to_string());
        assert_eq!(error.as_deref(), Some(expected), "{source}");
    }

    #[test]
    fn what_is_no_filter_is_shown() {
        let hint = format!("\n  {HINT}");
        check(".a | | .b", &format!("--jq: expected term, got `|`\n  .a | | .b\n       ^{hint}"));
        check(".a[", &format!("--jq: expected closing bracket\n  .a[\n     ^{hint}"));
        check("", &format!("--jq: expected term, got the end\n  \n  ^{hint}"));
        check(
            "map(nam)",
            "--jq: there is no filter `nam`\n  map(nam)\n      ^^^\n  did you mean `nan`?",
        );
        check("$a", &format!("--jq: there is no variable `$a`\n  $a\n  ^^{hint}"));
        check(
            "import \"a\" as a; .",
            &format!("--jq: there is no module `a`\n  import \"a\" as a; .\n          ^{hint}"),
        );
    }

    #[test]
    fn every_place_is_within_the_text() {
        for source in ["(", "\"", "\"\\u12", "{a:", "é |", "if . then", ". as", "[.[] | é]", "&"]
        {
            let error = program(source).err().expect(source);
            assert_eq!(error.exit, Exit::Usage, "{source}");
            assert_eq!(error.to_string().lines().count(), 4, "{error}");
        }
    }
}

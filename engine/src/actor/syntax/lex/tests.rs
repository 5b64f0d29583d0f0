//! The lexer's tokens are the parser's tokens, so the limits see what is parsed.

use super::*;
use crate::actor::{ActorParams, Budget, Module};
use proptest::prelude::*;
use ruff_python_ast::token::TokenKind;
use ruff_python_parser::parse_module;
use ruff_text_size::Ranged;

/// The range of each token with text.
fn own(source: &str) -> Result<Vec<(usize, usize)>, Unlexable> {
    let mut lexer = Lexer::new(source);
    let mut tokens = Vec::new();
    while let Some(Lexeme { token, start, end }) = lexer.next()? {
        let marks = [Token::Newline, Token::Indent, Token::Dedent, Token::Comment];
        if !marks.contains(&token) {
            tokens.push((start, end));
        }
    }
    Ok(tokens)
}

/// The same from the parser; `None` if it finds an error.
fn theirs(source: &str) -> Option<Vec<(usize, usize)>> {
    let parsed = parse_module(source).ok()?;
    let marks = [
        TokenKind::Newline,
        TokenKind::NonLogicalNewline,
        TokenKind::Indent,
        TokenKind::Dedent,
        TokenKind::Comment,
    ];
    let tokens = parsed.tokens().iter().filter(|token| !marks.contains(&token.kind()));
    Some(tokens.map(|token| (token.start().to_usize(), token.end().to_usize())).collect())
}

fn check(source: &str) {
    let own = own(source).unwrap_or_else(|error| panic!("{}: {source:?}", error.why));
    assert_eq!(Some(own), theirs(source), "{source:?}");
}

#[test]
fn tokens_are_those_of_the_parser() {
    for source in [
        "",
        "x",
        "# only a comment",
        "\n\n  \n# a\n\nx = 1 # b\n",
        "def f(a, *b, c = 1, **d) -> int:\n  if a:\n\n    return 1\n  # c\n  return 2\nx = 3",
        "x = 0x_ff + 0b1 + 0o17 + 1_000 + 00 - 12",
        "x = 'a' \"b\" r'\\d' u'c' '''d\n'e''' \"\"\"f\\\"\"\"\" '\\x41\\u00e9\\U0001F600\\\\'",
        "x = 'a\\\nb'; y = [1,\n # in brackets\n 2]\nz = 1 + \\\n 2",
        "a **= 2; a //= 3; a <<= 1; a >>= 1; a = b ** -c // d << e >> f != g <= h; x[...] = a",
        "x = f''; y = f'a'; z = f'{a}'",
        "x = f'{a}{b!r}{c:>5}{d!s:{w}.{p}}{{}}' 'b' f\"{'c'}\"",
        "x = f'{a[\"b\"]}{(lambda x: x)(1)}{ {1: 2}[1] }{a if b != c else d}'",
        "x = f'''{\na\n:\n}'''",
        "x = f'{x=}{y = !r}{z:{f'{a}'}}\\n\\{a}\\\\'",
        "x = rf'{a}\\d\\{b}' fr\"c\" f'{a:\\x41}'",
        "x = f'{f'{f'{1}'}'}'",
        "x = f'{a:{b:{c}}}' f'{a:}}}'",
        "x: int = 1\nwhile x is not None and not y in z: x = x if y else z\ndel a[1], b\nassert x, y",
    ] {
        check(source);
    }
}

#[test]
fn what_is_in_no_module_is_named() {
    for (source, at, why) in [
        ("x = 'abc\ny'", 4, "this string is not closed on its line"),
        ("x = '''abc\ny'", 4, "this string is never closed"),
        ("x = f'{a'", 8, "this string is never closed"),
        ("x = f'{a", 6, "this { is never closed"),
        ("x = f'{a:'", 4, "a field of this f-string is never closed"),
        ("x = f'a}'", 7, "a single } in an f-string: write }}"),
        ("x = (1, [2)", 10, ") does not close ["),
        ("x = 1)", 5, ") closes nothing"),
        ("x = (1", 4, "this ( is never closed"),
        ("if x:\n\ty", 6, "a tab in the indentation: blocks are indented by spaces"),
        ("if x:\n    y\n  z", 14, "this line's indentation matches no block around it"),
        ("x = '\\N{BULLET}'", 5, "there are no names of characters: write \\u and hex"),
        ("x = '\\ud800'", 5, "\\ud800 is not a character"),
        ("x = '\\x4'", 5, "\\x is followed by 2 hex digits"),
        ("x = 0123", 4, "an integer has no leading 0; octal digits follow 0o"),
        ("x = 12ab", 4, "not a number: 12ab"),
        ("x = 1__0", 4, "not a number: 1__0"),
        ("x = 1 $ 2", 6, "$ is allowed only in strings and comments"),
        ("x = 1 \\ 2", 6, "a \\ outside of a string must end its line"),
        ("x = \u{201c}a\u{201d}", 4, "U+201C is allowed only in strings and comments"),
    ] {
        let error = own(source).expect_err(source);
        assert_eq!((error.why.as_str(), error.at), (why, at), "{source:?}");
    }
    for (source, start) in [
        ("1.5", absent::FLOATS),
        ("1.", absent::FLOATS),
        (".5", absent::FLOATS),
        ("1e9", absent::FLOATS),
        ("1_0.5e-3", absent::FLOATS),
        ("2j", absent::COMPLEX),
        ("b'a'", absent::BYTES),
        ("Rb'a'", absent::BYTES),
        ("t'a'", absent::TEMPLATES),
        ("(a := 1)", absent::WALRUS),
        ("@a\ndef f(): pass", absent::AT),
        ("a @ b", absent::AT),
        ("class A: pass", "`class`: "),
        ("try: pass", "`try`: "),
        ("import a", "`import`: "),
        ("from a import b", "`from`: "),
        ("global a", "`global`: "),
        ("nonlocal a", "`nonlocal`: "),
        ("async def f(): pass", "`async`: "),
        ("with a: pass", "`with`: "),
        ("raise a", "`raise`: "),
        ("x = yield", "`yield`: "),
        ("\u{e9} = 1", "names are ASCII letters, digits and _"),
        ("a\u{e9} = 1", "names are ASCII letters, digits and _"),
    ] {
        let error = own(source).expect_err(source);
        assert!(error.why.starts_with(start), "{source}: {}", error.why);
    }
}

/// Pieces of sources, some of which fit together.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("x"),
        Just("1"),
        Just("'a'"),
        Just("\"b\\\"\""),
        Just("'''c\n'''"),
        Just("f'"),
        Just("f\"\"\""),
        Just("rf\""),
        Just("'"),
        Just("\""),
        Just("\"\"\""),
        Just("{"),
        Just("}"),
        Just("{{"),
        Just("{x}"),
        Just("{x:"),
        Just("!r"),
        Just("="),
        Just(":"),
        Just("("),
        Just(")"),
        Just("["),
        Just("]"),
        Just(","),
        Just(" "),
        Just("\n"),
        Just("\n  "),
        Just("\n    "),
        Just("\\\n"),
        Just("\\"),
        Just("\\n"),
        Just("# d"),
        Just("+"),
        Just(" not in "),
        Just(" if "),
        Just(" else "),
        Just("lambda x: "),
        Just("def f():"),
        Just("while x:"),
        Just("0x1F"),
        Just("..."),
        Just("."),
        Just("**"),
        Just(";"),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn tokens_of_pieces_are_those_of_the_parser(source in pieces()) {
        if let (Ok(own), Some(theirs)) = (own(&source), theirs(&source)) {
            prop_assert_eq!(own, theirs, "{:?}", source);
        }
    }

    /// Any source loads or is refused, with the same result each time.
    #[test]
    fn sources_of_pieces_end_alike(source in pieces()) {
        let budget = Budget { cycles: 100_000, cells: 0 };
        let load = || Module::load(&source, &ActorParams::default(), budget);
        let ((first, loaded), (second, again)) = (load(), load());
        prop_assert_eq!(first, second, "{:?}", source);
        prop_assert_eq!(loaded.err(), again.err(), "{:?}", source);
    }

    #[test]
    fn fields_within_fields_are_those_of_the_parser(
        parts in prop::collection::vec(
            prop::sample::select(vec![
                "a", "{x}", "{x!r}", "{x:>{w}}", "{x:{w}.{p}d}", "{{", "}}", "{x[1]}", "{f'b{y}'}",
                "{x=}", "\\n", " ", "{ {1: 2}[1] }", "{(x)}", "{x != y}", "'", "\\{x}", "{x:}",
            ]),
            0..8,
        ),
    ) {
        let source = format!("v = f\"{}\" + 1\n", parts.concat());
        let theirs = theirs(&source);
        if let Some(theirs) = theirs {
            prop_assert_eq!(own(&source).ok(), Some(theirs), "{:?}", source);
        }
    }
}

//! English: words that make a sentence a riddle, and comments that only repeat a name.

use super::{Rule, Sample};
use crate::{
    Finding,
    source::{File, Tree, doc},
};
use syn::{Attribute, Item, Visibility, spanned::Spanned as _};

/// Words that no text has: not in comments, messages, names or books.
const WORDS: [&str; 18] = [
    "anew", "anybody", "aught", "beside", "hence", "hereof", "nobody", "somebody", "stand",
    "stands", "stood", "thereby", "thereof", "wherein", "whither", "whoever", "whomever",
    "whosever",
];

/// The same of two words and more.
const PHRASES: [&[&str]; 9] = [
    &["any", "more"],
    &["are", "none"],
    &["be", "had"],
    &["is", "had"],
    &["is", "no", "more"],
    &["is", "none"],
    &["so", "many"],
    &["the", "like"],
    &["was", "none"],
];

/// The file with these lists.
const SELF: &str = "tests/tidy/rules/english.rs";

/// Words of a doc comment at least.
const LEAST: usize = 3;

/// Subject first, in words of today.
pub const ENGLISH: Rule = Rule {
    name: "English",
    check: english,
    samples: &[
        Sample {
            files: &[
                (
                    "engine/src/a.rs",
                    "//! `Whoever asks.`\n// There is\n// none: it is none of them.\nfn stands() {}\n",
                ),
                ("docs/a.md", "Of two with one height, the first.\nSo many are\nenough.\n"),
                ("devnet/src/b.rs", "/// It fails. Of these one is kept.\nfn f() {}\n"),
            ],
            found: &[
                "devnet/src/b.rs:1",
                "docs/a.md:1",
                "docs/a.md:2",
                "engine/src/a.rs:1",
                "engine/src/a.rs:3",
                "engine/src/a.rs:4",
            ],
        },
        Sample {
            files: &[
                ("engine/src/a.rs", "// A standstill; `nobody` and \"nobody\" are users.\n"),
                ("docs/a.md", "Office hours. Offline.\n"),
                ("docs/a.json", "{\"a\": \"stands\"}\n"),
            ],
            found: &[],
        },
    ],
};

/// Types, traits, constants and functions that other modules use have docs, which say more than a
/// name. Fields, variants and methods need none when their names say everything.
pub const ITEMS: Rule = Rule {
    name: "item docs",
    check: items,
    samples: &[
        Sample {
            files: &[(
                "engine/src/a.rs",
                concat!(
                    "pub struct A;\n",
                    "/// The b.\npub fn b() {}\n",
                    "pub trait D {\n    fn e();\n}\n",
                    "mod f {\n    pub const G: u8 = 1;\n}\n"
                ),
            )],
            found: &[
                "engine/src/a.rs:1",
                "engine/src/a.rs:3",
                "engine/src/a.rs:4",
                "engine/src/a.rs:8",
            ],
        },
        Sample {
            files: &[
                (
                    "engine/src/a.rs",
                    concat!(
                        "/// Shows that fields need none.\npub struct A {\n    pub b: u8,\n}\n",
                        "impl A {\n    pub fn b(&self) {}\n}\n",
                        "fn c() {}\npub(crate) fn d() {}\n",
                        "impl Default for A {\n    fn default() -> Self {}\n}\n",
                        "#[cfg(test)]\nmod tests {\n    pub fn e() {}\n}\n"
                    ),
                ),
                ("tests/a/main.rs", "pub fn f() {}\n"),
            ],
            found: &[],
        },
    ],
};

fn english(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let read = |file: &&File| {
        let ending = file.path.rsplit_once('.').map_or("", |(_, ending)| ending);
        matches!(ending, "rs" | "md" | "yaml" | "yml" | "toml" | "py" | "sh") && file.path != SELF
    };
    for file in tree.files().filter(read) {
        for (number, line) in (1..).zip(file.text.lines()) {
            for found in banned(line) {
                let text = format!("`{found}`: say it in plain English (STYLE.md, English)");
                findings.push(Finding::new(&file.path, number, text));
            }
            let prose = match file.path.ends_with(".rs") {
                true => comment(line),
                false => Some(line),
            };
            if prose.is_some_and(|prose| prose.starts_with("Of ") || prose.contains(". Of ")) {
                let text = "an inversion: begin with the subject";
                findings.push(Finding::new(&file.path, number, text));
            }
        }
    }
    findings
}

/// The banned words and phrases of a line that are neither quoted nor part of a name.
fn banned(line: &str) -> Vec<String> {
    let words: Vec<(usize, String)> = line
        .split(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '-'))
        .filter(|word| !word.is_empty())
        // Python's `None` is a value.
        .filter(|word| *word != "None")
        .map(|word| (word.as_ptr() as usize - line.as_ptr() as usize, word.to_lowercase()))
        .filter(|(at, word)| {
            let quote = ['`', '"', '\''];
            !(line[..*at].ends_with(quote) && line[at + word.len()..].starts_with(quote))
        })
        .collect();
    let single = words.iter().filter(|(_, word)| WORDS.contains(&word.as_str()));
    let phrases = PHRASES.iter().filter(|phrase| {
        words.windows(phrase.len()).any(|some| {
            some.iter().zip(phrase.iter()).all(|((_, word), expected)| word == expected)
        })
    });
    single.map(|(_, word)| word.clone()).chain(phrases.map(|phrase| phrase.join(" "))).collect()
}

/// The text of a line that is a comment.
fn comment(line: &str) -> Option<&str> {
    let text = line.trim_start().strip_prefix("//")?;
    Some(text.trim_start_matches(['/', '!']).trim_start())
}

fn items(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let tests: Vec<_> = tree.modules().into_iter().filter(|module| module.test).collect();
    for (file, rust) in tree.rust() {
        let library = ["engine/", "devnet/"].iter().any(|package| file.path.starts_with(package));
        if !library || tests.iter().any(|module| module.path == file.path) {
            continue;
        }
        let lines = rust.test_lines();
        let mut found = Vec::new();
        walk(&rust.ast.items, &mut found);
        for line in found.into_iter().filter(|line| !lines.contains(line)) {
            let text = format!("say at least in {LEAST} words what its name does not");
            findings.push(Finding::new(&file.path, line, text));
        }
    }
    findings
}

/// The lines of public items whose docs say too little.
fn walk(items: &[Item], found: &mut Vec<usize>) {
    for item in items {
        let mut check = |public: bool, attributes: &[Attribute], line: usize| {
            if public && !says_enough(attributes) {
                found.push(line);
            }
        };
        match item {
            Item::Fn(f) => check(is_public(&f.vis), &f.attrs, f.sig.span().start().line),
            Item::Struct(s) => check(is_public(&s.vis), &s.attrs, s.ident.span().start().line),
            Item::Enum(e) => check(is_public(&e.vis), &e.attrs, e.ident.span().start().line),
            Item::Const(c) => check(is_public(&c.vis), &c.attrs, c.ident.span().start().line),
            Item::Type(t) => check(is_public(&t.vis), &t.attrs, t.ident.span().start().line),
            Item::Trait(t) => check(is_public(&t.vis), &t.attrs, t.ident.span().start().line),
            Item::Mod(module) => {
                if let Some((_, items)) = &module.content {
                    walk(items, found);
                }
            }
            _ => {}
        }
    }
}

const fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

/// Whether there are docs of enough words, a link, or docs that a macro hands in.
fn says_enough(attributes: &[Attribute]) -> bool {
    let docs = attributes.iter().filter(|attribute| attribute.path().is_ident("doc"));
    let texts: Vec<_> = docs.map(doc).collect();
    let words: usize = texts.iter().flatten().map(|text| text.split_whitespace().count()).sum();
    words >= LEAST || texts.iter().any(|text| text.as_ref().is_none_or(|text| text.contains("[`")))
}

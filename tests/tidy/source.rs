//! The repository as the rules see it: files, tokens, modules.

use proc_macro2::{Delimiter, LineColumn, Span, TokenStream, TokenTree};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::Path,
};
use syn::{Attribute, Expr, Item, Lit, Meta};

/// Packages outside the workspace, whose files belong to targets, too.
const OUTSIDE: [&str; 2] = ["tests/fuzz", "tests/peers"];

/// Packages of the workspace, by folder.
pub const PACKAGES: [&str; 9] = [
    "engine",
    "engine/pvm",
    "devnet",
    "devnet/host",
    "devnet/lease",
    "devnet/simulation",
    "cli",
    "tests",
    "examples",
];

/// Packages whose modules are layers: the table at the top of `lib.rs` is their order.
pub const LAYERED: [&str; 6] =
    ["engine", "engine/pvm", "devnet", "devnet/host", "devnet/lease", "cli"];

/// Every text file, by its path from the top, with `/` between the parts.
#[derive(Default)]
pub struct Tree(BTreeMap<String, File>);

/// A text file.
pub struct File {
    /// Its path from the top.
    pub path: String,
    pub text: String,
    /// The parsed text if it is Rust.
    pub rust: Option<Rust>,
}

/// A parsed Rust file.
pub struct Rust {
    /// Every token in order, with groups flattened; without comments, but with doc comments as
    /// attributes.
    pub tokens: Vec<Token>,
    pub ast: syn::File,
}

/// A token and its position.
#[derive(Debug, Clone)]
pub struct Token {
    pub kind: Kind,
    /// Its text; one character for punctuation and delimiters.
    pub text: String,
    pub start: LineColumn,
    pub end: LineColumn,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A name or keyword.
    Ident,
    /// One character of an operator.
    Punct,
    /// An opening delimiter.
    Open,
    /// A closing delimiter.
    Close,
    /// A literal, docs included.
    Literal,
}

impl Token {
    fn new(kind: Kind, text: String, span: Span) -> Self {
        Self { kind, text, start: span.start(), end: span.end() }
    }

    /// Whether this is the operator or delimiter with this text.
    pub fn is(&self, text: &str) -> bool {
        self.kind != Kind::Literal && self.text == text
    }

    /// The line it begins in.
    pub const fn line(&self) -> usize {
        self.start.line
    }
}

/// A path such as `std::time::Duration`; paths in a `use` group are written out.
#[derive(Debug, PartialEq, Eq)]
pub struct Reference {
    /// Its parts; the last one may be `*`.
    pub parts: Vec<String>,
    /// The line of its last part.
    pub line: usize,
    /// Number of inline modules around it.
    pub inline: usize,
}

/// A file as part of a target.
#[derive(Debug)]
pub struct Module {
    pub path: String,
    /// Module names from the target's root; empty for the root.
    pub names: Vec<String>,
    /// Whether it is compiled for tests alone.
    pub test: bool,
}

impl Tree {
    /// Reads all files below `top`, except those of builds and version control.
    pub fn read(top: &Path) -> io::Result<Self> {
        let mut tree = Self::default();
        let mut folders = vec![String::new()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(top.join(&folder))? {
                let entry = entry?;
                let name = entry.file_name().to_string_lossy().into_owned();
                let path =
                    if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
                let kind = entry.file_type()?;
                let built = |package: &&str| path == format!("{package}/target");
                if name == ".git" || path == "target" || OUTSIDE.iter().any(built) {
                    continue;
                }
                if kind.is_dir() {
                    folders.push(path);
                } else if kind.is_file() {
                    // A file is text if it is UTF-8; others, such as pictures, have none.
                    let text = String::from_utf8(fs::read(entry.path())?).unwrap_or_default();
                    tree.insert(path, text);
                }
            }
        }
        Ok(tree)
    }

    /// A tree of these files, for samples.
    pub fn of(files: &[(&str, &str)]) -> Self {
        let mut tree = Self::default();
        for (path, text) in files {
            tree.insert((*path).to_owned(), (*text).to_owned());
        }
        tree
    }

    fn insert(&mut self, path: String, text: String) {
        let rust = path.ends_with(".rs").then(|| Rust::parse(&path, &text));
        self.0.insert(path.clone(), File { path, text, rust });
    }

    /// The file at this path.
    pub fn get(&self, path: &str) -> Option<&File> {
        self.0.get(path)
    }

    /// All files, in order of their paths.
    pub fn files(&self) -> impl Iterator<Item = &File> {
        self.0.values()
    }

    /// All Rust files, in order of their paths.
    pub fn rust(&self) -> impl Iterator<Item = (&File, &Rust)> {
        self.files().filter_map(|file| Some((file, file.rust.as_ref()?)))
    }

    /// Whether `path` is a file or a folder of the tree.
    pub fn holds(&self, path: &str) -> bool {
        let below = format!("{path}/");
        path.is_empty() || self.0.contains_key(path) || self.0.keys().any(|p| p.starts_with(&below))
    }

    /// Every file of every package's targets, found through `mod` items.
    pub fn modules(&self) -> Vec<Module> {
        let mut modules = Vec::new();
        for package in PACKAGES.into_iter().chain(OUTSIDE) {
            for (path, test) in self.roots(package) {
                self.descend(Module { path, names: Vec::new(), test }, &mut modules);
            }
        }
        modules
    }

    /// Roots of a package's targets, those that Cargo finds by itself and those that its manifest
    /// names, and whether each is compiled for tests only.
    fn roots(&self, package: &str) -> BTreeMap<String, bool> {
        let mut roots = BTreeMap::new();
        for (path, _) in self.rust() {
            let Some(inside) = path.path.strip_prefix(package).and_then(|p| p.strip_prefix('/'))
            else {
                continue;
            };
            let parts: Vec<&str> = inside.split('/').collect();
            match parts[..] {
                ["src", "lib.rs" | "main.rs"] | ["src", "bin", _] | ["build.rs"] => {
                    roots.insert(path.path.clone(), false);
                }
                ["examples", _] => _ = roots.insert(path.path.clone(), false),
                ["tests" | "benches", _] | ["tests" | "benches", _, "main.rs"] => {
                    roots.insert(path.path.clone(), true);
                }
                _ => {}
            }
        }
        let manifest = self.get(&format!("{package}/Cargo.toml")).map_or("", |file| &file.text);
        let mut section = "";
        for line in manifest.lines().map(str::trim) {
            if line.starts_with('[') {
                section = line;
            }
            let named = line.strip_prefix("path").map(str::trim_start);
            if let Some(value) = named.and_then(|rest| rest.strip_prefix('='))
                && matches!(section, "[lib]" | "[[bin]]" | "[[test]]" | "[[bench]]" | "[[example]]")
            {
                let path = join(package, value.trim().trim_matches('"'));
                roots.insert(path, matches!(section, "[[test]]" | "[[bench]]"));
            }
        }
        roots
    }

    fn descend(&self, module: Module, found: &mut Vec<Module>) {
        let Some(rust) = self.get(&module.path).and_then(|file| file.rust.as_ref()) else { return };
        let (folder, name) = module.path.rsplit_once('/').unwrap_or(("", &module.path));
        let inside = if module.names.is_empty() || name == "mod.rs" {
            folder.to_owned()
        } else {
            module.path.trim_end_matches(".rs").to_owned()
        };
        let mut children = Vec::new();
        let here = Declared { folder, inside, names: module.names.clone(), test: module.test };
        self.declared(&rust.ast.items, &here, &mut children);
        found.push(module);
        for child in children {
            self.descend(child, found);
        }
    }

    /// The files that `items` declare as modules, including those in inline modules.
    fn declared(&self, items: &[Item], here: &Declared<'_>, found: &mut Vec<Module>) {
        for item in items {
            let Item::Mod(item) = item else { continue };
            let name = item.ident.to_string();
            let test = here.test || is_test(&item.attrs);
            let mut names = here.names.clone();
            names.push(name.clone());
            match &item.content {
                Some((_, items)) => {
                    let inside = format!("{}/{name}", here.inside);
                    let here = Declared { folder: here.folder, inside, names, test };
                    self.declared(items, &here, found);
                }
                None => {
                    let path = match attribute_text(&item.attrs, "path") {
                        Some(path) => join(here.folder, &path),
                        None => [format!("{name}.rs"), format!("{name}/mod.rs")]
                            .map(|file| format!("{}/{file}", here.inside))
                            .into_iter()
                            .find(|path| self.get(path).is_some())
                            .unwrap_or_default(),
                    };
                    found.push(Module { path, names, test });
                }
            }
        }
    }
}

/// The context of a list of items.
struct Declared<'a> {
    /// The file's folder, which `#[path]` starts from.
    folder: &'a str,
    /// The folder of files declared here.
    inside: String,
    /// The module's names from the target's root.
    names: Vec<String>,
    /// Whether it is compiled for tests alone.
    test: bool,
}

impl Rust {
    fn parse(path: &str, text: &str) -> Self {
        let ast = syn::parse_file(text).unwrap_or_else(|error| {
            panic!("{path}:{}: not Rust: {error}", error.span().start().line)
        });
        let stream: TokenStream = text.parse().expect("what syn has parsed has tokens");
        let mut tokens = Vec::new();
        flatten(stream, &mut tokens);
        Self { tokens, ast }
    }

    /// The lines of items that are compiled for tests alone.
    pub fn test_lines(&self) -> BTreeSet<usize> {
        let mut lines = BTreeSet::new();
        test_lines(&self.ast.items, &mut lines);
        lines
    }

    /// Every path in the file, including single names, macro bodies and `use` groups.
    pub fn references(&self) -> Vec<Reference> {
        let tokens = &self.tokens;
        let (mut found, mut inline, mut at) = (Vec::new(), Vec::new(), 0);
        let mut depth = 0_usize;
        while let Some(token) = tokens.get(at) {
            match token.kind {
                Kind::Open => depth += 1,
                Kind::Close => {
                    depth -= 1;
                    inline.retain(|&opened| opened <= depth);
                }
                Kind::Ident if token.text == "mod" => {
                    // A name before a brace opens an inline module.
                    if tokens.get(at + 2).is_some_and(|next| next.is("{")) {
                        inline.push(depth + 1);
                        at += 1;
                    }
                }
                Kind::Ident => {
                    at = path(tokens, at, &mut Vec::new(), inline.len(), &mut found);
                    continue;
                }
                Kind::Punct | Kind::Literal => {}
            }
            at += 1;
        }
        found
    }

    /// The docs at the top of the file, line by line.
    pub fn docs(&self) -> Vec<String> {
        let docs = self.ast.attrs.iter().filter_map(doc);
        docs.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect()
    }
}

/// Reads the path at `at`, which is a name, and returns the index after it.
fn path(
    tokens: &[Token],
    mut at: usize,
    parts: &mut Vec<String>,
    inline: usize,
    found: &mut Vec<Reference>,
) -> usize {
    let before = parts.len();
    loop {
        let part = &tokens[at];
        parts.push(part.text.clone());
        at += 1;
        let separated = tokens.get(at).is_some_and(|token| token.is(":"))
            && tokens.get(at + 1).is_some_and(|token| token.is(":"));
        let next = tokens.get(at + 2);
        match next {
            Some(token) if separated && (token.kind == Kind::Ident || token.is("*")) => at += 2,
            Some(token) if separated && token.is("{") => {
                at = group(tokens, at + 3, parts, inline, found);
                break;
            }
            _ => {
                found.push(Reference { parts: parts.clone(), line: part.line(), inline });
                break;
            }
        }
    }
    parts.truncate(before);
    at
}

/// Reads the content of a `use` group's braces, and returns the index after them.
fn group(
    tokens: &[Token],
    mut at: usize,
    parts: &mut Vec<String>,
    inline: usize,
    found: &mut Vec<Reference>,
) -> usize {
    while let Some(token) = tokens.get(at) {
        if token.is("}") {
            return at + 1;
        }
        at = match token.kind {
            // `as` and the new name are not part of the path.
            Kind::Ident if token.text == "as" => at + 2,
            Kind::Ident => path(tokens, at, parts, inline, found),
            _ if token.is("*") => path(tokens, at, parts, inline, found),
            _ => at + 1,
        };
    }
    at
}

fn flatten(stream: TokenStream, tokens: &mut Vec<Token>) {
    for tree in stream {
        let (kind, text, span) = match tree {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                tokens.push(Token::new(Kind::Open, open.to_owned(), group.span_open()));
                flatten(group.stream(), tokens);
                (Kind::Close, close.to_owned(), group.span_close())
            }
            TokenTree::Ident(ident) => (Kind::Ident, ident.to_string(), ident.span()),
            TokenTree::Punct(punct) => (Kind::Punct, punct.to_string(), punct.span()),
            TokenTree::Literal(literal) => (Kind::Literal, literal.to_string(), literal.span()),
        };
        tokens.push(Token::new(kind, text, span));
    }
}

fn test_lines(items: &[Item], lines: &mut BTreeSet<usize>) {
    use syn::spanned::Spanned as _;
    for item in items {
        if is_test(attributes(item)) {
            lines.extend(item.span().start().line..=item.span().end().line);
        } else if let Item::Mod(syn::ItemMod { content: Some((_, items)), .. }) = item {
            test_lines(items, lines);
        }
    }
}

/// The attributes of an item; empty for kinds that tests do not consist of.
fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Mod(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        Item::Const(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        _ => &[],
    }
}

/// Whether an item is compiled for tests alone: `#[test]`, `#[cfg(test)]`, `#[cfg(all(test, …))]`.
fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) if list.path.is_ident("cfg") => {
            let condition = list.tokens.to_string();
            condition == "test" || condition.starts_with("all") && condition.contains("test")
        }
        _ => false,
    })
}

/// The text of `#[name = "text"]`.
fn attribute_text(attributes: &[Attribute], name: &str) -> Option<String> {
    attributes.iter().find(|attribute| attribute.path().is_ident(name)).and_then(text)
}

/// The text of a doc attribute.
pub fn doc(attribute: &Attribute) -> Option<String> {
    attribute.path().is_ident("doc").then(|| text(attribute)).flatten()
}

fn text(attribute: &Attribute) -> Option<String> {
    let Meta::NameValue(pair) = &attribute.meta else { return None };
    let Expr::Lit(value) = &pair.value else { return None };
    let Lit::Str(text) = &value.lit else { return None };
    Some(text.value())
}

/// `folder/path` with `..` resolved.
pub fn join(folder: &str, path: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => _ = parts.pop(),
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

#[test]
fn a_path_is_read_out_of_use_groups_macros_and_inline_modules() {
    let source = "
        use std::{fs, time::{Duration, Instant as Now}};
        mod inner { use super::super::x; }
        fn f() { vec![crate::a::b(1)]; g::<u8>(); }";
    let tree = Tree::of(&[("engine/src/lib.rs", source)]);
    let (_, rust) = tree.rust().next().expect("the file is there");
    let got: Vec<(String, usize)> = rust
        .references()
        .into_iter()
        .filter(|reference| reference.parts.len() > 1)
        .map(|reference| (reference.parts.join("::"), reference.inline))
        .collect();
    let expected = [
        ("std::fs", 0),
        ("std::time::Duration", 0),
        ("std::time::Instant", 0),
        ("super::super::x", 1),
        ("crate::a::b", 0),
    ];
    assert_eq!(got, expected.map(|(path, inline)| (path.to_owned(), inline)));
}

#[test]
fn modules_are_followed_through_folders_inline_modules_and_path_attributes() {
    let tree = Tree::of(&[
        ("engine/src/lib.rs", "mod a; mod b { mod c; } #[path = \"odd.rs\"] mod d;"),
        ("engine/src/a/mod.rs", "mod e; #[cfg(test)] mod tests;"),
        ("engine/src/a/e.rs", "mod f;"),
        ("engine/src/a/e/f.rs", ""),
        ("engine/src/a/tests.rs", ""),
        ("engine/src/b/c.rs", ""),
        ("engine/src/odd.rs", ""),
        ("tests/Cargo.toml", "[[test]]\nname = \"t\"\npath = \"t/main.rs\"\n"),
        ("tests/t/main.rs", "mod u;"),
        ("tests/t/u.rs", ""),
    ]);
    let got: Vec<(String, String, bool)> = tree
        .modules()
        .into_iter()
        .map(|module| (module.path, module.names.join("::"), module.test))
        .collect();
    let expected = [
        ("engine/src/lib.rs", "", false),
        ("engine/src/a/mod.rs", "a", false),
        ("engine/src/a/e.rs", "a::e", false),
        ("engine/src/a/e/f.rs", "a::e::f", false),
        ("engine/src/a/tests.rs", "a::tests", true),
        ("engine/src/b/c.rs", "b::c", false),
        ("engine/src/odd.rs", "d", false),
        ("tests/t/main.rs", "", true),
        ("tests/t/u.rs", "u", true),
    ];
    assert_eq!(got, expected.map(|(path, names, test)| (path.into(), names.into(), test)));
}

//! The command typed after `:`, and its completions.

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// The text to type, without the program's name: `presence show`, `--from`, `runner-1`.
    pub path: String,
    /// Its description, on one line.
    pub about: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Palette {
    pub line: String,
    /// The suggestion that the arrow keys picked; otherwise the first one is only offered.
    picked: Option<usize>,
    /// The words that can follow `head`, a part of the line.
    offer: Offer,
}

/// The words that can follow the beginning of a line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Offer {
    /// The beginning, with the space after it.
    pub head: String,
    pub words: Vec<Completion>,
}

/// Words that end the dashboard.
pub const QUIT: [&str; 3] = ["q", "quit", "exit"];

/// The longest line, in characters.
const LIMIT: usize = 2_000;

impl Palette {
    pub fn of(line: &str) -> Self {
        Self { line: line.to_owned(), ..Self::default() }
    }

    pub fn push(&mut self, character: char) {
        if !character.is_control() && self.line.chars().count() < LIMIT {
            self.line.push(character);
            self.picked = None;
        }
    }

    pub fn pop(&mut self) {
        self.picked = None;
        self.line.pop();
    }

    /// The line without the word that is being typed.
    fn head(&self) -> &str {
        let space = self.line.char_indices().rfind(|(_, c)| c.is_whitespace());
        &self.line[..space.map_or(0, |(at, c)| at + c.len_utf8())]
    }

    /// Completions of the line: commands that begin with it, then commands that contain it; after a
    /// command, words that can follow.
    pub fn suggestions<'a>(&'a self, all: &'a [Completion]) -> Vec<&'a Completion> {
        let head = self.head();
        if !head.is_empty() && head == self.offer.head {
            let word = &self.line[head.len()..];
            let fits = |offered: &&Completion| offered.path.starts_with(word);
            return self.offer.words.iter().filter(fits).collect();
        }
        let line = self.line.trim_start();
        let begin = all.iter().filter(|command| command.path.starts_with(line));
        let within = all.iter().filter(|command| {
            !command.path.starts_with(line) && command.path.contains(line.trim_end())
        });
        begin.chain(within).filter(|command| command.path != line.trim_end()).collect()
    }

    /// The suggestion that would be taken.
    pub fn picked(&self) -> usize {
        self.picked.unwrap_or(0)
    }

    pub fn pick(&mut self, all: &[Completion], back: bool) {
        let count = self.suggestions(all).len();
        let at = self.picked();
        let next = if back { at + count.saturating_sub(1) } else { at + 1 };
        self.picked = next.checked_rem(count);
    }

    /// Whether `enter` takes the suggestion: the line is not a command yet, or a suggestion was
    /// picked. Otherwise the line is run.
    pub fn takes(&self, all: &[Completion]) -> bool {
        let begun = !self.line.trim().is_empty() && !self.is_command(all);
        (begun || self.picked.is_some()) && !self.suggestions(all).is_empty()
    }

    /// Whether the line begins with a command or ends the dashboard.
    fn is_command(&self, all: &[Completion]) -> bool {
        let line = self.line.trim();
        let line = line.strip_prefix("cowboyctl ").unwrap_or(line).trim_start();
        let begins = |command: &Completion| {
            let rest = line.strip_prefix(command.path.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace))
        };
        QUIT.contains(&line) || line == "dashboard" || all.iter().any(begins)
    }

    pub fn complete(&mut self, all: &[Completion]) {
        let Some(taken) = self.suggestions(all).get(self.picked()).copied() else { return };
        let head = self.head();
        self.line = match !head.is_empty() && head == self.offer.head {
            true => format!("{head}{} ", quoted(&taken.path)),
            false => format!("{} ", taken.path),
        };
        self.picked = None;
    }

    /// The words of a command whose possible next words are not known yet, so that they are
    /// requested.
    pub fn unknown(&mut self, all: &[Completion]) -> Option<(String, Vec<String>)> {
        let head = self.head();
        let begun = |command: &Completion| {
            let rest = head.trim_start().strip_prefix(command.path.as_str());
            rest.is_some_and(|rest| rest.starts_with(char::is_whitespace))
        };
        if head == self.offer.head || !all.iter().any(begun) {
            return None;
        }
        let (head, words) = (head.to_owned(), words(head).ok()?);
        self.offer = Offer { head: head.clone(), words: Vec::new() };
        Some((head, words))
    }

    /// Adds words that can follow, unless the line has changed meanwhile.
    pub fn offered(&mut self, offer: Offer) {
        if offer.head == self.offer.head {
            self.offer = offer;
            self.picked = None;
        }
    }
}

/// Splits a line into words like a shell: at spaces, except within quotes or after a backslash. An
/// open quote is an error.
pub fn words(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match (quote, character) {
            (Some(open), _) if character == open => quote = None,
            (Some('"') | None, '\\') => {
                let next = characters.next().ok_or("there is nothing after the backslash")?;
                word.get_or_insert_default().push(next);
            }
            (None, '"' | '\'') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (None, _) if character.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(character),
        }
    }
    if let Some(open) = quote {
        return Err(format!("the quote {open} is not closed"));
    }
    words.extend(word);
    Ok(words)
}

/// A word in the form that a shell reads back: unchanged, or in quotes.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=+,@".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_a_shell() {
        let check = |line: &str, expected: &[&str]| {
            let expected: Vec<_> = expected.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(words(line).as_ref(), Ok(&expected), "{line}");
            let again = expected.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
            assert_eq!(words(&again), Ok(expected), "{again}");
        };
        check("", &[]);
        check("  a  b ", &["a", "b"]);
        check("a 'b c' \"d e\"f", &["a", "b c", "d ef"]);
        check(r#"a\ b "c\"d" 'e\f' ''"#, &["a b", "c\"d", "e\\f", ""]);
        assert!(words("a 'b").is_err());
        assert!(words("a \\").is_err());
    }

    fn commands() -> Vec<Completion> {
        let paths = ["chain head", "presence show", "presence votes", "runner show"];
        paths
            .iter()
            .map(|path| Completion { path: (*path).to_owned(), about: String::new() })
            .collect()
    }

    #[test]
    fn what_begins_like_the_line_comes_first() {
        let check = |line: &str, expected: &[&str]| {
            let palette = Palette::of(line);
            let all = commands();
            let found = palette.suggestions(&all);
            let found: Vec<_> = found.iter().map(|command| command.path.as_str()).collect();
            assert_eq!(found, expected, "{line}");
        };
        check("pre", &["presence show", "presence votes"]);
        check("show", &["presence show", "runner show"]);
        check("presence show 12", &[]);
        check("chain head", &[]);
    }

    #[test]
    fn the_picked_suggestion_is_taken_over() {
        let all = commands();
        let mut palette = Palette::of("presence");
        palette.pick(&all, false);
        palette.complete(&all);
        assert_eq!(palette.line, "presence votes ");
        palette.line = "presence".to_owned();
        palette.pick(&all, true);
        palette.complete(&all);
        assert_eq!(palette.line, "presence votes ");
    }

    #[test]
    fn enter_takes_a_suggestion_until_the_line_is_a_command() {
        let all = commands();
        let check = |line: &str, expected| {
            assert_eq!(Palette::of(line).takes(&all), expected, "{line}");
        };
        check("", false);
        check("pres", true);
        check("show", true);
        check("presence", true);
        check("presence show", false);
        check("presence show 12", false);
        check("cowboyctl chain head", false);
        check("q", false);
        check("nothing like that", false);
        let mut palette = Palette::default();
        palette.pick(&all, false);
        assert!(palette.takes(&all), "it was picked");
        palette.complete(&all);
        assert_eq!((palette.line.as_str(), palette.takes(&all)), ("presence show ", false));
        // An argument is taken only after it was picked.
        let word = |path: &str| Completion { path: path.to_owned(), about: String::new() };
        assert!(palette.unknown(&all).is_some());
        palette.offered(Offer { head: "presence show ".to_owned(), words: vec![word("12")] });
        assert!(!palette.takes(&all));
        palette.pick(&all, false);
        assert!(palette.takes(&all));
    }

    #[test]
    fn behind_a_command_stands_what_can_follow() {
        let all = commands();
        let unknown = |palette: &mut Palette| palette.unknown(&all).map(|(head, _)| head);
        let mut palette = Palette::of("presence");
        assert_eq!(unknown(&mut palette), None);
        palette.push(' ');
        assert_eq!(unknown(&mut palette), None, "it is a group of commands");
        palette.line += "show ";
        let asked = palette.unknown(&all).unwrap();
        let words = ["presence", "show"].map(str::to_owned).to_vec();
        assert_eq!(asked, ("presence show ".to_owned(), words));
        assert_eq!(palette.unknown(&all), None, "once is enough");
        assert_eq!(palette.suggestions(&all), Vec::<&Completion>::new());
        let word = |path: &str| Completion { path: path.to_owned(), about: String::new() };
        let words = ["12", "--output", "--devnet", "a b"].map(word).to_vec();
        palette.offered(Offer { head: "chain head ".to_owned(), words: words.clone() });
        assert!(palette.suggestions(&all).is_empty(), "it is about another line");
        palette.offered(Offer { head: "presence show ".to_owned(), words });
        assert_eq!(palette.suggestions(&all).len(), 4);
        "--d".chars().for_each(|character| palette.push(character));
        palette.complete(&all);
        assert_eq!(palette.line, "presence show --devnet ");
        assert_eq!(unknown(&mut palette).as_deref(), Some("presence show --devnet "));
        palette.line = "presence show ".to_owned();
        assert_eq!(unknown(&mut palette).as_deref(), Some("presence show "));
        palette.offered(Offer { head: "presence show ".to_owned(), words: vec![word("a b")] });
        palette.complete(&all);
        assert_eq!(palette.line, "presence show 'a b' ");
        palette.line += "'open ";
        assert_eq!(unknown(&mut palette), None, "a quote is open");
    }
}

//! A list's filter: words that a line must or must not contain, ignoring case.

/// Words that a line must all contain; those after a `!` it must not contain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    text: String,
    words: Vec<String>,
}

/// The longest filter, in characters.
const LIMIT: usize = 200;

impl Filter {
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    pub fn set(&mut self, text: &str) {
        self.text = text.chars().filter(|c| !c.is_control()).take(LIMIT).collect();
        self.words = self.text.split_whitespace().map(str::to_lowercase).collect();
    }

    pub fn push(&mut self, character: char) {
        let text = format!("{}{character}", self.text);
        self.set(&text);
    }

    pub fn pop(&mut self) {
        let mut text = self.text.clone();
        text.pop();
        self.set(&text);
    }

    /// Whether a line contains all words, and none of the excluded ones.
    pub fn accepts(&self, line: &str) -> bool {
        self.is_empty() || self.accepts_lowercase(&line.to_lowercase())
    }

    /// The same for a line that is already in lower case.
    pub fn accepts_lowercase(&self, line: &str) -> bool {
        self.words.iter().all(|word| match word.strip_prefix('!') {
            // A lone `!` is still being typed.
            Some("") => true,
            Some(unwanted) => !line.contains(unwanted),
            None => line.contains(word.as_str()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_to_have_every_word() {
        let check = |filter: &str, line: &str, expected| {
            let mut words = Filter::default();
            words.set(filter);
            assert_eq!(words.accepts(line), expected, "{filter} in {line}");
        };
        check("", "anything", true);
        check("  ", "anything", true);
        check("run", "Runner-1", true);
        check("RUN 1", "runner-1", true);
        check("1 run", "runner-1", true);
        check("run 2", "runner-1", false);
        check("run !2", "runner-1", true);
        check("run !2", "runner-2", false);
        check("!", "runner-2", true);
    }

    #[test]
    fn typing_is_bounded() {
        let mut filter = Filter::default();
        (0..1_000).for_each(|_| filter.push('a'));
        filter.push('\n');
        assert_eq!(filter.text().len(), LIMIT);
        filter.pop();
        assert_eq!(filter.text().len(), LIMIT - 1);
    }
}

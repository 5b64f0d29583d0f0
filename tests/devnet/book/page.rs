//! Markdown pages: the commands that they show, and the marks on those that no test runs.

use std::{fs, path::Path};

#[derive(Debug)]
pub struct Page {
    /// Its path from the repository's top, for messages.
    pub path: String,
    lines: Vec<String>,
    blocks: Vec<Block>,
}

/// A fenced code block.
#[derive(Debug)]
pub struct Block {
    /// The line of the opening fence, from 1.
    pub line: usize,
    /// The text after the opening fence.
    pub language: String,
    /// `<!-- not run: REASON -->` is above it, or at the top of its section.
    pub excused: bool,
    /// `<!-- exact -->` is above it: numbers are compared, too.
    pub exact: bool,
    /// `<!-- file: NAME -->` is above it: a reader saves it under this name.
    file: Option<String>,
    /// The lines of its content, as indices into the page's lines.
    inside: std::ops::Range<usize>,
}

/// A command of a `console` block, and the output below it.
#[derive(Debug)]
pub struct Step {
    /// The line of the command, from 1.
    pub line: usize,
    /// The command, without its prompts.
    pub command: String,
    /// The output that the page shows.
    pub output: String,
    /// Whether numbers are compared, too.
    pub exact: bool,
    /// Names and texts of the files that are saved before it.
    pub files: Vec<(String, String)>,
    /// The output's lines, as indices into the page's lines.
    shown: std::ops::Range<usize>,
}

impl Page {
    pub fn read(top: &Path, path: &str) -> Self {
        let text = fs::read_to_string(top.join(path))
            .unwrap_or_else(|error| panic!("{path} cannot be read: {error}"));
        Self::parse(path, &text)
    }

    pub fn parse(path: &str, text: &str) -> Self {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let blocks = blocks(&lines);
        Self { path: path.to_owned(), lines, blocks }
    }

    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// The text within a block.
    pub fn text(&self, block: &Block) -> &[String] {
        &self.lines[block.inside.clone()]
    }

    /// The commands that a reader types, in order.
    pub fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut files = Vec::new();
        for block in &self.blocks {
            if let Some(name) = &block.file {
                files.push((name.clone(), self.text(block).join("\n") + "\n"));
            } else if block.language == "console" {
                let mut more = self.steps_of(block);
                if let Some(first) = more.first_mut() {
                    first.files.append(&mut files);
                }
                steps.append(&mut more);
            }
        }
        steps
    }

    fn steps_of(&self, block: &Block) -> Vec<Step> {
        let mut steps: Vec<Step> = Vec::new();
        for place in block.inside.clone() {
            let line = &self.lines[place];
            if let Some(command) = line.strip_prefix("$ ") {
                steps.push(Step {
                    line: place + 1,
                    command: command.to_owned(),
                    output: String::new(),
                    exact: block.exact,
                    files: Vec::new(),
                    shown: place + 1..place + 1,
                });
                continue;
            }
            let step = steps.last_mut().unwrap_or_else(|| {
                panic!("{}:{}: a console block begins with `$ `", self.path, place + 1)
            });
            match line.strip_prefix("> ") {
                Some(more) if step.shown.is_empty() => {
                    step.command += &format!("\n{more}");
                    step.shown = place + 1..place + 1;
                }
                _ => {
                    step.output += &format!("{line}\n");
                    step.shown.end = place + 1;
                }
            }
        }
        steps
    }

    /// The page's text with other outputs.
    pub fn with(&self, outputs: &[(&Step, String)]) -> String {
        let mut lines = self.lines.clone();
        for (step, output) in outputs.iter().rev() {
            // The page's blank line before the next command stays.
            let blank = step.output.ends_with("\n\n") && !output.ends_with("\n\n");
            let shown = output.lines().map(str::to_owned).chain(blank.then(String::new));
            lines.splice(step.shown.clone(), shown);
        }
        lines.join("\n") + "\n"
    }
}

fn blocks(lines: &[String]) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut open = false;
    let (mut level, mut excuses) = (0, Vec::new());
    for (place, line) in lines.iter().enumerate() {
        let trimmed = line.trim_start();
        if let Some(language) = trimmed.strip_prefix("```") {
            open = !open;
            if open {
                let above = place.checked_sub(1).map_or("", |above| lines[above].trim());
                blocks.push(Block {
                    line: place + 1,
                    language: language.trim().to_owned(),
                    excused: !excuses.is_empty(),
                    exact: above == "<!-- exact -->",
                    file: above
                        .strip_prefix("<!-- file: ")
                        .and_then(|name| name.strip_suffix(" -->"))
                        .map(str::to_owned),
                    inside: place + 1..place + 1,
                });
            } else if let Some(block) = blocks.last_mut() {
                block.inside.end = place;
            }
        } else if !open {
            if let Some(heading) = heading(line) {
                level = heading;
                excuses.retain(|&section| section < level);
            } else if let Some(reason) = trimmed.strip_prefix("<!-- not run:")
                && reason.split_whitespace().count() > 1
            {
                excuses.push(level);
            }
        }
    }
    blocks
}

/// The level of a heading, from 1.
fn heading(line: &str) -> Option<usize> {
    let marks = line.len() - line.trim_start_matches('#').len();
    (marks > 0 && line[marks..].starts_with(' ')).then_some(marks)
}

#[test]
fn a_page_is_taken_apart() {
    let page = Page::parse(
        "a.md",
        concat!(
            "# A\n```console\n$ one \\\n> two\nsaid\n\n$ three\n```\n",
            "## B\n<!-- not run: it needs a moon -->\ntext\n```sh\nfly\n```\n### C\n```sh\nfly\n```\n",
            "## D\n<!-- exact -->\n```console\n$ four\n5\n```\n```sh\nwalk\n```\n",
            "<!-- file: a.txt -->\n```text\nkept\n```\n```console\n$ five\n```\n",
        ),
    );
    let steps = page.steps();
    let told: Vec<_> = steps.iter().map(|s| (s.line, &*s.command, &*s.output, s.exact)).collect();
    let expected = [
        (3, "one \\\ntwo", "said\n\n", false),
        (7, "three", "", false),
        (22, "four", "5\n", true),
        (33, "five", "", false),
    ];
    assert_eq!(told, expected);
    let excused: Vec<_> = page.blocks().iter().map(|block| block.excused).collect();
    assert_eq!(excused, [false, true, true, false, false, false, false]);
    assert_eq!(steps[3].files, [("a.txt".to_owned(), "kept\n".to_owned())]);
    let text = page.with(&[(&steps[0], "other\n".into()), (&steps[1], "4\n".into())]);
    assert!(text.contains("$ one \\\n> two\nother\n\n$ three\n4\n```\n## B"), "{text}");
}

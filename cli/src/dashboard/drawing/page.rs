//! A page that may be longer than the pane: facts, texts and tables, from top to bottom.

use super::{
    Column,
    grid::{Cell, grid},
    lines, section, wrapped,
};
use crate::{
    dashboard::{look::Look, rows::Cursor},
    output::cut,
};
use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::Style,
    text::{Line, Span},
};

/// The width of a fact's name, with the gap after it.
pub const NAME: usize = 14;

/// The maximum length of a page in lines; a page about a thousand runners is shorter.
const LIMIT: usize = 20_000;

/// Number of a page's lines that fit into a pane, below its title.
pub fn rows(area: Rect) -> usize {
    area.height.saturating_sub(1).into()
}

#[derive(Debug)]
pub struct Page {
    width: u16,
    look: Look,
    lines: Vec<Line<'static>>,
}

impl Page {
    pub const fn new(width: u16, look: Look) -> Self {
        Self { width, look, lines: Vec::new() }
    }

    /// The width in columns.
    pub const fn width(&self) -> u16 {
        self.width
    }

    pub const fn look(&self) -> Look {
        self.look
    }

    /// The length in lines.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Number of scroll positions, if `fit` lines fit.
    pub fn places(&self, fit: usize) -> usize {
        self.len().saturating_sub(fit) + 1
    }

    /// Adds a rule with a title, after an empty line if the page is not empty.
    pub fn title(&mut self, title: &str) {
        if !self.lines.is_empty() {
            self.push(Line::default());
        }
        let area = Rect::new(0, 0, self.width, 1);
        let mut buffer = Buffer::empty(area);
        section(title, area, self.look, &mut buffer);
        self.lift(&buffer);
    }

    /// Adds a name and its value: a value without spaces stays on its line, others are wrapped.
    pub fn fact(&mut self, name: &str, value: &str, style: Style) {
        let room = self.width.saturating_sub(NAME as u16);
        for (index, line) in value.lines().enumerate() {
            let parts = match line.contains(' ') {
                true => wrapped(line, room),
                false => vec![cut(line, room.into())],
            };
            for (part, text) in parts.into_iter().enumerate() {
                let name = if index + part == 0 { name } else { "" };
                let name = Span::styled(format!("{name:<NAME$}"), self.look.faint());
                self.push(Line::from(vec![name, Span::styled(text, style)]));
            }
        }
    }

    pub fn plain(&mut self, name: &str, value: &str) {
        self.fact(name, value, Style::new());
    }

    pub fn text(&mut self, text: &str, style: Style) {
        for line in text.lines() {
            for part in wrapped(line, self.width) {
                self.push(Line::styled(part, style));
            }
        }
    }

    pub fn table(&mut self, columns: &[Column], rows: &[Vec<Cell>]) {
        let height = rows.len().min(LIMIT) as u16 + 1;
        let area = Rect::new(0, 0, self.width, height);
        let mut buffer = Buffer::empty(area);
        grid(columns, rows, None, area, self.look, &mut buffer);
        self.lift(&buffer);
    }

    /// Draws the page from the line that it is scrolled to.
    pub fn draw(self, first: Cursor, area: Rect, buffer: &mut Buffer) {
        let skipped = first.of(self.places(area.height.into()));
        lines(self.lines.into_iter().skip(skipped), area, buffer);
    }

    fn push(&mut self, line: Line<'static>) {
        if self.lines.len() < LIMIT {
            self.lines.push(line);
        }
    }

    /// Appends what was drawn in a separate buffer.
    fn lift(&mut self, drawn: &Buffer) {
        for row in drawn.content().chunks(usize::from(self.width).max(1)) {
            let mut spans: Vec<Span<'static>> = Vec::new();
            for cell in row {
                match spans.last_mut() {
                    Some(span) if span.style == cell.style() => {
                        span.content.to_mut().push_str(cell.symbol());
                    }
                    _ => spans.push(Span::styled(cell.symbol().to_owned(), cell.style())),
                }
            }
            self.push(Line::from(spans));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::grid::plain, *};
    use crate::dashboard::look::Theme;

    #[test]
    fn a_page_is_scrolled_to_its_end_and_no_further() {
        let mut page = Page::new(20, Look(Theme::None));
        page.title("a");
        page.plain("name", "one two three");
        page.table(&[Column::text("x")], &[vec![plain("1")], vec![plain("2")]]);
        page.text("the end of it", Style::new());
        let text: Vec<_> = page.lines.iter().map(ToString::to_string).collect();
        let text: Vec<_> = text.iter().map(|line| line.trim_end()).collect();
        let expected = [
            "─ a ────────────────",
            "name          one",
            "              two",
            "              three",
            "X",
            "1",
            "2",
            "the end of it",
        ];
        assert_eq!(text, expected);
        assert_eq!((page.places(3), page.places(8), page.places(9)), (6, 1, 1));
        let area = Rect::new(0, 0, 20, 2);
        let mut buffer = Buffer::empty(area);
        let mut first = Cursor::default();
        first.go(99);
        page.draw(first, area, &mut buffer);
        assert_eq!(buffer.content()[0].symbol(), "2");
        assert_eq!(buffer.content()[20].symbol(), "t");
    }
}

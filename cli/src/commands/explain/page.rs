//! Tables of the book's pages, which are built into the program.

/// The meaning of exit codes, of the control API's error codes and of a lease server's.
pub const ERRORS: &str = include_str!("../../../../docs/errors.md");
pub const CHAIN_ERRORS: &str = include_str!("../../../../docs/chain-errors.md");
pub const SPECULATION: &str = include_str!("../../../../docs/speculation.md");

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRow {
    cells: Vec<(String, String)>,
}

impl PageRow {
    /// A column's cell; empty when the table has no such column.
    pub fn get(&self, column: &str) -> &str {
        let cell = self.cells.iter().find(|(name, _)| name == column);
        cell.map_or("", |(_, cell)| cell)
    }
}

/// The rows of all tables whose first column has this name.
pub fn rows<'p>(page: &'p str, first: &'p str) -> impl Iterator<Item = PageRow> + 'p {
    let mut header: Option<Vec<String>> = None;
    page.lines().filter_map(move |line| {
        let Some(cells) = cells(line) else {
            header = None;
            return None;
        };
        match &header {
            None => header = Some(cells),
            Some(_) if cells[0].starts_with("---") => {}
            Some(header) if header[0] == first => {
                let cells = header.iter().cloned().zip(cells).collect();
                return Some(PageRow { cells });
            }
            Some(_) => {}
        }
        None
    })
}

fn cells(line: &str) -> Option<Vec<String>> {
    let line = line.strip_prefix('|')?.strip_suffix('|')?.replace("\\|", "\u{1}");
    Some(line.split('|').map(|cell| plain(cell.trim()).replace('\u{1}', "|")).collect())
}

/// Markdown as text: code keeps its backticks, links become their texts.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, link)) = rest.split_once('[')
        && let Some((label, target)) = link.split_once("](")
        && let Some((_, after)) = target.split_once(')')
    {
        plain.extend([before, label]);
        rest = after;
    }
    plain + rest
}

/// The name in a cell that consists of one code span.
pub fn name(cell: &str) -> Option<&str> {
    cell.strip_prefix('`')?.strip_suffix('`').filter(|name| !name.contains('`'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_by_their_columns() {
        let page = "| other | b |\n|---|---|\n| `x` | y |\n\ntext\n\n| code | what |\n|---|---|\n\
                    | `one` | a [link](a.md) or `b \\| c` |\n| two | |\n";
        let rows: Vec<_> = rows(page, "code").collect();
        assert_eq!(rows.len(), 2);
        assert_eq!(name(rows[0].get("code")), Some("one"));
        assert_eq!(rows[0].get("what"), "a link or `b | c`");
        assert_eq!((name(rows[1].get("code")), rows[1].get("nothing")), (None, ""));
    }
}

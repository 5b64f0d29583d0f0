//! A small chart of bars for terminals.

use crate::output::EIGHTHS;

/// Bars, `rows` lines high, at most `columns` of them: one per value, or if there are more values,
/// each bar is the largest of several. The scale goes from zero to the largest value.
pub fn bars(
    values: &[u128],
    columns: usize,
    rows: usize,
    scale: impl Fn(u128) -> String,
) -> String {
    let most = values.iter().copied().max().unwrap_or(0).max(1);
    let per_bar = values.len().div_ceil(columns.max(1)).max(1);
    // The newest values are on the right, in a bar of full width.
    let bars = values.rchunks(per_bar).rev().map(|chunk| chunk.iter().copied().max().unwrap_or(0));
    let steps = 8 * rows as u128;
    // In eighths, rounded down, but any nonzero value is visible.
    let heights: Vec<u128> = bars
        .map(|value| match value {
            0 => 0,
            _ => {
                (value / most * steps + (value % most).saturating_mul(steps) / most).clamp(1, steps)
            }
        })
        .collect();
    let labels = [scale(most), scale(0)];
    let width = labels.iter().map(|label| label.chars().count()).max().unwrap_or(0);
    let mut lines = Vec::with_capacity(rows);
    for row in (0..rows).rev() {
        let label = match row {
            _ if row + 1 == rows => labels[0].as_str(),
            0 => labels[1].as_str(),
            _ => "",
        };
        let below = 8 * row as u128;
        let bar = |height: &u128| EIGHTHS[height.saturating_sub(below).min(8) as usize];
        let line: String = heights.iter().map(bar).collect();
        lines.push(format!("{label:>width$} ┤{}", line.trim_end()));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_grow_from_zero_to_the_largest() {
        let values: Vec<u128> = (0..=16).collect();
        insta::assert_snapshot!(bars(&values, 60, 2, |value| value.to_string()), @r"
        16 ┤         ▁▂▃▄▅▆▇█
         0 ┤ ▁▂▃▄▅▆▇█████████
        ");
    }

    #[test]
    fn many_values_share_bars_and_the_newest_has_its_own() {
        let values: Vec<u128> = (1..=100).collect();
        let chart = bars(&values, 10, 1, |value| value.to_string());
        assert_eq!(chart, "100 ┤▁▁▂▃▄▄▅▆▇█");
        assert_eq!(bars(&[0, 0], 10, 1, |value| value.to_string()), "1 ┤");
        assert_eq!(bars(&[1, 1_000_000], 10, 1, |value| value.to_string()), "1000000 ┤▁█");
        assert_eq!(bars(&[u128::MAX], 10, 1, |_| String::new()), " ┤█");
        assert_eq!(bars(&[], 10, 1, |_| String::new()), " ┤");
    }
}

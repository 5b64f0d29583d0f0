//! Several rounds of each measurement: all of a round, then the next, so that other load on the
//! machine affects all alike.

/// The figures of one measurement, one of each round.
#[derive(Clone, Debug, Default)]
pub struct Figures(Vec<f64>);

impl Figures {
    pub fn push(&mut self, figure: f64) {
        self.0.push(figure);
        self.0.sort_by(f64::total_cmp);
    }

    /// The middle figure, or the higher of two in the middle; NaN without figures.
    pub fn median(&self) -> f64 {
        self.0.get(self.0.len() / 2).copied().unwrap_or(f64::NAN)
    }

    /// The median with the lowest and the highest figure, for printing.
    pub fn range(&self, decimals: usize) -> String {
        let at = |index: usize| self.0.get(index).copied().unwrap_or(f64::NAN);
        let (low, high) = (at(0), at(self.0.len().saturating_sub(1)));
        format!("{:.decimals$} ({low:.decimals$}–{high:.decimals$})", self.median())
    }
}

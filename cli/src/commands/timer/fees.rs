//! `timer fees`: a table of blocks, with a chart above it on a terminal.

use super::chart::bars;
use crate::{
    error::CliError,
    output::{Row, Ui, columns, grouped, wei},
};
use cowboy_devnet::types::LaneBlock;

/// Maximum number of a chart's bars: with its scale it fits 80 columns.
const COLUMNS: usize = 60;

/// Prints the lane's figures for blocks, oldest first.
pub fn print(ui: Ui, blocks: &[LaneBlock]) -> Result<(), CliError> {
    if let Some(chart) = chart(blocks) {
        ui.picture(&chart)?;
    }
    ui.list(blocks)
}

/// The lane basefee and the lane's utilisation over the blocks; `None` for a single block.
fn chart(blocks: &[LaneBlock]) -> Option<String> {
    let [first, .., last] = blocks else { return None };
    let span = format!("blocks {} to {}", first.height, last.height);
    let basefees: Vec<_> = blocks.iter().map(|block| block.lane_basefee.get()).collect();
    let used: Vec<_> = blocks.iter().map(|b| u128::from(b.utilisation_per_mille)).collect();
    let price = bars(&basefees, COLUMNS, 5, grouped);
    let used = bars(&used, COLUMNS, 3, |value| per_cent(value as u64));
    Some(format!("lane basefee, wei per cycle, {span}\n{price}\n\nlane used\n{used}\n"))
}

fn per_cent(per_mille: u64) -> String {
    format!("{}.{}%", per_mille / 10, per_mille % 10)
}

impl Row for LaneBlock {
    columns! { self;
        ">height" => self.height.to_string(),
        "policy" => self.policy.clone(),
        ">lane basefee" => wei(*self.lane_basefee),
        ">consumed" => grouped(self.consumed.into()),
        ">used" => per_cent(self.utilisation_per_mille),
        ">cells" => grouped(self.cells.into()),
        ">asked" => self.asked.to_string(),
        ">fired" => self.fired.to_string(),
        ">deferred" => self.deferred.to_string(),
        ">priced out" => self.priced_out.to_string(),
        ">over cap" => self.over_cap.to_string(),
        ">expired" => self.expired.to_string(),
        ">unpaid" => self.insolvent.to_string(),
        ">median tip" => wei(*self.p50_tip),
    }
    const LEAST: &'static [&'static str] =
        &["unpaid", "over cap", "cells", "asked", "priced out", "policy", "expired"];

    fn id(&self) -> String {
        self.height.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cowboy_devnet::types::Text;
    use cowboy_engine::primitives::Wei;

    fn block(height: u64, basefee: u128, per_mille: u64) -> LaneBlock {
        LaneBlock {
            height,
            policy: "eip1559".to_owned(),
            lane_basefee: Text(Wei::new(basefee)),
            cycle_price: Text(Wei::new(1_000 + basefee)),
            capacity: 2_000_000,
            consumed: 2_000 * per_mille,
            utilisation_per_mille: per_mille,
            cell_capacity: 1_000_000,
            cells: 10,
            asked: 0,
            questions: Text(Wei::ZERO),
            fired: 1,
            deferred: 0,
            priced_out: 0,
            over_cap: 0,
            expired: 0,
            insolvent: 0,
            p50_tip: Text(Wei::ZERO),
            least_priority: None,
        }
    }

    #[test]
    fn a_chart_shows_price_and_use() {
        let blocks: Vec<_> =
            (0..8).map(|n| block(100 + n, 1_000 + 100 * u128::from(n), 125 * n)).collect();
        insta::assert_snapshot!(chart(&blocks).unwrap(), @r"
        lane basefee, wei per cycle, blocks 100 to 107
        1,700 ┤     ▃▅█
              ┤ ▁▄▆████
              ┤▇███████
              ┤████████
            0 ┤████████

        lane used
        87.5% ┤     ▁▄█
              ┤   ▂▅███
         0.0% ┤ ▃▆█████
        ");
        assert_eq!(chart(&blocks[..1]), None);
    }
}

//! `chain burned`: shows what was burned since genesis, by cause.

use crate::output::{Document, amount, fields, table};
use cowboy_devnet::types::{AmountText, Burned};

impl Document for Burned {
    fn text(&self) -> String {
        let total = self.total.get();
        let share = |part: &AmountText| {
            let per_mille = part.get().saturating_mul(1_000).checked_div(total).unwrap_or(0);
            format!("{}.{}%", per_mille / 10, per_mille % 10)
        };
        let row = |lane: &str, part: &AmountText, what: &str| {
            vec![lane.to_owned(), amount(**part), share(part), what.to_owned()]
        };
        let rows = [
            row("transactions", &self.transactions, "basefees of cycles and cells"),
            row("timers", &self.timers, "basefees of fires: cycles, lane and cells"),
            row("questions", &self.questions, "to gas bidding agents, by the owners of timers"),
            row("callbacks", &self.callbacks, "to actors, when their jobs end"),
            row("penalties", &self.penalties, "slashed from stakes, balances and bonds"),
        ];
        fields(&[
            ("after block", self.height.to_string()),
            ("burned", amount(*self.total)),
            ("lane basefee", format!("{} of timers and questions", amount(*self.lane_basefee))),
        ]) + "\n\n"
            + &table(&["lane", ">burned", ">share", "of"], rows)
    }

    fn id(&self) -> String {
        self.total.to_string()
    }
}

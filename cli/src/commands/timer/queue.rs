//! `timer queue` and `timer bid`: the calendar queue, the next block's treatment of due timers, and
//! the bid of an agent in it.

use crate::{
    complete,
    context::Context,
    error::CliError,
    output::{
        ColumnOf, Document, amount, fields, grouped, or_dash, short, table_of,
        timer::{next, weight, why},
        wei,
    },
};
use clap::Args;
use clap_complete::ArgValueCandidates;
use cowboy_devnet::types::{
    DUE_PAGE, DueQuery, DueTimer, DueTimers, TimerBid, TimerQueue, TimerQuote,
};
use serde::Serialize;

/// `timer queue`.
#[derive(Debug, Args)]
pub struct Queue {
    /// Only due timers of this actor: a name, its address or enough of its beginning, or latest
    #[arg(long, value_name = "ACTOR", add = ArgValueCandidates::new(complete::actors))]
    actor: Option<String>,
    /// Maximum number of due timers, up to 1,000
    #[arg(long, default_value_t = DUE_PAGE)]
    limit: usize,
    /// Number of due timers to skip, as given by the previous page
    #[arg(long, default_value_t = 0)]
    offset: usize,
}

impl Queue {
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        let client = cx.client()?;
        let Self { actor, limit, offset } = self;
        let query = DueQuery { actor, offset: Some(offset), limit: Some(limit) };
        let queue = client.timer_queue().await?;
        cx.ui.document(&Queued { queue, due: client.timers_due(&query).await? })
    }
}

/// The queue, and a page of the timers that are due in the next block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Queued {
    #[serde(flatten)]
    queue: TimerQueue,
    due: DueTimers,
}

impl Document for Queued {
    fn text(&self) -> String {
        let text = self.queue.text();
        if self.due.timers.is_empty() {
            return text;
        }
        text + "\n\n" + &due(&self.due)
    }

    fn id(&self) -> String {
        self.queue.id()
    }
}

const DUE: &[ColumnOf<DueTimer>] = &[
    ("timer", |timer| timer.timer_id.to_string()),
    ("actor", |timer| short(&timer.actor)),
    (">height", |timer| timer.height.to_string()),
    (">rank", |timer| or_dash(timer.rank)),
    (">weight", |timer| or_dash(timer.weight_per_mille.map(weight))),
    (">tip", |timer| or_dash(timer.effective_tip.map(|tip| wei(*tip)))),
    ("bid", |timer| timer.agent.to_string()),
    ("waited", |timer| or_dash(timer.reason.map(why))),
    ("next", |timer| next(timer.next).to_owned()),
    ("why", |timer| match &timer.not_asked {
        None => timer.outlook.clone(),
        Some(why) => format!("{}; its agent is not asked: {why}", timer.outlook),
    }),
];

fn due(page: &DueTimers) -> String {
    let mut text = fields(&[
        ("next block", format!("{}, {}", page.height, page.policy)),
        ("due", format!("{}, {} of them ranked", page.due, page.ranked)),
        (
            "lane",
            format!(
                "{} cycles and {} cells; a cycle costs {} before priority",
                grouped(page.capacity.into()),
                grouped(page.cell_capacity.into()),
                wei(*page.cycle_price),
            ),
        ),
    ]);
    text += "\n\n";
    text += &table_of(&["bid", "weight", "waited", "tip", "actor"], DUE, &page.timers);
    if let Some(next) = page.next {
        text += &format!("\nand more: --offset {next}");
    }
    text
}

impl Document for TimerQuote {
    fn text(&self) -> String {
        let TimerBid { max_fee_per_cycle, max_priority_fee_per_cycle, .. } = &self.bid;
        let mut lines = vec![
            ("timer", self.timer_id.to_string()),
            ("agent", self.gba.to_string()),
            ("next block", format!("{}, {}", self.height, self.policy)),
            (
                "asked",
                match &self.not_asked {
                    None => "in that block, in its owner's turn".to_owned(),
                    Some(why) => format!("not in that block: {why}"),
                },
            ),
            (
                "bid",
                match &self.error {
                    None => "its agent's".to_owned(),
                    Some(error) => format!("the default one; its agent failed: {error}"),
                },
            ),
            ("fee", format!("{} per cycle at most", wei(**max_fee_per_cycle))),
            ("priority", format!("{} per cycle at most", wei(**max_priority_fee_per_cycle))),
            ("question", {
                let paid = grouped(self.paid_cycles.into());
                format!("{} cycles, {paid} paid for: {}", self.cycles, amount(*self.cost))
            }),
            ("price", format!("{} per cycle before priority", wei(*self.cycle_price))),
            ("tip", or_dash(self.effective_tip.map(|tip| format!("{} per cycle", wei(*tip))))),
            ("weight", or_dash(self.weight_per_mille.map(weight))),
            ("rank", or_dash(self.rank.map(|rank| format!("{rank} of {}", self.ranked)))),
            ("costs at most", amount(*self.max_cost)),
        ];
        lines.push(("if it is due", format!("{}: {}", next(self.next), self.outlook)));
        fields(&lines)
    }

    fn id(&self) -> String {
        self.timer_id.to_string()
    }
}

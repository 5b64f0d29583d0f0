//! `actor logs`: shows an actor's log lines, and new ones as their blocks become final.

use crate::{
    args::HeightArg,
    complete,
    context::Context,
    error::CliError,
    output::{Row, columns, or_dash, short},
};
use clap::Args;
use clap_complete::ArgValueCandidates;
use cowboy_devnet::{
    client::Client,
    types::{ActorLine, ActorLineKind, LogQuery},
};

/// `actor logs`.
#[derive(Debug, Args)]
pub struct Logs {
    /// The actor: a name, its address or enough of its beginning, or latest
    #[arg(add = ArgValueCandidates::new(complete::actors))]
    actor: String,
    /// Maximum number of lines; the last ones are shown
    #[arg(long, value_name = "N", default_value_t = 100, conflicts_with = "from")]
    lines: usize,
    /// All lines from this height on
    #[arg(long, value_name = "HEIGHT")]
    from: Option<HeightArg>,
    /// Continue with new blocks until interrupted
    #[arg(long, short)]
    follow: bool,
}

impl Logs {
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        let client = cx.client()?;
        let mut lines = Vec::new();
        let next = match self.from {
            None => {
                let query = LogQuery { from: None, limit: Some(self.lines) };
                let log = client.actor_log(&self.actor, &query).await?;
                // The devnet returns the newest lines, even if the last block has more than the
                // limit.
                lines.extend(log.lines);
                log.next
            }
            Some(from) => {
                let from = from.height(&client).await?;
                all_from(&client, &self.actor, from, &mut lines).await?
            }
        };
        if !self.follow {
            return cx.ui.list(&lines);
        }
        lines.iter().try_for_each(|line| cx.ui.record(line))?;
        self.follow(cx, &client, next).await
    }

    async fn follow(&self, cx: &Context, client: &Client, mut next: u64) -> Result<(), CliError> {
        let mut blocks = client.follow(Some(next));
        loop {
            let block = blocks.next().await?;
            if block.height < next || (block.transactions == 0 && block.fires == 0) {
                continue;
            }
            let mut lines = Vec::new();
            next = all_from(client, &self.actor, next, &mut lines).await?;
            lines.iter().try_for_each(|line| cx.ui.record(line))?;
        }
    }
}

/// Reads all lines from a height on; returns the height to resume from.
async fn all_from(
    client: &Client,
    actor: &str,
    from: u64,
    lines: &mut Vec<ActorLine>,
) -> Result<u64, CliError> {
    let mut from = from;
    loop {
        let log = client.actor_log(actor, &LogQuery { from: Some(from), limit: None }).await?;
        // A page without lines is the last one, and a page that does not advance would loop for
        // ever.
        let done = log.lines.is_empty() || log.next <= from;
        lines.extend(log.lines);
        from = log.next.max(from);
        if done {
            return Ok(from);
        }
    }
}

impl Row for ActorLine {
    columns! { self;
        let (kind, text) = match self.kind {
            ActorLineKind::Log => ("log", self.text.clone().unwrap_or_default()),
            ActorLineKind::Error => ("error", self.text.clone().unwrap_or_default()),
            ActorLineKind::Event => {
                let data = self.data.as_ref().map(|data| format!(" {data}")).unwrap_or_default();
                ("event", self.name.clone().unwrap_or_default() + &data)
            }
        };
        // Transactions are shown as they are; timers and jobs, whose ids look alike, get a label.
        let timer = self.timer.as_ref().map(|timer| format!("timer {}", short(timer)));
        let job = self.job.as_ref().map(|job| format!("job {}", short(job)));
        let cause = self.transaction.as_ref().map(short).or(timer).or(job);
        ">height" => self.height.to_string(),
        "cause" => or_dash(cause),
        "kind" => kind.to_owned(),
        "text" => text,
    }
    const LEAST: &'static [&'static str] = &["cause"];

    fn id(&self) -> String {
        self.text.clone().or_else(|| self.name.clone()).unwrap_or_default()
    }
}

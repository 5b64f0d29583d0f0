//! `speculation events`: prints events of the components of speculation.

use super::PipelineArg;
use crate::{
    args, complete,
    context::Context,
    error::CliError,
    output::{Row, columns, data, or_dash},
};
use clap_complete::ArgValueCandidates;
use cowboy_devnet::{
    client::Client,
    types::{SpeculationEvent, SpeculationEventQuery, speculation_event_kinds},
};

/// Selects events, and whether to follow.
#[derive(Debug, clap::Args)]
pub struct Events {
    /// Continue with new events until interrupted
    #[arg(long, short)]
    follow: bool,
    /// Only of this pipeline: its number, its name, or latest
    #[arg(long, add = ArgValueCandidates::new(complete::pipelines))]
    pipeline: Option<PipelineArg>,
    /// Only events with this name, such as proof:ready, or of this component, such as proof
    #[arg(long, value_name = "NAME", value_parser = kind)]
    #[arg(add = ArgValueCandidates::new(complete::speculation_event_kinds))]
    kind: Option<String>,
    /// The first event's number [default: the oldest stored; with --follow the next one]
    #[arg(long, value_name = "SEQ")]
    from: Option<u64>,
}

fn kind(text: &str) -> Result<String, String> {
    let all: Vec<_> = speculation_event_kinds().collect();
    args::one_of("event", text, &all).map(str::to_owned)
}

impl Events {
    pub(super) async fn run(self, cx: &Context, client: &Client) -> Result<(), CliError> {
        let pipeline = match self.pipeline {
            Some(pipeline) => Some(pipeline.resolve(client).await?),
            None => None,
        };
        let mut query =
            SpeculationEventQuery { from: self.from, pipeline, kind: self.kind, limit: None };
        if self.follow {
            let mut events = client.follow_speculation(query);
            loop {
                cx.ui.record(&events.next().await?)?;
            }
        }
        let mut all = Vec::new();
        loop {
            let page = client.speculation_events(&query).await?;
            all.extend(page.events);
            // A page that does not advance would be requested for ever.
            if !page.more || query.from.is_some_and(|from| page.next <= from) {
                return cx.ui.list(&all);
            }
            query.from = Some(page.next);
        }
    }
}

impl Row for SpeculationEvent {
    columns! { self;
        ">number" => self.seq.to_string(),
        "at" => self.at.to_string(),
        "event" => self.kind.clone(),
        ">pipeline" => or_dash(self.pipeline),
        "task" => or_dash(self.task.clone()),
        "data" => data(&self.data),
    }
    const LEAST: &'static [&'static str] = &["at", "pipeline"];

    fn id(&self) -> String {
        self.seq.to_string()
    }
}

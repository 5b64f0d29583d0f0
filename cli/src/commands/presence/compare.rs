//! `presence compare`: the effect of the presence filter on draws.

use super::names;
use crate::{
    args::HeightArg,
    complete,
    context::Context,
    error::CliError,
    output::{Document, Row, columns, fields, rows},
};
use clap::Args;
use clap_complete::ArgValueCandidates;
use cowboy_devnet::types::{ComparedDraw, ComparisonQuery, PresenceComparison};
use std::str::FromStr;

/// `presence compare`.
#[derive(Debug, Args)]
pub struct Compare {
    /// The blocks whose draws to compare: 100..150, 100..latest, or one [default: the last 64]
    #[arg(value_name = "A..B")]
    blocks: Option<Blocks>,
    /// Only the draw of this job, in any block: its id, or latest
    #[arg(long, value_name = "ID", conflicts_with = "blocks")]
    #[arg(add = ArgValueCandidates::new(complete::jobs))]
    job: Option<String>,
}

/// A range of blocks, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Blocks {
    first: HeightArg,
    last: HeightArg,
}

impl FromStr for Blocks {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (first, last) = text.split_once("..").unwrap_or((text, text));
        match (first.parse(), last.parse()) {
            (Ok(first), Ok(last)) => Ok(Self { first, last }),
            _ => Err(format!("`{text}` is not a block range: expected 100..150 or 100..latest")),
        }
    }
}

impl Compare {
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        let client = cx.client()?;
        let mut query = ComparisonQuery { job: self.job, ..ComparisonQuery::default() };
        if let Some(Blocks { first, last }) = self.blocks {
            query.from = Some(first.height(&client).await?);
            query.to = Some(last.height(&client).await?);
        }
        cx.ui.document(&client.compare_presence(&query).await?)
    }
}

impl Document for PresenceComparison {
    fn text(&self) -> String {
        let draws = rows(&self.draws);
        let summary = fields(&[
            ("blocks", format!("{} to {}", self.from, self.to)),
            ("draws", format!("{}{}", self.compared, if self.more { " (and more)" } else { "" })),
            ("changed", self.changed.to_string()),
            ("would have waited", self.would_have_waited.to_string()),
        ]);
        format!("{draws}\n\n{summary}")
    }

    fn id(&self) -> String {
        let changed = self.draws.iter().filter(|draw| !draw.same);
        changed.map(|draw| draw.job_id.to_string()).collect::<Vec<_>>().join("\n")
    }
}

impl Row for ComparedDraw {
    columns! { self;
        let chosen = |committee: &[String]| match committee.is_empty() {
            true => "waits".to_owned(),
            false => names(committee),
        };
        ">block" => self.height.to_string(),
        "job" => self.job_id.to_string(),
        "phase" => self.phase.clone(),
        "dropped" => names(&self.dropped),
        "with filter" => chosen(&self.with_filter),
        "without" => chosen(&self.without_filter),
        "outcome" => if self.same { "same" } else { "different" }.to_owned(),
    }
    const LEAST: &'static [&'static str] = &["phase", "dropped"];

    fn id(&self) -> String {
        self.job_id.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_parse() {
        let check = |text: &str, expected: Option<(HeightArg, HeightArg)>| {
            let parsed = text.parse::<Blocks>().ok();
            assert_eq!(parsed.map(|blocks| (blocks.first, blocks.last)), expected, "{text}");
        };
        check("3..5", Some((HeightArg::At(3), HeightArg::At(5))));
        check("3..latest", Some((HeightArg::At(3), HeightArg::Latest)));
        check("7", Some((HeightArg::At(7), HeightArg::At(7))));
        for bad in ["", "..", "3..", "..5", "a..b", "3...5"] {
            check(bad, None);
        }
    }
}

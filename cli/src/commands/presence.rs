//! `presence`: shows P(H) and the votes behind it, and checks that it follows from them.

mod compare;
pub(super) mod feasibility;
pub(super) mod watch;

use self::{compare::Compare, feasibility::Feasibility};
use crate::{
    args::HeightArg,
    commands::trust,
    context::Context,
    error::CliError,
    output::{Document, Row, columns, fields, rows},
};
use clap::{Args, Subcommand};
use cowboy_devnet::{
    types::{Presence as Canonical, Vote, Votes},
    verification::{PresenceCheck, presence},
};
use serde::Serialize;

#[derive(Debug, Subcommand)]
pub enum Presence {
    /// The runners that a block's certificate shows present
    Show(WhichBlock),
    /// The votes in a block's certificate, each with its bitmap
    Votes(WhichBlock),
    /// Show which runners appeared or vanished between two blocks
    Diff {
        /// The earlier block: 120, +10 (from now) or latest
        #[arg(value_name = "A")]
        a: HeightArg,
        /// The later block: 120, +10 (from now) or latest
        #[arg(value_name = "B")]
        b: HeightArg,
    },
    /// Derive presence again from the votes, and check everything that the devnet reports of it
    ///
    /// Blocks and certificates are fetched and verified here, from genesis on. Nothing that the
    /// devnet says is trusted.
    Verify(WhichBlock),
    /// Print runners that appear or vanish, block by block, until interrupted
    ///
    /// There is a line for each block whose certificate shows a change; the first line shows all
    /// present runners.
    Watch,
    /// Compare draws with and without the presence filter
    ///
    /// In phase shadow the filter drops no runner: WITH FILTER is the draw that it would have
    /// allowed. In the other phases the filter counts: WITHOUT is the draw if it had dropped no
    /// runner. Each job has one draw here, its last; effects of another choice on later draws are
    /// left out.
    Compare(Compare),
    /// Show the limits of presence: how often a runner is present, and how many liars can deceive
    ///
    /// PRESENT is how often a runner is present that is connected to all validators of its subset,
    /// if all are up and every set of votes that a certificate can have is equally likely. TO
    /// FABRICATE is the number of dishonest validators that can show a runner present that no
    /// honest one sees, TO HIDE the number that can show that connected runner absent, in the block
    /// that suits them best; 0 means that chance can. No devnet is needed.
    Feasibility(Feasibility),
}

/// The block that a command is about.
#[derive(Debug, Args)]
pub struct WhichBlock {
    /// The block: 120, +10 (from now) or latest
    #[arg(value_name = "HEIGHT", default_value = "latest")]
    at: HeightArg,
}

impl Presence {
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        match self {
            Self::Feasibility(command) => command.run(cx),
            Self::Compare(command) => command.run(cx).await,
            Self::Watch => watch::run(cx, &cx.client()?).await,
            Self::Show(WhichBlock { at }) => {
                let client = cx.client()?;
                let at = at.resolve(&client).await?;
                cx.ui.document(&client.presence(at).await?)
            }
            Self::Votes(WhichBlock { at }) => {
                let client = cx.client()?;
                let at = at.resolve(&client).await?;
                cx.ui.document(&client.votes(at).await?)
            }
            Self::Diff { a, b } => {
                let client = cx.client()?;
                let a = client.presence(a.resolve(&client).await?).await?;
                let b = client.presence(b.resolve(&client).await?).await?;
                cx.ui.document(&Diff::between(&a, &b))
            }
            Self::Verify(WhichBlock { at }) => {
                let (root, client) = trust::root(cx)?;
                let at = at.resolve(&client).await?;
                let progress = cx.ui.progress("verifying from genesis".to_owned());
                let check = presence::check(&client, &root, at, trust::shown(&progress)).await?;
                drop(progress);
                cx.ui.document(&check)?;
                let what = format!("presence of block {} does not verify", check.height);
                let first = check.mismatches.first().map(|mismatch| mismatch.detail.clone());
                trust::concluded(check.valid, what, first)
            }
        }
    }
}

/// The changes of presence between two blocks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Diff {
    /// The first block.
    a: u64,
    /// The second block.
    b: u64,
    /// Present in both.
    unchanged: Vec<String>,
    /// Present in the second block only.
    appeared: Vec<String>,
    /// Present in the first block only.
    vanished: Vec<String>,
}

impl Diff {
    fn between(a: &Canonical, b: &Canonical) -> Self {
        Self {
            a: a.height,
            b: b.height,
            unchanged: b.present.iter().filter(|name| a.present.contains(name)).cloned().collect(),
            appeared: only(&b.present, &a.present),
            vanished: only(&a.present, &b.present),
        }
    }
}

fn only(these: &[String], those: &[String]) -> Vec<String> {
    these.iter().filter(|name| !those.contains(name)).cloned().collect()
}

fn names(names: &[String]) -> String {
    if names.is_empty() { "-".to_owned() } else { names.join(", ") }
}

impl Document for Diff {
    fn text(&self) -> String {
        fields(&[
            ("blocks", format!("{} to {}", self.a, self.b)),
            ("appeared", names(&self.appeared)),
            ("vanished", names(&self.vanished)),
            ("present in both", names(&self.unchanged)),
        ])
    }

    fn id(&self) -> String {
        signed(&self.appeared, &self.vanished).join("\n")
    }
}

/// Runners that appeared, with a plus, and that vanished, with a minus.
fn signed(appeared: &[String], vanished: &[String]) -> Vec<String> {
    let came = appeared.iter().map(|name| format!("+{name}"));
    let went = vanished.iter().map(|name| format!("-{name}"));
    came.chain(went).collect()
}

impl Document for Canonical {
    fn text(&self) -> String {
        let needed = match self.threshold {
            Some(threshold) => format!("{threshold} of {} votes ({})", self.votes, self.rule),
            None => format!("f + 1 of the runner's own validators' votes ({})", self.rule),
        };
        let absent: Vec<_> = self
            .absent
            .iter()
            .map(|runner| format!("{} ({} votes)", runner.name, runner.present_count))
            .collect();
        fields(&[
            ("block", self.height.to_string()),
            ("certified in", self.embedded_in.to_string()),
            ("needed", needed),
            ("bitmap", format!("{} ({} runners)", self.bitmap, self.registry_len)),
            ("present", names(&self.present)),
            ("absent", names(&absent)),
        ])
    }

    fn id(&self) -> String {
        self.bitmap.to_string()
    }
}

impl Document for Votes {
    fn text(&self) -> String {
        let text = fields(&[
            ("block", self.height.to_string()),
            ("certified in", self.embedded_in.to_string()),
            ("votes", format!("{} of {} validators", self.votes.len(), self.validators)),
            ("quorum", self.quorum.to_string()),
        ]);
        format!("{text}\n\n{}", rows(&self.votes))
    }

    fn id(&self) -> String {
        self.votes.iter().map(|vote| vote.validator.clone()).collect::<Vec<_>>().join("\n")
    }
}

impl Row for Vote {
    columns! { self;
        "validator" => self.validator.clone(),
        ">bits" => self.bit_length.to_string(),
        "bitmap" => self.bytes.to_string(),
        "present" => names(&self.present),
    }
    const LEAST: &'static [&'static str] = &["bits", "bitmap"];

    fn id(&self) -> String {
        self.validator.clone()
    }
}

impl Document for PresenceCheck {
    fn text(&self) -> String {
        let verdict = |holds: bool| if holds { "valid" } else { "INVALID" }.to_owned();
        let details: Vec<_> = self.mismatches.iter().map(|m| m.detail.as_str()).collect();
        let mut lines = vec![
            ("block", self.height.to_string()),
            ("presence", verdict(self.valid)),
            ("certificate", verdict(self.certificate_valid)),
            ("recomputed", self.recomputed.to_string()),
            ("stored", self.stored.to_string()),
            ("replayed", format!("{} blocks", self.replayed)),
            ("trusted", trust::trusted(&self.trusted)),
        ];
        if !details.is_empty() {
            lines.push(("mismatches", details.join("\n")));
        }
        fields(&lines)
    }

    fn id(&self) -> String {
        self.valid.to_string()
    }
}

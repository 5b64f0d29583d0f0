//! `chain verify`: checks a proof in a file, or a range of blocks.

use crate::{
    args::HeightArg,
    commands::{proof::Verify, trust},
    context::Context,
    error::{CliError, Exit},
    output::{Document, fields},
};
use cowboy_devnet::{
    client::{BlockAt, Client},
    verification::{BlocksCheck, blocks},
};

/// Verifies blocks if `file` reads as a range and no file has that name, else a proof.
pub async fn run(cx: &Context, verify: Verify) -> Result<(), CliError> {
    let Some((from, to)) = verify.blocks()? else { return verify.run(cx, false) };
    let (root, client) = trust::root(cx)?;
    let head = client.head().await?.height;
    let (from, to) = (height(from, &client, head).await?, height(to, &client, head).await?);
    if from > to {
        let what = format!("{from}..{to} is not a block range: it ends before it begins");
        return Err(CliError::new(Exit::Usage, what));
    }
    if to > head {
        let what = format!("block {to} is not final yet; the head is {head}");
        return Err(CliError::new(Exit::NotFound, what)
            .hint(format!("wait for it: cowboyctl chain wait {to}")));
    }
    let progress = cx.ui.progress("verifying from genesis".to_owned());
    let report = blocks::check(&client, &root, (from, to), trust::shown(&progress)).await?;
    drop(progress);
    cx.ui.document(&report)?;
    let what = format!("blocks {from} to {to} do not verify");
    trust::concluded(report.valid, what, report.mismatches.first().cloned())
}

async fn height(at: HeightArg, client: &Client, head: u64) -> Result<u64, CliError> {
    match at.resolve(client).await? {
        BlockAt::Height(height) => Ok(height),
        BlockAt::Latest => Ok(head),
    }
}

impl Document for BlocksCheck {
    fn text(&self) -> String {
        let committees: Vec<_> = self
            .committees
            .iter()
            .map(|set| format!("{} from block {}", set.validators.len(), set.from))
            .collect();
        let mut lines = vec![
            ("blocks", format!("{} to {}", self.from, self.to)),
            ("verdict", if self.valid { "valid" } else { "INVALID" }.to_owned()),
            ("verified", format!("up to block {}, {}", self.verified, self.hash)),
            ("state root", self.state_root.to_string()),
            ("transactions", self.transactions.to_string()),
            ("certificates", self.certificates.to_string()),
            ("validators", committees.join(", ")),
            ("replayed", format!("{} blocks, {} signatures", self.replayed, self.signatures)),
            ("trusted", trust::trusted(&self.trusted)),
        ];
        if !self.mismatches.is_empty() {
            lines.push(("mismatches", self.mismatches.join("\n")));
        }
        fields(&lines)
    }

    fn id(&self) -> String {
        self.valid.to_string()
    }
}

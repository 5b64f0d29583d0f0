//! `speculation verify`: checks the proof that completed a task.

use super::PipelineArg;
use crate::{
    commands::trust,
    context::Context,
    error::CliError,
    output::{Document, bytes, fields, or_dash, table},
};
use cowboy_devnet::verification::{TaskCheck, task};

pub(super) async fn run(cx: &Context, pipeline: PipelineArg, name: &str) -> Result<(), CliError> {
    let (root, client) = trust::root(cx)?;
    let number = pipeline.resolve(&client).await?;
    let progress = cx.ui.progress("verifying from genesis".to_owned());
    let check = task::check(&client, &root, (number, name), trust::shown(&progress)).await?;
    drop(progress);
    cx.ui.document(&check)?;
    let first = check.checks.iter().find(|check| !check.holds);
    let first = first.map(|first| format!("{}: {}", first.check, first.detail));
    let what = format!("the proof of task `{name}` of pipeline {number} does not verify");
    trust::concluded(check.valid, what, first)
}

impl Document for TaskCheck {
    fn text(&self) -> String {
        let proof = self.proof.as_ref();
        let proof =
            proof.map(|proof| format!("{} of {}", bytes(proof.0.0.len() as u64), self.generator));
        let lines = fields(&[
            ("task", format!("{} of pipeline {}", self.task, self.pipeline)),
            ("verdict", if self.valid { "valid" } else { "INVALID" }.to_owned()),
            ("id", self.task_id.to_string()),
            ("transaction", format!("{} in block {}", self.transaction, self.height)),
            ("agent", self.agent.to_string()),
            ("inputs", or_dash(self.inputs.as_ref())),
            ("constraint hash", or_dash(self.constraint_hash.as_ref())),
            ("commitment", or_dash(self.output_commitment.as_ref())),
            ("proof", or_dash(proof)),
            ("key", self.key.to_string()),
            ("replayed", format!("{} blocks", self.replayed)),
            ("trusted", trust::trusted(&self.trusted)),
        ]);
        let rows = self.checks.iter().map(|check| {
            let verdict = if check.holds { "holds" } else { "FAILS" };
            vec![check.check.clone(), verdict.to_owned(), check.detail.clone()]
        });
        lines + "\n\n" + &table(&["check", "verdict", "detail"], rows)
    }

    fn id(&self) -> String {
        self.valid.to_string()
    }
}

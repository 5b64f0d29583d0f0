//! `speculation submit`: reads the file, reports what is wrong with it, and waits for the end.

use super::graph::{Graph, tree};
use crate::{
    args,
    context::{Context, Deadline},
    error::{CliError, Exit},
    output::{
        Document, fields, millis,
        pipeline::{counted, one_line},
    },
};
use clap::Args;
use cowboy_devnet::types::{
    Pipeline, PipelineAccepted, PipelineRequest, PipelineStatus, PipelineSummary, TaskStatus,
};
use serde::Serialize;
use std::{
    ops::ControlFlow,
    path::{Path, PathBuf},
    time::Duration,
};

/// Maximum length of a file in bytes: the API's limit for a body.
const INPUT_LIMIT: u64 = 2 << 20;

/// Maximum number of tasks that a progress line names, for each status.
const NAMED: usize = 4;

/// `speculation submit`.
#[derive(Debug, Args)]
pub struct Submit {
    /// A pipeline in YAML or JSON; - for standard input
    file: PathBuf,
    /// A name for it, instead of the file's
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Wait until every task is final
    #[arg(long)]
    wait: bool,
    /// Maximum time to wait
    #[arg(long, value_parser = args::duration, value_name = "DURATION", default_value = "5m")]
    timeout: Duration,
}

impl Submit {
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        let mut request = read(&self.file)?;
        if let Some(name) = self.name {
            request.name = name;
        }
        let client = cx.client()?;
        let deadline = Deadline::after(self.timeout);
        let accepted = client.submit_pipeline(&request).await?;
        let number = accepted.pipeline;
        if !self.wait {
            cx.ui.document(&accepted)?;
            cx.ui.note(&format!(
                "see its progress: cowboyctl speculation graph {number}; how long each task takes: \
                 cowboyctl speculation timeline {number}"
            ));
            return Ok(());
        }
        let look = async || {
            let pipeline = client.pipeline(number).await?;
            Ok(match pipeline.summary.status {
                PipelineStatus::Running => ControlFlow::Continue(state(&pipeline)),
                _ => ControlFlow::Break(pipeline),
            })
        };
        let awaited = format!("pipeline {number}");
        let pipeline = deadline.until(cx.ui, &client, &awaited, look).await?;
        let closing = closing(&pipeline.summary);
        let ended = EndedPipeline { pipeline: &pipeline };
        cx.ui.drawing(&ended, |columns| format!("{}\n\n{closing}", tree(&pipeline, columns)))?;
        succeeded(&pipeline)
    }
}

pub fn read(file: &Path) -> Result<PipelineRequest, CliError> {
    let bytes = args::input(file, INPUT_LIMIT)?;
    let text = args::text(file, bytes)?;
    let refused = |problem: String| {
        CliError::yaml(Exit::Usage, &args::shown(file), &text, &problem)
            .hint("this is not a pipeline; its fields are listed in docs/speculation.md")
    };
    let pipeline: PipelineRequest =
        serde_yaml::from_str(&text).map_err(|error| refused(error.to_string()))?;
    pipeline.clone().check().map_err(|error| refused(error.to_string()))?;
    Ok(pipeline)
}

fn state(pipeline: &Pipeline) -> String {
    let mut parts = vec![counted(&pipeline.summary)];
    for status in TaskStatus::ALL {
        if status.is_final() && *status != TaskStatus::Failed {
            continue;
        }
        let of: Vec<_> = pipeline.graph.iter().filter(|task| task.status == *status).collect();
        let mut names: Vec<_> = of.iter().take(NAMED).map(|task| task.task.clone()).collect();
        if of.len() > NAMED {
            names.push(format!("and {} more", of.len() - NAMED));
        }
        if !names.is_empty() {
            parts.push(format!("{status}: {}", names.join(", ")));
        }
    }
    parts.join("; ")
}

/// Its duration, compared with the synchronous pipeline.
pub fn closing(summary: &PipelineSummary) -> String {
    let elapsed = millis(summary.elapsed_ms);
    match (summary.status, summary.synchronous_ms) {
        (PipelineStatus::Completed, Some(synchronous)) => {
            format!("fully confirmed in {elapsed}, synchronously {}", millis(synchronous))
        }
        (PipelineStatus::Completed, None) => format!("fully confirmed in {elapsed}"),
        (status, _) => format!("{status} after {elapsed}, {}", counted(summary)),
    }
}

/// Fails unless all of the pipeline is confirmed.
pub fn succeeded(pipeline: &Pipeline) -> Result<(), CliError> {
    let PipelineSummary { pipeline: number, status, .. } = pipeline.summary;
    if status == PipelineStatus::Completed {
        return Ok(());
    }
    let failed = pipeline.graph.iter().find(|task| task.status == TaskStatus::Failed);
    let why = match failed {
        Some(task) => {
            let reason = task.reason.as_deref().unwrap_or("no reason is given");
            format!("task {}: {}", task.task, one_line(reason))
        }
        None => counted(&pipeline.summary),
    };
    let what = format!("pipeline {number} ended as {status}: {why}");
    Err(CliError::failed(what).hint(format!(
        "see why: cowboyctl speculation show {number}; what went with it: cowboyctl speculation \
         rollbacks --pipeline {number}"
    )))
}

/// A pipeline that was waited for: programs get the API's whole answer.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct EndedPipeline<'a> {
    pipeline: &'a Pipeline,
}

impl Document for EndedPipeline<'_> {
    fn text(&self) -> String {
        let graph = Graph::of(self.pipeline).text();
        format!("{graph}\n\n{}", closing(&self.pipeline.summary))
    }

    fn id(&self) -> String {
        self.pipeline.summary.pipeline.to_string()
    }
}

impl Document for PipelineAccepted {
    fn text(&self) -> String {
        fields(&[
            ("pipeline", self.pipeline.to_string()),
            ("name", self.name.clone()),
            ("tasks", self.tasks.to_string()),
        ])
    }

    fn id(&self) -> String {
        self.pipeline.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::{super::graph::samples, *};
    use std::{env, fs};

    #[test]
    fn a_wait_says_who_is_where() {
        let mut pipeline = samples::statuses();
        assert_eq!(
            state(&pipeline),
            "1 of 9 confirmed, 3 undone; waiting: waits; running: runs; proving: is-proved; \
             proved: has-proof; submitted: is-submitted; failed: failed"
        );
        for task in &mut pipeline.graph {
            task.status = TaskStatus::Running;
        }
        pipeline.summary = samples::summary(PipelineStatus::Running, &pipeline.graph);
        assert_eq!(
            state(&pipeline),
            "0 of 9 confirmed; running: waits, runs, is-proved, has-proof, and 5 more"
        );
    }

    #[test]
    fn an_end_is_told_with_the_synchronous_time() {
        let five = samples::chain(5);
        assert_eq!(closing(&five.summary), "fully confirmed in 15.5 s, synchronously 37.5 s");
        assert_eq!(succeeded(&five), Ok(()));
        let failed = samples::statuses();
        let error = succeeded(&failed).unwrap_err();
        assert_eq!(error.exit, Exit::Failed);
        insta::assert_snapshot!(error, @r"
        pipeline 3 ended as failed: task failed: proof_failed: the chain refused the proof
          see why: cowboyctl speculation show 3; what went with it: cowboyctl speculation rollbacks --pipeline 3
        ");
        assert_eq!(closing(&failed.summary), "failed after 1 m 1 s, 1 of 9 confirmed, 3 undone");
    }

    /// Every example pipeline is valid.
    #[test]
    fn pipelines_of_the_examples_hold() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/speculation");
        let mut names = Vec::new();
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "yaml") {
                let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
                assert_eq!(read(&path).unwrap().name, name);
                names.push(name);
            }
        }
        names.sort();
        assert_eq!(names, ["branches", "diamond", "faults", "five"]);
    }
}

//! Execution of a runner's jobs.

pub use cowboy_host::process::TaskProgress;

use crate::executor::{
    Executor, ExecutorError, Task, TaskLimits, command, ethereum, http, llm, mcp,
};
use commonware_runtime::Clock;
use cowboy_engine::{
    job::spec::{CommandDelivery, JobSpec, Work},
    primitives::{codec::to_vec, keccak256},
};
use std::{convert::Infallible, fmt::Display, time::Duration};
use tokio::sync::oneshot;

/// Cancels a piece of work when the other half is used or dropped.
pub type WorkCancelled = oneshot::Receiver<()>;

/// Executes jobs, any number of them concurrently.
pub trait Worker: Send + Sync + 'static {
    type Error: Display + Send;

    /// Does the work of `spec` within its bounds and returns the result, of at most
    /// `max_return_bytes`. Calls `started` when the work itself begins, and `progress` whenever
    /// there is some. Ends within a second of being cancelled. Leaves nothing behind after that or
    /// when the future is dropped.
    fn work(
        &self,
        spec: &JobSpec,
        cancelled: WorkCancelled,
        started: impl FnOnce() + Send,
        progress: impl Fn(TaskProgress) + Send + Sync,
    ) -> impl Future<Output = Result<Vec<u8>, Self::Error>> + Send;
}

impl Worker for Executor {
    type Error = ExecutorError;

    async fn work(
        &self,
        spec: &JobSpec,
        cancelled: WorkCancelled,
        started: impl FnOnce() + Send,
        progress: impl Fn(TaskProgress) + Send + Sync,
    ) -> Result<Vec<u8>, ExecutorError> {
        let limits = TaskLimits {
            max_return_bytes: spec.bounds.max_return_bytes as usize,
            timeout: Duration::from_millis(spec.bounds.expected_execution_ms),
            max_memory_mb: Some(spec.bounds.max_memory_mb.into()),
        };
        self.run(&task(&spec.work), &limits, cancelled, |_| started(), progress).await
    }
}

fn task(work: &Work) -> Task {
    match work {
        Work::Llm(work) => Task::Llm(llm::LlmRequest {
            model: work.model.clone(),
            messages: work
                .messages
                .iter()
                .map(|message| (message.role.clone(), message.content.clone()))
                .collect(),
            max_tokens: work.max_tokens,
            temperature_milli: work.temperature_milli,
            seed: work.seed,
            embedding_model: work.embedding_model.clone(),
            response_schema: work.response_schema.clone(),
        }),
        Work::Http(work) => Task::Http(http::HttpRequest {
            method: work.method.clone(),
            url: work.url.clone(),
            headers: work.headers.clone(),
            body: work.body.clone().unwrap_or_default(),
            pointer: work.pointer.clone(),
        }),
        Work::Mcp(work) => Task::Mcp(mcp::McpRequest {
            server: work.server.clone(),
            tool: work.tool.clone(),
            arguments: work.arguments.clone(),
        }),
        Work::EthSend(work) => Task::EthSend(ethereum::EthereumRequest {
            transaction: work.transaction.clone(),
            confirmations: work.confirmations,
        }),
        Work::Custom(work) => {
            let command = command::Command {
                program: work.program.clone(),
                args: work.args.clone(),
                env: work.env.iter().cloned().collect(),
                stdin: work.stdin.clone().unwrap_or_default(),
            };
            match work.delivery {
                None => Task::Command(command),
                Some(CommandDelivery::Lease) => Task::Pooled(command),
            }
        }
    }
}

/// Simulated work, because no command can run in the simulator: after `delay` the result is the
/// hash of the request.
pub struct Pretended<E> {
    pub clock: E,
    pub delay: Duration,
}

impl<E: Clock> Worker for Pretended<E> {
    type Error = Infallible;

    async fn work(
        &self,
        spec: &JobSpec,
        cancelled: WorkCancelled,
        started: impl FnOnce() + Send,
        _: impl Fn(TaskProgress) + Send + Sync,
    ) -> Result<Vec<u8>, Infallible> {
        started();
        let result = keccak256(&[&to_vec(spec)]).0.to_vec();
        tokio::select! {
            biased;
            // The result is no longer wanted.
            _ = cancelled => {}
            () = self.clock.sleep(self.delay) => {}
        }
        Ok(result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cowboy_engine::job::spec::{LlmMessage, LlmWork};

    #[test]
    fn a_question_is_asked_as_the_job_has_it() {
        let work = Work::Llm(LlmWork {
            model: "small".to_owned(),
            messages: vec![LlmMessage { role: "user".to_owned(), content: "hi".to_owned() }],
            max_tokens: Some(3),
            temperature_milli: Some(700),
            seed: Some(9),
            embedding_model: Some("embedder".to_owned()),
            response_schema: Some("{}".to_owned()),
        });
        let expected = llm::LlmRequest {
            model: "small".to_owned(),
            messages: vec![("user".to_owned(), "hi".to_owned())],
            max_tokens: Some(3),
            temperature_milli: Some(700),
            seed: Some(9),
            embedding_model: Some("embedder".to_owned()),
            response_schema: Some("{}".to_owned()),
        };
        assert_eq!(task(&work), Task::Llm(expected));
    }
}

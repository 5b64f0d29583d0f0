//! A client's requests about speculation: pipelines, their tasks, and the devnet's agent.

use super::{Client, ClientError, EventStream, malformed};
use crate::api::types::{
    ConfigureRequest, OfPipelineQuery, Pipeline, PipelineAccepted, PipelineQuery, PipelineRequest,
    PipelineSummary, RetryRequest, Rollback, SpeculationEvent, SpeculationEventPage,
    SpeculationEventQuery, SpeculationOption, SpeculationStatus, SpeculativeCommitment,
    SpeculativeProof, TaskDetail, TasksCancelled, TasksRetried,
};

impl Client {
    /// The state of speculation.
    pub async fn speculation(&self) -> Result<SpeculationStatus, ClientError> {
        self.get(&["speculation"], &()).await
    }

    /// Submits a pipeline.
    pub async fn submit_pipeline(
        &self,
        pipeline: &PipelineRequest,
    ) -> Result<PipelineAccepted, ClientError> {
        self.post(&["speculation", "pipelines"], pipeline).await
    }

    /// Pipelines, newest first.
    pub async fn pipelines(
        &self,
        query: &PipelineQuery,
    ) -> Result<Vec<PipelineSummary>, ClientError> {
        self.get(&["speculation", "pipelines"], query).await
    }

    /// A pipeline and its graph.
    pub async fn pipeline(&self, pipeline: u64) -> Result<Pipeline, ClientError> {
        self.get(&["speculation", "pipelines", &pipeline.to_string()], &()).await
    }

    /// Cancels every task of a pipeline that is not final.
    pub async fn cancel_pipeline(&self, pipeline: u64) -> Result<TasksCancelled, ClientError> {
        self.post(&["speculation", "pipelines", &pipeline.to_string(), "cancel"], &()).await
    }

    /// Retries tasks of a pipeline that failed or were rolled back.
    pub async fn retry_tasks(
        &self,
        pipeline: u64,
        request: &RetryRequest,
    ) -> Result<TasksRetried, ClientError> {
        self.post(&["speculation", "pipelines", &pipeline.to_string(), "retry"], request).await
    }

    /// A task of a pipeline, with its output.
    pub async fn task(&self, pipeline: u64, task: &str) -> Result<TaskDetail, ClientError> {
        self.get(&["speculation", "tasks", &pipeline.to_string(), task], &()).await
    }

    /// Cancels a task, and those that depend on it.
    pub async fn cancel_task(
        &self,
        pipeline: u64,
        task: &str,
    ) -> Result<TasksCancelled, ClientError> {
        self.post(&["speculation", "tasks", &pipeline.to_string(), task, "cancel"], &()).await
    }

    /// Commitments to outputs.
    pub async fn commitments(
        &self,
        query: &OfPipelineQuery,
    ) -> Result<Vec<SpeculativeCommitment>, ClientError> {
        self.get(&["speculation", "commitments"], query).await
    }

    /// Proofs that are being made or have been made.
    pub async fn proofs(
        &self,
        query: &OfPipelineQuery,
    ) -> Result<Vec<SpeculativeProof>, ClientError> {
        self.get(&["speculation", "proofs"], query).await
    }

    /// Rollbacks that were carried out, newest first.
    pub async fn rollbacks(&self, query: &OfPipelineQuery) -> Result<Vec<Rollback>, ClientError> {
        self.get(&["speculation", "rollbacks"], query).await
    }

    /// A page of events from the components of speculation, oldest first.
    pub async fn speculation_events(
        &self,
        query: &SpeculationEventQuery,
    ) -> Result<SpeculationEventPage, ClientError> {
        self.get(&["speculation", "events"], query).await
    }

    /// Events from the components as they happen, from the number in the query or from now on.
    pub fn follow_speculation(
        &self,
        query: SpeculationEventQuery,
    ) -> EventStream<SpeculationEvent> {
        EventStream::new(self.clone(), query)
    }

    /// Every option of speculation.
    pub async fn speculation_options(&self) -> Result<Vec<SpeculationOption>, ClientError> {
        self.get(&["speculation", "config"], &()).await
    }

    /// Changes options of speculation, all of them or none; returns every option after the change.
    pub async fn configure_speculation(
        &self,
        request: &ConfigureRequest,
    ) -> Result<Vec<SpeculationOption>, ClientError> {
        self.post(&["speculation", "config"], request).await
    }

    /// The metrics as OpenMetrics text.
    pub async fn metrics(&self) -> Result<String, ClientError> {
        let path = ["metrics"];
        let request = self.http.get(self.url(&path)).timeout(self.timeout);
        let body = self.answered(&path, request).await?;
        String::from_utf8(body).map_err(|error| malformed(&path, &error))
    }
}

//! The panes' questions to a devnet, its answers, and its other news.

use super::{
    lease::{LastClient, LeaseJob, Leases},
    log::{self, LogPiece, LogPosition},
};
use cowboy_devnet::{
    api::types::{
        ActorQuery, ActorSummary, Block, BlockNotice, Explanation, ExplanationQuery, Fairness,
        HashText, Job, JobQuery, JobSummary, LaneBlock, LaneQuery, MruRecord, OfPipelineQuery,
        Parameters, Pipeline, PipelineQuery, PipelineSummary, Presence, Rollback, Runner,
        SpeculationStatus, Status, TaskDetail, Timer, TimerQuery, TimerQueue, TimerSummary,
        Validator, Votes,
    },
    client::{BlockAt, Client, ClientError},
    home::DevnetHome,
};
use serde::{Deserialize, Serialize};

/// The source of answers.
#[derive(Debug, Clone)]
pub struct Source {
    pub home: DevnetHome,
    pub client: Client,
    pub lease_server: LastClient,
}

/// A table of questions: the question with its parameters, the type of the answer, and the request.
macro_rules! asks {
    ($source:ident: $(
        $(#[$doc:meta])*
        $name:ident $(($($field:ident: $kind:ty),+))? -> $answer:ty = $request:expr;
    )+) => {
        /// A question to a devnet.
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Ask { $($(#[$doc])* $name $(($($kind),+))?,)+ }

        /// The answer to the [`Ask`] of the same name.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Answer { $($(#[$doc])* $name($answer),)+ }

        impl Source {
            pub async fn ask(&self, ask: &Ask) -> Result<Answer, ClientError> {
                let $source = self;
                Ok(match ask.clone() {
                    $(Ask::$name $(($($field),+))? => Answer::$name($request.await?),)+
                })
            }
        }
    };
}

asks! { source:
    /// The devnet at a glance.
    Status -> Status = source.client.status();
    /// Basefees, limits, the threshold rule.
    Parameters -> Parameters = source.client.parameters();
    /// The validators with their connections.
    Validators -> Vec<Validator> = source.client.validators();
    /// A block, by height.
    Block(height: u64) -> Block = source.client.block(BlockAt::Height(height));
    /// The presence that a block's certificate shows, by height.
    Presence(height: u64) -> Presence = source.client.presence(BlockAt::Height(height));
    /// The votes in a block's certificate, by height.
    Votes(height: u64) -> Votes = source.client.votes(BlockAt::Height(height));
    Runners -> Vec<Runner> = source.client.runners();
    /// A runner, by name.
    Runner(name: String) -> Runner = source.client.runner(&name);
    /// The calendar queue, tier by tier.
    TimerQueue -> TimerQueue = source.client.timer_queue();
    /// The timer lane in the last 120 blocks.
    Lane -> Vec<LaneBlock> =
        source.client.timer_fees(&LaneQuery { from: None, limit: Some(120) });
    /// The owners that the next block's lane favours.
    Fairness -> Fairness = source.client.timer_fairness();
    /// Timers: 200 that wait, and the latest ends.
    Timers -> Vec<TimerSummary> = source.client.timers(&TimerQuery {
        all: Some(true),
        limit: Some(200),
        ..TimerQuery::default()
    });
    /// A timer, by id.
    Timer(id: String) -> Timer = source.client.timer(&id);
    /// The newest 200 jobs.
    Jobs -> Vec<JobSummary> =
        source.client.jobs(&JobQuery { limit: Some(200), ..JobQuery::default() });
    /// A job, by id.
    Job(id: String) -> Job = source.client.job(&id);
    /// The last draw of a job's runners, by the job's id.
    Explanation(id: String) -> Explanation =
        source.client.explain(&id, &ExplanationQuery::default());
    /// Every record of most recently used runners.
    Mru -> Vec<MruRecord> = source.client.mru_records();
    /// The speculation agent at a glance.
    Speculation -> SpeculationStatus = source.client.speculation();
    /// The newest pipelines.
    Pipelines -> Vec<PipelineSummary> = source.client.pipelines(&PipelineQuery::default());
    /// A pipeline and its tasks, by number.
    Pipeline(number: u64) -> Pipeline = source.client.pipeline(number);
    /// A task, by its pipeline's number and its own name.
    Task(pipeline: u64, task: String) -> TaskDetail = source.client.task(pipeline, &task);
    /// The newest rollbacks.
    Rollbacks -> Vec<Rollback> = source.client.rollbacks(&OfPipelineQuery::default());
    /// The lines after this position in the devnet's log.
    Log(after: LogPosition) -> LogPiece = log::read(&source.home, after);
    /// The newest 1,000 actors.
    Actors -> Vec<ActorSummary> =
        source.client.actors(&ActorQuery { limit: Some(1_000), ..ActorQuery::default() });
    /// The lease server's status, newest runs and jobs.
    Leases -> Leases = source.leases();
    /// A job of the lease server with the end of its log, by id.
    LeaseJob(id: String) -> LeaseJob = source.lease_job(&id);
}

impl Ask {
    /// Whether the answer may change without a block, so that it is asked even if the devnet does
    /// not answer.
    pub const fn is_apart(&self) -> bool {
        matches!(self, Self::Log(_))
    }
}

/// A piece of news about a devnet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum News {
    /// It answers, for the first time or again.
    Linked {
        devnet: String,
        /// The hash of its genesis block, which identifies the chain.
        genesis: HashText,
        height: u64,
    },
    /// It no longer answers.
    Lost {
        /// The reason, on one line.
        reason: String,
    },
    /// A block is final.
    Block(BlockNotice),
    Answer(Ask, Box<Answer>),
    /// It refused a question.
    Refused(Ask, String),
}

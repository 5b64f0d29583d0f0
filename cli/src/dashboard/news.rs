//! The panes' questions to a devnet, its answers, and its other news.

use super::{
    lease::{LeaseJob, LeaseServer, Leases},
    log::{self, LogPiece, LogPosition},
};
use cowboy_devnet::{
    client::{BlockAt, Client, ClientError},
    home::DevnetHome,
    types::{
        Account, Actor, ActorLog, ActorQuery, ActorSummary, AddressText, Block, BlockNotice,
        DUE_PAGE_LIMIT, DueQuery, DueTimers, Explanation, ExplanationQuery, Fairness, HashText,
        Job, JobQuery, JobSummary, LaneBlock, LaneQuery, LogQuery, MruRecord, OfPipelineQuery,
        Parameters, Pipeline, PipelineQuery, PipelineSummary, Presence, Rollback, Runner,
        SpeculationStatus, Status, StoreQuery, TaskDetail, Timer, TimerQuery, TimerQueue,
        TimerSummary, Transaction, Validator, Votes,
    },
};
use serde::{Deserialize, Serialize};

/// Maximum number of actors to request, and of an actor's entries, lines and timers.
const ACTORS: usize = 1_000;
pub const ENTRIES: usize = 100;
const LINES: usize = 50;
const TIMERS: usize = 50;

#[derive(Debug, Clone)]
pub struct Source {
    pub home: DevnetHome,
    pub client: Client,
    pub lease_server: LeaseServer,
}

/// A table of questions: the question with its parameters, the type of the answer, and the request.
macro_rules! asks {
    ($source:ident: $(
        $(#[$doc:meta])*
        $name:ident $(($($field:ident: $kind:ty),+))? -> $answer:ty = $request:expr;
    )+) => {
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
    Status -> Status = source.client.status();
    /// Basefees, limits, the threshold rule.
    Parameters -> Parameters = source.client.parameters();
    Validators -> Vec<Validator> = source.client.validators();
    Block(height: u64) -> Block = source.client.block(BlockAt::Height(height));
    Transaction(hash: HashText) -> Transaction = source.client.transaction(&hash.to_string());
    Presence(height: u64) -> Presence = source.client.presence(BlockAt::Height(height));
    Votes(height: u64) -> Votes = source.client.votes(BlockAt::Height(height));
    Runners -> Vec<Runner> = source.client.runners();
    Runner(name: String) -> Runner = source.client.runner(&name);
    /// The devnet's own accounts first.
    Accounts -> Vec<Account> = source.client.accounts();
    /// The newest actors.
    Actors -> Vec<ActorSummary> = source.client.actors(&ActorQuery {
        limit: Some(ACTORS),
        ..ActorQuery::default()
    });
    /// An actor with the beginning of its store.
    Actor(address: AddressText) -> Actor =
        source.client.actor(&address.to_string(), &StoreQuery {
            limit: Some(ENTRIES),
            ..StoreQuery::default()
        });
    /// The last lines of an actor's log.
    ActorLog(address: AddressText) -> ActorLog =
        source.client.actor_log(&address.to_string(), &LogQuery {
            limit: Some(LINES),
            ..LogQuery::default()
        });
    /// Timers of an actor: those that wait, and the latest ends.
    ActorTimers(address: AddressText) -> Vec<TimerSummary> = source.client.timers(&TimerQuery {
        actor: Some(address.to_string()),
        all: Some(true),
        limit: Some(TIMERS),
        ..TimerQuery::default()
    });
    TimerQueue -> TimerQueue = source.client.timer_queue();
    /// The timer lane in the last 120 blocks.
    Lane -> Vec<LaneBlock> =
        source.client.timer_fees(&LaneQuery { from: None, limit: Some(120) });
    Fairness -> Fairness = source.client.timer_fairness();
    /// Timers: 200 that wait, and the latest ends.
    Timers -> Vec<TimerSummary> = source.client.timers(&TimerQuery {
        all: Some(true),
        limit: Some(200),
        ..TimerQuery::default()
    });
    /// The due timers in the order of the next block's lane.
    Due -> DueTimers = source.client.timers_due(&DueQuery {
        limit: Some(DUE_PAGE_LIMIT),
        ..DueQuery::default()
    });
    Timer(id: String) -> Timer = source.client.timer(&id);
    /// The newest 200 jobs.
    Jobs -> Vec<JobSummary> =
        source.client.jobs(&JobQuery { limit: Some(200), ..JobQuery::default() });
    Job(id: String) -> Job = source.client.job(&id);
    Explanation(id: String) -> Explanation =
        source.client.explain(&id, &ExplanationQuery::default());
    Mru -> Vec<MruRecord> = source.client.mru_records();
    Speculation -> SpeculationStatus = source.client.speculation();
    Pipelines -> Vec<PipelineSummary> = source.client.pipelines(&PipelineQuery::default());
    Pipeline(number: u64) -> Pipeline = source.client.pipeline(number);
    Task(pipeline: u64, task: String) -> TaskDetail = source.client.task(pipeline, &task);
    Rollbacks -> Vec<Rollback> = source.client.rollbacks(&OfPipelineQuery::default());
    /// The lines after this position in the devnet's log.
    Log(after: LogPosition) -> LogPiece = log::read(&source.home, after);
    Leases -> Leases = source.lease_server.leases(&source.home);
    LeaseJob(id: String) -> LeaseJob = source.lease_server.job(&source.home, &id);
}

impl Ask {
    /// Whether the answer may change without a block, so that it is asked even if the devnet does
    /// not answer.
    pub const fn is_apart(&self) -> bool {
        matches!(self, Self::Log(_) | Self::Status)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum News {
    /// The devnet answers, for the first time or again.
    Linked {
        devnet: String,
        /// The hash of its genesis block, which identifies the chain.
        genesis: HashText,
        height: u64,
    },
    Lost {
        /// The reason, on one line.
        reason: String,
    },
    Block(BlockNotice),
    Answer(Ask, Box<Answer>),
    Refused(Ask, String),
}

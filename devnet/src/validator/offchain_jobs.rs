//! OffchainJobs: work that an agent in the process asks of a connected runner, unknown to the
//! chain.

use cowboy_engine::{
    primitives::{Address, Hash, Height},
    session::DispatchOutcome,
};
use std::collections::BTreeMap;
use tokio::sync::oneshot;

/// The maximum number of open errands at a validator.
pub const MAX_ERRANDS: usize = 4_096;

/// The outcome of an errand: the result's bytes or an error.
pub type ErrandReport = Result<Vec<u8>, ErrandError>;

/// Why an errand has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ErrandError {
    #[error("the runner is not connected")]
    NotConnected,
    #[error("the runner's connection was lost")]
    Lost,
    #[error("the runner's connection accepts no more work now")]
    Busy,
    #[error("{MAX_ERRANDS} errands are open")]
    TooMany,
    #[error("an errand with this id is open")]
    AlreadyOut,
    #[error("the runner did not take it: {}", told(*.0))]
    Refused(DispatchOutcome),
    /// The runner worked on it and reports that there is no result.
    #[error("{0}")]
    Failed(String),
    #[error("no result in time")]
    Late,
    #[error("it was called back")]
    CalledBack,
}

impl ErrandError {
    /// Whether the same work could succeed elsewhere or later, because the work itself did not
    /// fail.
    pub const fn is_about_the_runner(&self) -> bool {
        !matches!(self, Self::Failed(_) | Self::CalledBack)
    }
}

fn told(outcome: DispatchOutcome) -> String {
    match outcome {
        DispatchOutcome::Success => "it accepted".to_owned(),
        DispatchOutcome::Duplicate => "it has it already".to_owned(),
        DispatchOutcome::SoftFailure(Some(reason)) => reason.to_string(),
        DispatchOutcome::SoftFailure(None) => "its answer was invalid".to_owned(),
        DispatchOutcome::HardFailure => "it did not answer in time".to_owned(),
    }
}

/// The open errands, by id.
#[derive(Debug, Default)]
pub struct OffchainJobs(BTreeMap<Hash, SentErrand>);

#[derive(Debug)]
struct SentErrand {
    runner: Address,
    deadline: Height,
    awaiting: oneshot::Sender<ErrandReport>,
}

impl OffchainJobs {
    /// The runner stops after the block `deadline`.
    pub fn open(
        &mut self,
        id: Hash,
        runner: Address,
        deadline: Height,
    ) -> Result<oneshot::Receiver<ErrandReport>, ErrandError> {
        if self.0.contains_key(&id) {
            return Err(ErrandError::AlreadyOut);
        }
        if self.0.len() >= MAX_ERRANDS {
            return Err(ErrandError::TooMany);
        }
        let (awaiting, awaited) = oneshot::channel();
        self.0.insert(id, SentErrand { runner, deadline, awaiting });
        Ok(awaited)
    }

    /// The runner of an errand, and the last block of its deadline.
    pub fn of(&self, id: &Hash) -> Option<(Address, Height)> {
        self.0.get(id).map(|out| (out.runner, out.deadline))
    }

    /// The receiver of the report may have gone.
    pub fn close(&mut self, id: &Hash, runner: &Address, report: ErrandReport) {
        if self.0.get(id).is_some_and(|out| out.runner == *runner)
            && let Some(out) = self.0.remove(id)
        {
            let _ = out.awaiting.send(report);
        }
    }

    /// Ends all errands because the validator has ended.
    pub fn lost_all(&mut self) {
        for out in std::mem::take(&mut self.0).into_values() {
            let _ = out.awaiting.send(Err(ErrandError::Lost));
        }
    }

    /// Ends a runner's errands because its connection has ended.
    pub fn lost(&mut self, runner: &Address) {
        for (_, out) in self.0.extract_if(.., |_, out| out.runner == *runner) {
            let _ = out.awaiting.send(Err(ErrandError::Lost));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Address = Address([1; 20]);
    const TWO: Address = Address([2; 20]);
    const LAST: Height = Height::new(9);

    fn id(n: u8) -> Hash {
        Hash([n; 32])
    }

    #[test]
    fn a_report_goes_to_whoever_sent_the_runner() {
        let mut errands = OffchainJobs::default();
        let mut first = errands.open(id(1), ONE, LAST).unwrap();
        let mut second = errands.open(id(2), TWO, LAST).unwrap();
        assert_eq!(errands.open(id(1), TWO, LAST).map(drop), Err(ErrandError::AlreadyOut));
        // A report from another runner is ignored.
        errands.close(&id(1), &TWO, Ok(b"forged".to_vec()));
        assert!(first.try_recv().is_err());
        errands.close(&id(1), &ONE, Ok(b"done".to_vec()));
        assert_eq!(first.try_recv(), Ok(Ok(b"done".to_vec())));
        errands.lost(&TWO);
        assert_eq!(second.try_recv(), Ok(Err(ErrandError::Lost)));
        assert_eq!((errands.of(&id(1)), errands.of(&id(2))), (None, None));
    }

    #[test]
    fn no_more_than_so_many_are_out() {
        let mut errands = OffchainJobs::default();
        let mut out = Vec::new();
        for n in 0..MAX_ERRANDS {
            let mut id = [0; 32];
            id[..8].copy_from_slice(&(n as u64).to_be_bytes());
            out.push(errands.open(Hash(id), ONE, LAST).unwrap());
        }
        assert_eq!(errands.open(id(9), ONE, LAST).map(drop), Err(ErrandError::TooMany));
        drop(out);
    }
}

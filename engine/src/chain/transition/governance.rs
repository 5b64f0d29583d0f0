//! Decisions of system deployers: the committee, the migration phase (spec connectivity.md §7), and
//! governed parameters of timers, connections and tasks.
//!
//! A proposal in block H is checked together with all pending ones and is then pending itself. At
//! the end of block H, the values pending for H + 1 come into force. When H + 1 begins, an event
//! reports them and they are no longer pending.

use super::{Run, TransactionFailure};
use crate::{
    chain::{
        committee::GenesisValidator,
        event::{
            ConnectivityActivated, ConnectivityProposed, ParameterSet, PhaseChanged,
            TaskTermsActivated, TaskTermsProposed, TimerConfigActivated, TimerConfigProposed,
            TimerPolicyActivated, ValidatorAdded, ValidatorRemoved,
        },
        transaction::{SetParameter, SetPhase, UpdateTimerConfig},
    },
    presence::Migration,
    primitives::{Address, Height},
    timer::{Key, Proposal, ProposedValue, proposals::propose},
};

impl Run<'_> {
    pub(super) fn add_validator(
        &mut self,
        sender: Address,
        validator: &GenesisValidator,
    ) -> Result<(), TransactionFailure> {
        self.check_system(sender)?;
        let (epoch, from) = self.next_epoch();
        self.state.validators.add(epoch, validator.clone())?;
        self.emit(ValidatorAdded { validator: validator.pubkey.address(), epoch, from });
        Ok(())
    }

    pub(super) fn remove_validator(
        &mut self,
        sender: Address,
        validator: Address,
    ) -> Result<(), TransactionFailure> {
        self.check_system(sender)?;
        let (epoch, from) = self.next_epoch();
        self.state.validators.remove(epoch, validator)?;
        self.emit(ValidatorRemoved { validator, epoch, from });
        Ok(())
    }

    /// Sets the phase from the next block on; setting the present phase has no effect. This block's
    /// draws use the parent's phase.
    pub(super) fn set_phase(
        &mut self,
        sender: Address,
        SetPhase { phase }: SetPhase,
    ) -> Result<(), TransactionFailure> {
        self.check_system(sender)?;
        let from = self.state.phase();
        if phase != from {
            let since = self.height().next();
            self.state.migration = Migration { phase, since };
            self.emit(PhaseChanged { from, to: phase });
        }
        Ok(())
    }

    /// The next consensus epoch, and its first height.
    fn next_epoch(&self) -> (u64, Height) {
        let epoch = self.state.epoch_at(self.height()) + 1;
        (epoch, Height::new(epoch * self.state.params.epoch_blocks))
    }

    pub(super) fn activate_proposals(&mut self) {
        let height = self.height();
        let lane = &mut self.state.timers.lane;
        let begun = lane.pending.partition_point(|proposal| proposal.height <= height);
        let (policy, since) = (lane.policy, lane.policy_since);
        for Proposal { by, settings, .. } in lane.pending.drain(..begun).collect::<Vec<_>>() {
            let Split { timers, connectivity, tasks } = Split::of(settings);
            if !timers.is_empty() {
                self.emit(TimerConfigActivated { by, settings: timers });
            }
            if !connectivity.is_empty() {
                self.emit(ConnectivityActivated { by, settings: connectivity });
            }
            if !tasks.is_empty() {
                self.emit(TaskTermsActivated { by, settings: tasks });
            }
        }
        if since == height {
            self.emit(TimerPolicyActivated { policy });
        }
    }

    pub(super) fn update_timer_config(
        &mut self,
        sender: Address,
        UpdateTimerConfig { settings, height }: &UpdateTimerConfig,
    ) -> Result<(), TransactionFailure> {
        self.check_system(sender)?;
        let height = height.unwrap_or_else(|| self.height().next());
        self.propose(sender, height, settings.clone())?;
        let Split { timers, connectivity, tasks } = Split::of(settings.clone());
        if !timers.is_empty() {
            self.emit(TimerConfigProposed { by: sender, height, settings: timers });
        }
        if !connectivity.is_empty() {
            let settings = connectivity;
            self.emit(ConnectivityProposed { by: sender, height, settings });
        }
        if !tasks.is_empty() {
            self.emit(TaskTermsProposed { by: sender, height, settings: tasks });
        }
        Ok(())
    }

    pub(super) fn set_parameter(
        &mut self,
        sender: Address,
        SetParameter { key, value }: &SetParameter,
    ) -> Result<(), TransactionFailure> {
        self.check_system(sender)?;
        let next = self.height().next();
        let lane = &self.state.timers.lane;
        let pending = lane.pending.first().filter(|proposal| proposal.height == next);
        let settings = pending.map_or(&[][..], |proposal| &proposal.settings);
        let before = self.state.governed().with(settings)?.get(key).unwrap_or_default();
        let setting = ProposedValue { key: key.clone(), value: *value };
        self.propose(sender, next, vec![setting])?;
        self.emit(ParameterSet { key: key.clone(), before, after: *value });
        Ok(())
    }

    fn propose(
        &mut self,
        by: Address,
        height: Height,
        settings: Vec<ProposedValue>,
    ) -> Result<(), TransactionFailure> {
        let next = self.height().next();
        let now = self.state.governed();
        let lane = &mut self.state.timers.lane;
        let proposal = Proposal { height, by: Some(by), settings };
        lane.pending = propose(now, &lane.pending, next, &proposal)?;
        Ok(())
    }

    pub(super) fn check_system(&self, sender: Address) -> Result<(), TransactionFailure> {
        match self.parent.params.system_deployers.contains(&sender) {
            true => Ok(()),
            false => Err(TransactionFailure::NotSystemDeployer(sender)),
        }
    }
}

struct Split {
    /// Timers and fees.
    timers: Vec<ProposedValue>,
    connectivity: Vec<ProposedValue>,
    tasks: Vec<ProposedValue>,
}

impl Split {
    fn of(settings: Vec<ProposedValue>) -> Self {
        let about = |subject| move |setting: &ProposedValue| setting.key.starts_with(subject);
        let (connectivity, rest): (Vec<_>, Vec<_>) =
            settings.into_iter().partition(about(Key::CONNECTIVITY));
        let (tasks, timers) = rest.into_iter().partition(about(Key::TASKS));
        Self { timers, connectivity, tasks }
    }
}

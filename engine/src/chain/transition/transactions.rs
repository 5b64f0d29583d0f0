//! One transaction: what it changes, and its receipt.

use super::{
    MAX_ERROR_BYTES, Run, TransactionFailure,
    actors::{self, PendingCall},
    shortened,
    tasks::TaskError,
};
use crate::{
    actor::Budget,
    chain::{
        actors::{Actor, Language},
        event::{
            EntitlementGranted, EntitlementRevoked, OwnershipTransferred, RunnerDeregistered,
            RunnerRegistered, RunnerUpdated, Transferred,
        },
        receipt::{ActorReceipt, Receipt, ReceiptStatus},
        transaction::{
            AdvanceTime, CallActor, CancelTimer, DeployActor, ExtendTimer, ForgetMark, Payload,
            RegisterRunner, ReturnToMark, SignedTransaction, Transfer, TransferOwnership,
        },
    },
    primitives::{Address, Cells, Cycles, Wei},
    timer::Ids,
};

/// Why an actor is not handed over. The text begins with the variant's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum OwnershipError {
    #[error("UnknownActor: no actor {0}")]
    Unknown(Address),
    #[error("NotPython: actor {0} is in Starlark, whose owner is always its deployer")]
    NotPython(Address),
    #[error("Unauthorized: only {owner} may hand actor {actor} over")]
    NotYours { actor: Address, owner: Address },
}

/// In whose name a payload is executed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Author {
    pub account: Address,
    /// The nonce that actors, jobs and timers get their addresses and ids from.
    pub nonce: u64,
    /// The most that timers scheduled by it may take from the account.
    pub allowance: Wei,
    /// Cycles and cells for actors.
    pub budget: Budget,
}

/// The budget of a deployment or call: its limits minus the intrinsic part.
fn budget(signed: &SignedTransaction) -> Budget {
    let (cycles, cells) = signed.least();
    let transaction = &signed.transaction;
    Budget {
        cycles: transaction.cycle_limit.get().saturating_sub(cycles.get()),
        cells: transaction.cell_limit.get().saturating_sub(cells.get()),
    }
}

impl Run<'_> {
    pub(super) fn transaction(&mut self, signed: &SignedTransaction) -> Receipt {
        let hash = signed.hash();
        self.transaction = Some(hash);
        let mut receipt = Receipt {
            transaction: hash,
            sender: Address::default(),
            acted_as: None,
            status: ReceiptStatus::Success,
            cycles: Cycles::ZERO,
            unused: Cycles::ZERO,
            cells: Cells::ZERO,
            burned: Wei::ZERO,
            tip: Wei::ZERO,
            actor: None,
        };
        let reserved = match self.reserve(signed, &mut receipt) {
            Ok(reserved) => reserved,
            Err(reason) => {
                receipt.status = ReceiptStatus::Skipped(reason.to_string());
                return receipt;
            }
        };
        let (before, events, results) = (self.state.clone(), self.events.len(), self.results.len());
        let author = Author {
            account: receipt.sender,
            nonce: signed.transaction.nonce,
            allowance: signed.transaction.timer_allowance.unwrap_or(Wei::ZERO),
            budget: budget(signed),
        };
        if let Err(refusal) = self.apply(&signed.transaction.payload, author, &mut receipt) {
            self.state = before;
            self.events.truncate(events);
            self.results.truncate(results);
            if let TransactionFailure::Task(TaskError::BadProof(_)) = &refusal
                && let Payload::CompleteTask(complete) = &signed.transaction.payload
            {
                self.refuse_proof(complete.task_id);
            }
            receipt.status = ReceiptStatus::Failed(shortened(refusal.to_string(), MAX_ERROR_BYTES));
        }
        let (mut cycles, mut cells) = signed.least();
        if let Some(ActorReceipt { usage, .. }) = &receipt.actor {
            cycles = cycles.saturating_add(Cycles::new(usage.cycles()));
            cells = cells.saturating_add(Cells::new(usage.cells));
        }
        self.pay(&reserved, cycles, cells, &mut receipt);
        receipt
    }

    /// Executes a payload. On failure the state is left half changed.
    pub(super) fn apply(
        &mut self,
        payload: &Payload,
        author: Author,
        receipt: &mut Receipt,
    ) -> Result<(), TransactionFailure> {
        let Author { account: sender, nonce, allowance, budget } = author;
        match payload {
            Payload::Transfer(Transfer { to, amount }) => {
                self.state.debit(sender, *amount)?;
                self.state.credit(*to, *amount)?;
                self.emit(Transferred { from: sender, to: *to, amount: *amount });
            }
            Payload::DeployActor(DeployActor { source }) => {
                let height = self.height();
                let deployer = (sender, nonce);
                let done = actors::deploy(&mut self.state, height, deployer, source, budget);
                self.told(done, receipt)?;
            }
            Payload::DeployPython(deployment) => {
                let place = self.place(receipt.transaction, Some(sender));
                let ids = Ids::of_transaction(nonce, receipt.transaction, allowance);
                let deployer = (sender, nonce);
                let at = (&place, &ids);
                let done = actors::deploy_python(&mut self.state, at, deployer, deployment, budget);
                self.told(done, receipt)?;
            }
            Payload::TransferOwnership(transfer) => self.transfer_ownership(sender, *transfer)?,
            Payload::CallActor(CallActor { actor, handler, payload, value }) => {
                let place = self.place(receipt.transaction, Some(sender));
                let ids = Ids::of_transaction(nonce, receipt.transaction, allowance);
                let (to, value) = (*actor, *value);
                let (handler, payload) = (handler.clone(), payload.clone());
                let first = PendingCall { sender, to, handler, payload, value };
                let done = actors::call(&mut self.state, (&place, &ids), first, budget);
                self.told(done, receipt)?;
            }
            Payload::ScheduleTimer(request) => {
                let ids = Ids::of_transaction(nonce, receipt.transaction, allowance);
                self.schedule_timer(sender, request, &ids)?;
            }
            Payload::CancelTimer(CancelTimer { timer_id }) => {
                self.cancel_timer(sender, timer_id)?;
            }
            Payload::ExtendTimer(ExtendTimer { timer_id, expires_at }) => {
                self.extend_timer(sender, timer_id, *expires_at)?;
            }
            Payload::SysCancelTimer(CancelTimer { timer_id }) => {
                self.system_cancel_timer(sender, timer_id)?;
            }
            Payload::SysUpdateTimerConfig(update) => self.update_timer_config(sender, update)?,
            Payload::SysExtendTimer(ExtendTimer { timer_id, expires_at }) => {
                self.system_extend_timer(sender, timer_id, *expires_at)?;
            }
            Payload::SetParameter(set) => self.set_parameter(sender, set)?,
            Payload::AddValidator(validator) => self.add_validator(sender, validator)?,
            Payload::RemoveValidator(remove) => self.remove_validator(sender, remove.validator)?,
            Payload::SetPhase(set) => self.set_phase(sender, *set)?,
            Payload::RegisterRunner(register) => self.register(sender, register)?,
            Payload::UpdateRunner(update) => {
                let (locked, stake) = self.state.registry.update(
                    &sender,
                    update.capabilities.clone(),
                    update.price_per_second,
                    update.stake,
                )?;
                self.state.debit(sender, stake.saturating_sub(locked))?;
                self.emit(RunnerUpdated { runner: sender, stake });
            }
            Payload::DeregisterRunner => {
                let stake = self.state.registry.deregister(&sender)?;
                self.state.credit(sender, stake)?;
                self.emit(RunnerDeregistered { runner: sender, stake });
            }
            Payload::RunnerHeartbeat => {
                let height = self.height();
                self.state.registry.heartbeat(&sender, height)?;
            }
            Payload::GrantEntitlement(grant) => {
                let (pool, runner) = (grant.pool.clone(), grant.runner);
                self.state.entitlements.grant(sender, &pool, runner, grant.valid_until)?;
                self.emit(EntitlementGranted { pool, runner });
            }
            Payload::RevokeEntitlement(revoke) => {
                let (pool, runner) = (revoke.pool.clone(), revoke.runner);
                self.state.entitlements.revoke(sender, &pool, runner)?;
                self.emit(EntitlementRevoked { pool, runner });
            }
            Payload::SubmitJob(spec) => self.submit_job(sender, spec, nonce)?,
            Payload::CancelJob(cancel) => self.cancel_job(sender, cancel.job_id)?,
            Payload::CommitResult(commit) => self.commit_result(commit)?,
            Payload::RevealResults(reveals) => self.reveal_results(reveals)?,
            Payload::SubmitResult(result) => self.submit_result(result)?,
            Payload::ReportFailure(report) => self.report_failure(report)?,
            Payload::ReportEquivocation(report) => self.report_equivocation(report)?,
            Payload::SlashRunner(slash) => self.slash_runner(sender, slash)?,
            Payload::CreateTask(create) => self.create_task(sender, create)?,
            Payload::ClaimTask(claim) => self.claim_task(sender, claim)?,
            Payload::CreateCommitment(create) => self.create_commitment(sender, create)?,
            Payload::CompleteTask(complete) => self.complete_task(sender, complete)?,
            Payload::ResolveCommitment(resolve) => self.resolve_commitment(sender, resolve)?,
            Payload::SetBalance(set) => self.set_balance(sender, *set)?,
            Payload::SetCode(set) => self.set_code(author, set, receipt)?,
            Payload::SetState(set) => self.set_state(sender, set)?,
            Payload::ActAs(act) => self.act_as(author, act, receipt)?,
            Payload::AdvanceTime(AdvanceTime { ms }) => self.advance_time(sender, *ms)?,
            Payload::MarkState => self.mark_state(sender)?,
            Payload::ReturnToMark(ReturnToMark { mark }) => self.return_to_mark(sender, *mark)?,
            Payload::ForgetMark(ForgetMark { mark }) => self.forget_mark(sender, *mark)?,
        }
        Ok(())
    }

    fn transfer_ownership(
        &mut self,
        sender: Address,
        TransferOwnership { actor: address, owner }: TransferOwnership,
    ) -> Result<(), TransactionFailure> {
        let actor = self.state.actor(&address).ok_or(OwnershipError::Unknown(address))?;
        let code = self.state.code(&actor.code).expect("an actor has code");
        if code.language() != Language::Python {
            return Err(OwnershipError::NotPython(address).into());
        }
        let from = actor.owner();
        if from != sender {
            return Err(OwnershipError::NotYours { actor: address, owner: from }.into());
        }
        let new_owner = (owner != actor.deployer).then_some(owner);
        self.state.actors.insert(address, Actor { new_owner, ..*actor });
        self.emit(OwnershipTransferred { actor: address, from, to: owner });
        Ok(())
    }

    fn register(
        &mut self,
        sender: Address,
        register: &RegisterRunner,
    ) -> Result<(), TransactionFailure> {
        let address = register.pubkey.address();
        if address != sender {
            return Err(TransactionFailure::NotYourKey(address));
        }
        self.state.debit(sender, register.stake)?;
        let height = self.height();
        let runner = self.state.registry.register(
            height,
            register.pubkey.clone(),
            register.stake,
            register.capabilities.clone(),
            register.price_per_second,
        )?;
        let index = self.state.registry.order().len() - 1;
        self.emit(RunnerRegistered { runner, index, stake: register.stake });
        Ok(())
    }
}

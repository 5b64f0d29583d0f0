"""The requests of the control API. Written by generate.py from its OpenAPI document."""

from typing import Any
from urllib.parse import quote

from cowboy_devnet import types

Query = dict[str, object]


def part(value: str | int) -> str:
    """A part of a path."""
    return quote(str(value), safe="")


class Api:
    """A method for each request but event streams; `Client` says how they fail."""

    def _json(self, method: str, path: str, query: Query, body: object = None) -> Any:
        raise NotImplementedError

    def _bytes(self, method: str, path: str, query: Query, body: object = None) -> bytes:
        raise NotImplementedError

    def metrics(self) -> bytes:
        """Metrics of the timer lane, presence and connections, and of speculation where the devnet
        has an agent.
        """
        path = "/metrics"
        answer: bytes = self._bytes("GET", path, {})
        return answer

    def openapi(self) -> dict[str, Any]:
        """This document."""
        path = "/openapi.json"
        answer: dict[str, Any] = self._json("GET", path, {})
        return answer

    def post_runner_heartbeat(
        self,
        runner: str | int,
        body: types.TransactionRequest,
    ) -> types.TransactionAccepted:
        """A runner's heartbeat: a signed `runner_heartbeat` transaction."""
        path = f"/runner/{part(runner)}/heartbeat"
        answer: types.TransactionAccepted = self._json("POST", path, {}, body)
        return answer

    def post_runner_job_commit(
        self,
        runner: str | int,
        body: types.CommitRequest,
    ) -> types.ResultAccepted:
        """A runner's signed commitment, for lack of a connection; 410 in phase sunset."""
        path = f"/runner/{part(runner)}/job_commit"
        answer: types.ResultAccepted = self._json("POST", path, {}, body)
        return answer

    def post_runner_job_failure(
        self,
        runner: str | int,
        body: types.FailureRequest,
    ) -> types.ResultAccepted:
        """A runner's signed report that it cannot do a job; 410 in phase sunset."""
        path = f"/runner/{part(runner)}/job_failure"
        answer: types.ResultAccepted = self._json("POST", path, {}, body)
        return answer

    def post_runner_job_result(
        self,
        runner: str | int,
        body: types.ResultRequest,
    ) -> types.ResultAccepted:
        """A runner's signed result, for lack of a connection; 410 in phase sunset."""
        path = f"/runner/{part(runner)}/job_result"
        answer: types.ResultAccepted = self._json("POST", path, {}, body)
        return answer

    def runner_jobs(self, runner: str | int, *, node: str | None = None) -> types.PolledJobs:
        """The open jobs assigned to a runner that polls; 410 in phase sunset."""
        path = f"/runner/{part(runner)}/jobs"
        query: Query = {"node": node}
        answer: types.PolledJobs = self._json("GET", path, query)
        return answer

    def accounts(self, *, node: str | None = None) -> list[types.Account]:
        """The accounts, the devnet's own first, at most 10,000."""
        path = "/v1/accounts"
        query: Query = {"node": node}
        answer: list[types.Account] = self._json("GET", path, query)
        return answer

    def post_accounts(self, body: types.AccountRequest) -> types.Account:
        """Gives an account a name on this devnet."""
        path = "/v1/accounts"
        answer: types.Account = self._json("POST", path, {}, body)
        return answer

    def account(self, account: str | int, *, node: str | None = None) -> types.Account:
        """An account."""
        path = f"/v1/accounts/{part(account)}"
        query: Query = {"node": node}
        answer: types.Account = self._json("GET", path, query)
        return answer

    def actors(
        self,
        *,
        node: str | None = None,
        deployer: str | None = None,
        limit: int | None = None,
    ) -> list[types.ActorSummary]:
        """Actors, newest first."""
        path = "/v1/actors"
        query: Query = {"node": node, "deployer": deployer, "limit": limit}
        answer: list[types.ActorSummary] = self._json("GET", path, query)
        return answer

    def actor(
        self,
        actor: str | int,
        *,
        node: str | None = None,
        prefix: str | None = None,
        from_: str | None = None,
        limit: int | None = None,
        at: int | None = None,
    ) -> types.Actor:
        """An actor and a page of its store."""
        path = f"/v1/actors/{part(actor)}"
        query: Query = {"node": node, "prefix": prefix, "from": from_, "limit": limit, "at": at}
        answer: types.Actor = self._json("GET", path, query)
        return answer

    def post_actor_dry_run(
        self,
        actor: str | int,
        body: types.DryRunRequest,
        *,
        node: str | None = None,
    ) -> types.DryRun:
        """The effects that a call of an actor would have; changes nothing."""
        path = f"/v1/actors/{part(actor)}/dry-run"
        query: Query = {"node": node}
        answer: types.DryRun = self._json("POST", path, query, body)
        return answer

    def actor_logs(
        self,
        actor: str | int,
        *,
        node: str | None = None,
        from_: int | None = None,
        limit: int | None = None,
    ) -> types.ActorLog:
        """Lines and events from an actor, and the errors of failed calls."""
        path = f"/v1/actors/{part(actor)}/logs"
        query: Query = {"node": node, "from": from_, "limit": limit}
        answer: types.ActorLog = self._json("GET", path, query)
        return answer

    def post_chain_advance(self, body: types.AdvanceRequest) -> types.Advance:
        """Lifts the pace of the chain for a number of blocks."""
        path = "/v1/chain/advance"
        answer: types.Advance = self._json("POST", path, {}, body)
        return answer

    def post_chain_automine(self, body: types.Automine) -> types.Automine:
        """Has transactions get blocks at once, or no longer."""
        path = "/v1/chain/automine"
        answer: types.Automine = self._json("POST", path, {}, body)
        return answer

    def chain_block(self, height: str | int, *, node: str | None = None) -> types.Block:
        """A finalized block."""
        path = f"/v1/chain/blocks/{part(height)}"
        query: Query = {"node": node}
        answer: types.Block = self._json("GET", path, query)
        return answer

    def chain_block_evidence(self, height: str | int, *, node: str | None = None) -> types.Evidence:
        """A final block and its certificate, as bytes and as fields."""
        path = f"/v1/chain/blocks/{part(height)}/evidence"
        query: Query = {"node": node}
        answer: types.Evidence = self._json("GET", path, query)
        return answer

    def chain_burned(self, *, node: str | None = None) -> types.Burned:
        """The wei burned since genesis, by purpose."""
        path = "/v1/chain/burned"
        query: Query = {"node": node}
        answer: types.Burned = self._json("GET", path, query)
        return answer

    def chain_events(
        self,
        *,
        node: str | None = None,
        from_: int | None = None,
        kind: str | None = None,
        limit: int | None = None,
    ) -> types.EventPage:
        """A page of events; blocks are never split."""
        path = "/v1/chain/events"
        query: Query = {"node": node, "from": from_, "kind": kind, "limit": limit}
        answer: types.EventPage = self._json("GET", path, query)
        return answer

    def chain_evidence(
        self,
        *,
        node: str | None = None,
        from_: int | None = None,
        limit: int | None = None,
    ) -> types.EvidencePage:
        """A page of final blocks and their certificates, as bytes."""
        path = "/v1/chain/evidence"
        query: Query = {"node": node, "from": from_, "limit": limit}
        answer: types.EvidencePage = self._json("GET", path, query)
        return answer

    def chain_governance(self, *, node: str | None = None) -> list[types.GovernedParameter]:
        """The governed parameters."""
        path = "/v1/chain/governance"
        query: Query = {"node": node}
        answer: list[types.GovernedParameter] = self._json("GET", path, query)
        return answer

    def chain_head(self, *, node: str | None = None) -> types.Head:
        """The newest finalized and executed block."""
        path = "/v1/chain/head"
        query: Query = {"node": node}
        answer: types.Head = self._json("GET", path, query)
        return answer

    def chain_parameters(self, *, node: str | None = None) -> types.Parameters:
        """The chain's parameters and limits that a signer has to know."""
        path = "/v1/chain/parameters"
        query: Query = {"node": node}
        answer: types.Parameters = self._json("GET", path, query)
        return answer

    def chain_proof(
        self,
        subject: str | int,
        *,
        node: str | None = None,
        key: str | None = None,
        at: int | None = None,
    ) -> types.StateProof:
        """A proof of the state's value under a key, with header and certificate."""
        path = f"/v1/chain/proofs/{part(subject)}"
        query: Query = {"node": node, "key": key, "at": at}
        answer: types.StateProof = self._json("GET", path, query)
        return answer

    def chain_snapshots(self, *, node: str | None = None) -> types.Vec:
        """The states that the chain keeps to return to."""
        path = "/v1/chain/snapshots"
        query: Query = {"node": node}
        answer: types.Vec = self._json("GET", path, query)
        return answer

    def chain_transaction(self, hash: str | int, *, node: str | None = None) -> types.Transaction:
        """A transaction and its receipt."""
        path = f"/v1/chain/transactions/{part(hash)}"
        query: Query = {"node": node}
        answer: types.Transaction = self._json("GET", path, query)
        return answer

    def delete_faults(self) -> list[types.Fault]:
        """Heals every fault."""
        path = "/v1/faults"
        answer: list[types.Fault] = self._json("DELETE", path, {})
        return answer

    def faults(self, *, node: str | None = None) -> list[types.Fault]:
        """The injected faults in force, oldest first."""
        path = "/v1/faults"
        query: Query = {"node": node}
        answer: list[types.Fault] = self._json("GET", path, query)
        return answer

    def post_faults(self, body: types.FaultRequest) -> types.Fault:
        """Injects a fault; one of the same kind at the same place is replaced."""
        path = "/v1/faults"
        answer: types.Fault = self._json("POST", path, {}, body)
        return answer

    def post_faults_orders(self, body: types.FaultOrders) -> list[types.Fault]:
        """Replaces the faults of a node by those that its devnet has."""
        path = "/v1/faults/orders"
        answer: list[types.Fault] = self._json("POST", path, {}, body)
        return answer

    def delete_fault(self, fault: str | int) -> list[types.Fault]:
        """Heals the fault with a number, or the faults of a node."""
        path = f"/v1/faults/{part(fault)}"
        answer: list[types.Fault] = self._json("DELETE", path, {})
        return answer

    def jobs(
        self,
        *,
        node: str | None = None,
        status: types.JobStatus | None = None,
        kind: str | None = None,
        submitter: str | None = None,
        runner: str | None = None,
        limit: int | None = None,
    ) -> list[types.JobSummary]:
        """Jobs, newest first."""
        path = "/v1/jobs"
        query: Query = {
            "node": node,
            "status": status,
            "kind": kind,
            "submitter": submitter,
            "runner": runner,
            "limit": limit,
        }
        answer: list[types.JobSummary] = self._json("GET", path, query)
        return answer

    def job(self, id: str | int, *, node: str | None = None) -> types.Job:
        """A job and its events."""
        path = f"/v1/jobs/{part(id)}"
        query: Query = {"node": node}
        answer: types.Job = self._json("GET", path, query)
        return answer

    def job_dispatches(self, id: str | int, *, node: str | None = None) -> list[types.JobDispatch]:
        """The dispatches of a job by each running validator, and their outcomes."""
        path = f"/v1/jobs/{part(id)}/dispatches"
        query: Query = {"node": node}
        answer: list[types.JobDispatch] = self._json("GET", path, query)
        return answer

    def job_explain(
        self,
        id: str | int,
        *,
        node: str | None = None,
        attempt: int | None = None,
    ) -> types.Explanation:
        """How a job's runners were drawn, or why none were."""
        path = f"/v1/jobs/{part(id)}/explain"
        query: Query = {"node": node, "attempt": attempt}
        answer: types.Explanation = self._json("GET", path, query)
        return answer

    def job_result(self, id: str | int, *, node: str | None = None) -> types.JobResult:
        """A job's verified result."""
        path = f"/v1/jobs/{part(id)}/result"
        query: Query = {"node": node}
        answer: types.JobResult = self._json("GET", path, query)
        return answer

    def machine(self) -> bytes:
        """The component of the machine that runs the chain's actors in Python: 22 MB of
        WebAssembly, which the receiver checks and compiles.
        """
        path = "/v1/machine"
        answer: bytes = self._bytes("GET", path, {})
        return answer

    def mru_records(self, *, node: str | None = None) -> list[types.MruRecord]:
        """The most recently used runners."""
        path = "/v1/mru"
        query: Query = {"node": node}
        answer: list[types.MruRecord] = self._json("GET", path, query)
        return answer

    def mru(
        self,
        submitter: str | int,
        kind: str | int,
        *,
        node: str | None = None,
    ) -> types.MruRecord:
        """A submitter's most recently used runner for a kind of job."""
        path = f"/v1/mru/{part(submitter)}/{part(kind)}"
        query: Query = {"node": node}
        answer: types.MruRecord = self._json("GET", path, query)
        return answer

    def post_names(self, body: types.NameRequest) -> types.NameRequest:
        """Gives an actor, a timer or a job a name on this devnet."""
        path = "/v1/names"
        answer: types.NameRequest = self._json("POST", path, {}, body)
        return answer

    def post_peers(self, body: types.NodePeers) -> types.NodePeers:
        """Tells a node in a process of its own where its chain's validators are."""
        path = "/v1/peers"
        answer: types.NodePeers = self._json("POST", path, {}, body)
        return answer

    def pools(self, *, node: str | None = None) -> list[types.Pool]:
        """Pools of runners."""
        path = "/v1/pools"
        query: Query = {"node": node}
        answer: list[types.Pool] = self._json("GET", path, query)
        return answer

    def pool(self, pool: str | int, *, node: str | None = None) -> types.Pool:
        """A pool and its members."""
        path = f"/v1/pools/{part(pool)}"
        query: Query = {"node": node}
        answer: types.Pool = self._json("GET", path, query)
        return answer

    def presence_compare(
        self,
        *,
        node: str | None = None,
        from_: int | None = None,
        to: int | None = None,
        job: str | None = None,
    ) -> types.PresenceComparison:
        """The choices of draws with and without the presence filter."""
        path = "/v1/presence/compare"
        query: Query = {"node": node, "from": from_, "to": to, "job": job}
        answer: types.PresenceComparison = self._json("GET", path, query)
        return answer

    def presence(self, height: str | int, *, node: str | None = None) -> types.Presence:
        """Canonical presence: the runners that a block's certificate shows as present."""
        path = f"/v1/presence/{part(height)}"
        query: Query = {"node": node}
        answer: types.Presence = self._json("GET", path, query)
        return answer

    def presence_votes(self, height: str | int, *, node: str | None = None) -> types.Votes:
        """The votes in the certificate of a block."""
        path = f"/v1/presence/{part(height)}/votes"
        query: Query = {"node": node}
        answer: types.Votes = self._json("GET", path, query)
        return answer

    def runners(self, *, node: str | None = None) -> list[types.Runner]:
        """The runners, in registry order."""
        path = "/v1/runners"
        query: Query = {"node": node}
        answer: list[types.Runner] = self._json("GET", path, query)
        return answer

    def runner(self, runner: str | int, *, node: str | None = None) -> types.Runner:
        """A registered runner and its connections."""
        path = f"/v1/runners/{part(runner)}"
        query: Query = {"node": node}
        answer: types.Runner = self._json("GET", path, query)
        return answer

    def post_runner_answer(self, runner: str | int, body: types.AnswerRequest) -> types.RunnerLoad:
        """Gives a job that waits at a runner its result by hand."""
        path = f"/v1/runners/{part(runner)}/answer"
        answer: types.RunnerLoad = self._json("POST", path, {}, body)
        return answer

    def runner_backpressure(self, runner: str | int) -> types.RunnerLoad:
        """The capacity for jobs of a runner of the devnet's process."""
        path = f"/v1/runners/{part(runner)}/backpressure"
        answer: types.RunnerLoad = self._json("GET", path, {})
        return answer

    def post_runner_backpressure(
        self,
        runner: str | int,
        body: types.LimitRequest,
    ) -> types.RunnerLoad:
        """Limits the number of jobs that a runner takes at a time; running jobs continue."""
        path = f"/v1/runners/{part(runner)}/backpressure"
        answer: types.RunnerLoad = self._json("POST", path, {}, body)
        return answer

    def post_runner_capabilities(
        self,
        runner: str | int,
        body: types.CapabilitiesRequest,
    ) -> types.RunnerLoad:
        """Withdraws registered abilities of a runner for now, or restores them."""
        path = f"/v1/runners/{part(runner)}/capabilities"
        answer: types.RunnerLoad = self._json("POST", path, {}, body)
        return answer

    def post_runner_pause(self, runner: str | int) -> types.RunnerLoad:
        """Pauses a runner: it takes no new jobs and is not present."""
        path = f"/v1/runners/{part(runner)}/pause"
        answer: types.RunnerLoad = self._json("POST", path, {})
        return answer

    def post_runner_resume(self, runner: str | int) -> types.RunnerLoad:
        """Resumes a paused runner."""
        path = f"/v1/runners/{part(runner)}/resume"
        answer: types.RunnerLoad = self._json("POST", path, {})
        return answer

    def post_runner_start(self, runner: str | int) -> types.RunnerLoad:
        """Starts a stopped runner."""
        path = f"/v1/runners/{part(runner)}/start"
        answer: types.RunnerLoad = self._json("POST", path, {})
        return answer

    def post_runner_stop(self, runner: str | int) -> types.RunnerLoad:
        """Stops a runner: it says goodbye and gives up its jobs."""
        path = f"/v1/runners/{part(runner)}/stop"
        answer: types.RunnerLoad = self._json("POST", path, {})
        return answer

    def post_shutdown(self) -> types.Stopping:
        """Begins to stop the devnet."""
        path = "/v1/shutdown"
        answer: types.Stopping = self._json("POST", path, {})
        return answer

    def post_snapshots(self, body: types.SaveRequest) -> types.Snapshot:
        """Saves the devnet as a snapshot; its validators stop meanwhile and start again."""
        path = "/v1/snapshots"
        answer: types.Snapshot = self._json("POST", path, {}, body)
        return answer

    def speculation(self) -> types.SpeculationStatus:
        """The state of speculation."""
        path = "/v1/speculation"
        answer: types.SpeculationStatus = self._json("GET", path, {})
        return answer

    def speculation_commitments(
        self,
        *,
        pipeline: int | None = None,
        limit: int | None = None,
    ) -> list[types.SpeculativeCommitment]:
        """Commitments to outputs, the newest pipelines' first."""
        path = "/v1/speculation/commitments"
        query: Query = {"pipeline": pipeline, "limit": limit}
        answer: list[types.SpeculativeCommitment] = self._json("GET", path, query)
        return answer

    def speculation_config(self) -> list[types.SpeculationOption]:
        """Every option of speculation."""
        path = "/v1/speculation/config"
        answer: list[types.SpeculationOption] = self._json("GET", path, {})
        return answer

    def post_speculation_config(
        self,
        body: types.ConfigureRequest,
    ) -> list[types.SpeculationOption]:
        """Changes options until the devnet stops: all of them, or none."""
        path = "/v1/speculation/config"
        answer: list[types.SpeculationOption] = self._json("POST", path, {}, body)
        return answer

    def speculation_events(
        self,
        *,
        from_: int | None = None,
        pipeline: int | None = None,
        kind: str | None = None,
        limit: int | None = None,
    ) -> types.SpeculationEventPage:
        """A page of the kept events from the components of speculation, oldest first."""
        path = "/v1/speculation/events"
        query: Query = {"from": from_, "pipeline": pipeline, "kind": kind, "limit": limit}
        answer: types.SpeculationEventPage = self._json("GET", path, query)
        return answer

    def speculation_pipelines(
        self,
        *,
        status: types.PipelineStatus | None = None,
        name: str | None = None,
        limit: int | None = None,
    ) -> list[types.PipelineSummary]:
        """Pipelines, newest first."""
        path = "/v1/speculation/pipelines"
        query: Query = {"status": status, "name": name, "limit": limit}
        answer: list[types.PipelineSummary] = self._json("GET", path, query)
        return answer

    def post_speculation_pipelines(self, body: types.PipelineRequest) -> types.PipelineAccepted:
        """Has the agent run a pipeline."""
        path = "/v1/speculation/pipelines"
        answer: types.PipelineAccepted = self._json("POST", path, {}, body)
        return answer

    def speculation_pipeline(self, pipeline: str | int) -> types.Pipeline:
        """A pipeline with its graph."""
        path = f"/v1/speculation/pipelines/{part(pipeline)}"
        answer: types.Pipeline = self._json("GET", path, {})
        return answer

    def post_speculation_pipeline_cancel(self, pipeline: str | int) -> types.TasksCancelled:
        """Cancels the tasks of a pipeline that are not final."""
        path = f"/v1/speculation/pipelines/{part(pipeline)}/cancel"
        answer: types.TasksCancelled = self._json("POST", path, {})
        return answer

    def post_speculation_pipeline_retry(
        self,
        pipeline: str | int,
        body: types.RetryRequest,
    ) -> types.TasksRetried:
        """Retries tasks that failed or were rolled back."""
        path = f"/v1/speculation/pipelines/{part(pipeline)}/retry"
        answer: types.TasksRetried = self._json("POST", path, {}, body)
        return answer

    def speculation_proofs(
        self,
        *,
        pipeline: int | None = None,
        limit: int | None = None,
    ) -> list[types.SpeculativeProof]:
        """Proofs, the newest pipelines' first."""
        path = "/v1/speculation/proofs"
        query: Query = {"pipeline": pipeline, "limit": limit}
        answer: list[types.SpeculativeProof] = self._json("GET", path, query)
        return answer

    def speculation_rollbacks(
        self,
        *,
        pipeline: int | None = None,
        limit: int | None = None,
    ) -> list[types.Rollback]:
        """Rollbacks, newest first."""
        path = "/v1/speculation/rollbacks"
        query: Query = {"pipeline": pipeline, "limit": limit}
        answer: list[types.Rollback] = self._json("GET", path, query)
        return answer

    def speculation_task(self, pipeline: str | int, task: str | int) -> types.TaskDetail:
        """A task with its output."""
        path = f"/v1/speculation/tasks/{part(pipeline)}/{part(task)}"
        answer: types.TaskDetail = self._json("GET", path, {})
        return answer

    def post_speculation_task_cancel(
        self,
        pipeline: str | int,
        task: str | int,
    ) -> types.TasksCancelled:
        """Cancels a task with those that depend on it."""
        path = f"/v1/speculation/tasks/{part(pipeline)}/{part(task)}/cancel"
        answer: types.TasksCancelled = self._json("POST", path, {})
        return answer

    def status(self, *, node: str | None = None) -> types.Status:
        """The devnet at a glance."""
        path = "/v1/status"
        query: Query = {"node": node}
        answer: types.Status = self._json("GET", path, query)
        return answer

    def tasks(
        self,
        *,
        node: str | None = None,
        status: types.ChainTaskStatus | None = None,
        creator: str | None = None,
        agent: str | None = None,
        depth: int | None = None,
        committed: bool | None = None,
        commitment: str | None = None,
        requires: str | None = None,
        deadline_by: int | None = None,
        limit: int | None = None,
    ) -> list[types.ChainTask]:
        """Tasks on the chain, newest first."""
        path = "/v1/tasks"
        query: Query = {
            "node": node,
            "status": status,
            "creator": creator,
            "agent": agent,
            "depth": depth,
            "committed": committed,
            "commitment": commitment,
            "requires": requires,
            "deadline_by": deadline_by,
            "limit": limit,
        }
        answer: list[types.ChainTask] = self._json("GET", path, query)
        return answer

    def task(self, task: str | int, *, node: str | None = None) -> types.ChainTask:
        """A task on the chain."""
        path = f"/v1/tasks/{part(task)}"
        query: Query = {"node": node}
        answer: types.ChainTask = self._json("GET", path, query)
        return answer

    def timers(
        self,
        *,
        node: str | None = None,
        actor: str | None = None,
        payer: str | None = None,
        status: types.TimerStatus | None = None,
        all: bool | None = None,
        limit: int | None = None,
    ) -> list[types.TimerSummary]:
        """Timers: those that wait by height, then those that have ended, newest first."""
        path = "/v1/timers"
        query: Query = {
            "node": node,
            "actor": actor,
            "payer": payer,
            "status": status,
            "all": all,
            "limit": limit,
        }
        answer: list[types.TimerSummary] = self._json("GET", path, query)
        return answer

    def timers_due(
        self,
        *,
        node: str | None = None,
        actor: str | None = None,
        offset: int | None = None,
        limit: int | None = None,
    ) -> types.DueTimers:
        """The timers due in the next block: rank, weight, reasons for waiting."""
        path = "/v1/timers/due"
        query: Query = {"node": node, "actor": actor, "offset": offset, "limit": limit}
        answer: types.DueTimers = self._json("GET", path, query)
        return answer

    def timers_fairness(self, *, node: str | None = None) -> types.Fairness:
        """The weights of accounts in the next block's timer lane."""
        path = "/v1/timers/fairness"
        query: Query = {"node": node}
        answer: types.Fairness = self._json("GET", path, query)
        return answer

    def timers_fees(
        self,
        *,
        node: str | None = None,
        from_: int | None = None,
        limit: int | None = None,
    ) -> list[types.LaneBlock]:
        """Reports of blocks' timer lanes, oldest first."""
        path = "/v1/timers/fees"
        query: Query = {"node": node, "from": from_, "limit": limit}
        answer: list[types.LaneBlock] = self._json("GET", path, query)
        return answer

    def timers_queue(self, *, node: str | None = None) -> types.TimerQueue:
        """The calendar queue, tier by tier."""
        path = "/v1/timers/queue"
        query: Query = {"node": node}
        answer: types.TimerQueue = self._json("GET", path, query)
        return answer

    def timer(self, timer: str | int, *, node: str | None = None) -> types.Timer:
        """A timer, its outcome, and the reasons why it did not fire."""
        path = f"/v1/timers/{part(timer)}"
        query: Query = {"node": node}
        answer: types.Timer = self._json("GET", path, query)
        return answer

    def timer_bid(self, timer: str | int, *, node: str | None = None) -> types.TimerQuote:
        """The bid of a timer's agent for the next block, and the timer's rank with it."""
        path = f"/v1/timers/{part(timer)}/bid"
        query: Query = {"node": node}
        answer: types.TimerQuote = self._json("GET", path, query)
        return answer

    def post_transactions(
        self,
        body: types.TransactionRequest,
        *,
        node: str | None = None,
    ) -> types.TransactionAccepted:
        """Submits a signed transaction to the mempools of all validators, or of one."""
        path = "/v1/transactions"
        query: Query = {"node": node}
        answer: types.TransactionAccepted = self._json("POST", path, query, body)
        return answer

    def validators(self, *, node: str | None = None) -> list[types.Validator]:
        """The validators, in the order in which votes number them."""
        path = "/v1/validators"
        query: Query = {"node": node}
        answer: list[types.Validator] = self._json("GET", path, query)
        return answer

    def post_validators(self, body: types.JoinRequest) -> types.Validator:
        """Starts a validator that follows the chain, and votes once it is in the committee."""
        path = "/v1/validators"
        answer: types.Validator = self._json("POST", path, {}, body)
        return answer

    def validator(self, validator: str | int, *, node: str | None = None) -> types.Validator:
        """A validator, whether it runs or not."""
        path = f"/v1/validators/{part(validator)}"
        query: Query = {"node": node}
        answer: types.Validator = self._json("GET", path, query)
        return answer

    def post_validator_leave(self, validator: str | int) -> types.Left:
        """Stops and removes a validator that has left the committee."""
        path = f"/v1/validators/{part(validator)}/leave"
        answer: types.Left = self._json("POST", path, {})
        return answer

    def validator_links(
        self,
        validator: str | int,
        *,
        node: str | None = None,
    ) -> list[types.ConnectedRunner]:
        """A running validator's connections to runners, as it sees them."""
        path = f"/v1/validators/{part(validator)}/links"
        query: Query = {"node": node}
        answer: list[types.ConnectedRunner] = self._json("GET", path, query)
        return answer

    def post_validator_resync(self, validator: str | int) -> types.Validator:
        """Restarts a validator, running or not, without its stored chain."""
        path = f"/v1/validators/{part(validator)}/resync"
        answer: types.Validator = self._json("POST", path, {})
        return answer

    def post_validator_start(self, validator: str | int) -> types.Validator:
        """Starts a stopped validator."""
        path = f"/v1/validators/{part(validator)}/start"
        answer: types.Validator = self._json("POST", path, {})
        return answer

    def post_validator_stop(self, validator: str | int) -> types.Validator:
        """Stops a running validator."""
        path = f"/v1/validators/{part(validator)}/stop"
        answer: types.Validator = self._json("POST", path, {})
        return answer

    def post_validator_upgrade(
        self,
        validator: str | int,
        body: types.UpgradeRequest,
    ) -> types.Validator:
        """Lets a validator's own process run another program."""
        path = f"/v1/validators/{part(validator)}/upgrade"
        answer: types.Validator = self._json("POST", path, {}, body)
        return answer

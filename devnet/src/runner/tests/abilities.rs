//! Suspended abilities of runners: which validators are told, and what happens to jobs that need
//! them.

use super::*;
use crate::api::steer::SteerError;
use cowboy_engine::{
    chain::transaction::GrantEntitlement,
    presence::view::{Label, MAX_WITHDRAWN},
    primitives::Address,
    registry::Ability,
};

fn custom() -> BTreeSet<Ability> {
    [Ability::Kind(JobKind::Custom)].into()
}

fn none() -> BTreeSet<Ability> {
    BTreeSet::new()
}

impl Net {
    /// The abilities that each validator of its subset knows the runner to have.
    fn told(&self, runner: &str) -> Vec<Vec<String>> {
        let address = key(runner).address();
        let nodes = self.nodes.iter().flat_map(|node| node.gateway.connected());
        let of = nodes.filter(|connected| connected.runner == address);
        of.map(|connected| connected.withdrawn.iter().map(ToString::to_string).collect()).collect()
    }

    /// The reasons that runners reported for not doing a job.
    fn reasons(&self, job_id: &Hash) -> Vec<(Address, String)> {
        let reported = &self.state.job(job_id).unwrap().attempt.reported;
        reported.iter().map(|said| (said.runner, said.reason.clone())).collect()
    }
}

#[test]
fn what_is_withdrawn_from_the_start_is_told_and_done_by_others() {
    run(1, async |context| {
        let mut net = Net::new(context, SHORT, &genesis(4, 2));
        let config = RunnerConfig { withdrawn: custom(), ..net.config("runner-0") };
        let unwilling = net.start_with(config, NO_TIME);
        let _other = net.start("runner-1", NO_TIME);
        net.blocks(4).await;
        assert_eq!(net.told("runner-0"), vec![vec!["custom"]; 3]);
        assert_eq!(net.told("runner-1"), vec![Vec::<String>::new(); 3]);
        let (mine, theirs) = (key("runner-0").address(), key("runner-1").address());
        let mut rejected = 0;
        for _ in 0..8 {
            let job_id = net.submit(spec(50));
            let JobStatus::Verified(_, outcome) = net.until_over(&job_id).await else { panic!() };
            assert_eq!(outcome.runner, theirs);
            for (runner, reason) in net.reasons(&job_id) {
                assert_eq!(runner, mine);
                assert_eq!(reason, "the runner rejected the job: unsupported_kind");
                rejected += 1;
            }
        }
        assert!(rejected > 0, "no job was drawn on it");

        // The runner is not present while a job needs the ability; it is present while none does.
        for node in &net.nodes {
            node.gateway.needed([Label::Capability("http".to_owned())].into());
        }
        assert_eq!(net.seen("runner-0").iter().filter(|seen| **seen).count(), 3);
        for node in &net.nodes {
            node.gateway.needed([Label::Capability("custom".to_owned())].into());
        }
        assert_eq!(net.seen("runner-0"), [false; 4]);
        unwilling.change(&custom(), &none()).unwrap();
        net.block().await;
        assert_eq!(net.told("runner-0"), vec![Vec::<String>::new(); 3]);
        assert_eq!(net.seen("runner-0").iter().filter(|seen| **seen).count(), 3);
        let mut done = BTreeSet::new();
        while !done.contains(&mine) {
            let job_id = net.submit(spec(50));
            let JobStatus::Verified(_, outcome) = net.until_over(&job_id).await else { panic!() };
            done.insert(outcome.runner);
            assert!(net.state.height() < Height::new(500), "it is not drawn again");
        }
    });
}

#[test]
fn a_validator_that_comes_back_is_told_again() {
    run(1, async |context| {
        let mut net = Net::new(context, SHORT, &genesis(1, 1));
        let runner = net.start("runner-0", NO_TIME);
        net.blocks(4).await;
        assert_eq!(net.told("runner-0"), [[""; 0]]);
        let withdrawn = [Ability::Tee, Ability::Model("small".into()), Ability::Pool("eu".into())];
        runner.change(&none(), &withdrawn.into()).unwrap();
        net.block().await;
        assert_eq!(net.told("runner-0"), [["llm:small", "tee", "pool:eu"]]);
        let node = net.nodes.remove(0);
        node.gateway.close(&net.context).await;
        node.serving.abort();
        let _ = node.serving.await;
        let node = net.node("validator-0", BucketLimits::default());
        net.nodes.push(node);
        net.blocks(4).await;
        assert_eq!(net.told("runner-0"), [["llm:small", "tee", "pool:eu"]]);
        runner.change(&[Ability::Tee].into(), &custom()).unwrap();
        net.block().await;
        assert_eq!(net.told("runner-0"), [["custom", "llm:small", "pool:eu"]]);
    });
}

#[test]
fn a_job_of_a_pool_that_the_runner_has_left_is_rejected() {
    run(1, async |context| {
        let mut net = Net::new(context, SHORT, &genesis(3, 1));
        let runner = net.start("runner-0", NO_TIME);
        let address = key("runner-0").address();
        let grant = GrantEntitlement { pool: "eu".into(), runner: address, valid_until: None };
        let grant = net.sign("alice", 0, Payload::GrantEntitlement(grant));
        net.pending.push(grant);
        net.blocks(4).await;
        runner.change(&none(), &[Ability::Pool("eu".into())].into()).unwrap();
        let job_id = net.submit(JobSpec { required_runner_pool: Some("eu".into()), ..spec(50) });
        net.blocks(4).await;
        let reason = "the runner rejected the job: missing_entitlement".to_owned();
        assert_eq!(net.reasons(&job_id), [(address, reason)]);
        let job_id = net.submit(spec(50));
        assert_eq!(net.until_over(&job_id).await.name(), "Verified");
    });
}

#[test]
fn many_labels_are_told_in_parts_and_too_many_are_refused() {
    run(1, async |context| {
        let mut net = Net::new(context, SHORT, &genesis(1, 1));
        let runner = net.start("runner-0", NO_TIME);
        net.blocks(4).await;
        let servers = |count: usize| -> BTreeSet<Ability> {
            (0..count).map(|i| Ability::Server(format!("{}{i:04}", "s".repeat(120)))).collect()
        };
        runner.change(&none(), &servers(MAX_WITHDRAWN)).unwrap();
        net.block().await;
        assert_eq!(net.told("runner-0")[0].len(), MAX_WITHDRAWN);
        let more = runner.change(&none(), &servers(MAX_WITHDRAWN + 1));
        assert_eq!(more, Err(SteerError::TooMany(MAX_WITHDRAWN + 1)));
        let impossible = runner.change(&[Ability::Model("small".into())].into(), &none());
        assert_eq!(impossible, Err(SteerError::CannotExecute(JobKind::Llm)));
        assert_eq!(runner.withdrawn(), servers(MAX_WITHDRAWN), "what is refused changes nothing");
        let mut left = servers(MAX_WITHDRAWN);
        left.pop_first();
        // Kinds that the runner cannot execute cannot be resumed either.
        assert_eq!(runner.change(&left, &none()), Err(SteerError::CannotExecute(JobKind::Mcp)));
    });
}

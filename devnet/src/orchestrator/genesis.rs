//! Derives the genesis document and all keys from a plan.
//!
//! A key derives from the plan's seed and its owner's name, so that the same topology and seed give
//! the same addresses and the same chain id on every machine.

use crate::{
    topology::{GOVERNANCE, Name, Plan},
    validator::keys::ValidatorKeys,
};
use cowboy_engine::{
    chain::{Endowment, Genesis, GenesisRunner, Params, Scheme, TaskParams, params::PythonTerms},
    primitives::{Wei, keccak256},
    proof::ProvingKey,
    registry::{Capabilities, JobKind},
    speculation::Generator,
};

/// A validator's initial balance, for the transactions that bring results.
const VALIDATOR_BALANCE: Wei = Wei::cby(1_000_000);
/// A runner's initial balance on top of its stake, for its heartbeats.
pub const RUNNER_BALANCE: Wei = Wei::cby(10_000);

/// The seed of a devnet's proof keys, from its plan's `seed`. Anyone with the plan has the same
/// keys and can forge proofs.
pub fn proof_seed(seed: u64) -> [u8; 32] {
    keccak256(&[b"cowboy-proof-setup/v1", &seed.to_be_bytes()]).0
}

fn scheme(plan: &Plan) -> Scheme {
    let seed = proof_seed(plan.seed);
    match plan.speculation.config.generator {
        Generator::Mock => Scheme::Mock(seed),
        Generator::Groth16 | Generator::Plonk | Generator::Stark => {
            Scheme::Groth16(ProvingKey::setup(&seed).verifying_key().clone())
        }
    }
}

/// The genesis document of the plan's chain. Draws its proof keys, which takes about 100 ms.
pub fn genesis(plan: &Plan) -> Genesis {
    let endow = |name: &Name, balance| Endowment { account: plan.key(name).address(), balance };
    let accounts = plan.accounts.iter().map(|a| endow(&a.name, a.balance));
    let validators = plan.validators.iter().map(|v| endow(&v.name, VALIDATOR_BALANCE));
    let runners = plan.runners.iter().map(|r| endow(&r.name, RUNNER_BALANCE));
    let governing = plan.accounts.iter().find(|account| account.name.as_str() == GOVERNANCE);
    Genesis {
        name: plan.chain_name.to_string(),
        timestamp_ms: 0,
        params: Params {
            threshold_rule: plan.threshold_rule,
            selection_seed: plan.selection_seed,
            epoch_blocks: plan.epoch_blocks,
            phase: plan.phase,
            connectivity: plan.connectivity,
            timers: plan.timers.clone(),
            powers: plan.powers,
            python: plan.python.map(PythonTerms::on),
            tasks: TaskParams { scheme: scheme(plan), bonds: plan.bonds },
            system_deployers: governing.map(|a| plan.key(&a.name).address()).into_iter().collect(),
            ..Params::default()
        },
        validators: plan
            .validators
            .iter()
            .map(|v| ValidatorKeys::from(plan.key(&v.name)).public())
            .collect(),
        runners: plan
            .runners
            .iter()
            .map(|r| {
                let kinds = r.kinds.iter().copied().map(JobKind::from).collect();
                GenesisRunner {
                    pubkey: plan.key(&r.name).public_key(),
                    stake: r.stake,
                    capabilities: Capabilities {
                        tee: r.tee,
                        ..r.executors.capabilities(kinds, r.max_concurrent_jobs)
                    },
                    price_per_second: r.price_per_second,
                }
            })
            .collect(),
        endowments: accounts.chain(validators).chain(runners).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{Overrides, Topology};
    use cowboy_engine::timer::Policy;

    fn plan(text: &str) -> Plan {
        let topology = Topology::parse(text, "test.yaml").unwrap();
        topology.resolve(&Overrides::default(), text, "test.yaml").unwrap()
    }

    #[test]
    fn the_same_plan_gives_the_same_chain() {
        let one = genesis(&plan("name: one\n"));
        assert_eq!(one, genesis(&plan("name: one\n")));
        assert_eq!(one.validators.len(), 4);
        assert_eq!(one.runners.len(), 4);
        let state = one.state().unwrap();
        assert_eq!(state.registry().order().len(), 4);
        let seeded = genesis(&plan("name: one\nchain: { seed: 7 }\n"));
        assert_ne!(one.chain_id(), seeded.chain_id());
        assert_ne!(one.validators, seeded.validators);
        assert_ne!(one.params.tasks, seeded.params.tasks, "other keys");
        assert_ne!(one.chain_id(), genesis(&plan("name: two\n")).chain_id());
        let shadow = genesis(&plan("name: one\nmigration: { phase: shadow }\n"));
        assert_ne!(one.chain_id(), shadow.chain_id());
        let fifo = genesis(&plan("name: one\ntimers: { policy: fifo }\n"));
        assert_ne!(one.chain_id(), fifo.chain_id());
        assert_eq!(fifo.params.timers.policy, Policy::Fifo);
    }

    #[test]
    fn proofs_are_checked_with_the_keys_of_the_plan_s_seed() {
        let plan = plan("name: one\nchain: { seed: 7 }\n");
        assert_eq!(
            proof_seed(7),
            keccak256(&[b"cowboy-proof-setup/v1", &[0, 0, 0, 0, 0, 0, 0, 7]]).0
        );
        let keys = ProvingKey::setup(&proof_seed(plan.seed));
        let scheme = Scheme::Groth16(keys.verifying_key().clone());
        assert_eq!(genesis(&plan).params.tasks, TaskParams { scheme, bonds: plan.bonds });
    }

    #[test]
    fn one_account_governs_and_can_pay() {
        let plan = plan("name: one\n");
        let one = genesis(&plan);
        let address = plan.key(&GOVERNANCE.parse().unwrap()).address();
        assert_eq!(one.params.system_deployers, [address]);
        assert!(!one.state().unwrap().account(&address).balance.is_zero());
    }
}

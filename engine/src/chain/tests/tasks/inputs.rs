//! Inputs of outputs: a commitment and proof that cover other outputs than the parents have cannot
//! complete a task.

use super::*;
use crate::proof::ProofError;

/// Another output of a task.
fn other(name: &str) -> Witness {
    let Witness { output, .. } = witness(name);
    Witness { output, salt: Element::from(77) }
}

fn commitment_of(witness: &Witness) -> Element {
    hash_2(hash_4(witness.output), witness.salt)
}

fn digest(parent: &str, witness: &Witness) -> Hash {
    inputs_digest([(id(parent), commitment_of(witness))])
}

fn committing(name: &str, inputs: Hash) -> Payload {
    let output_commitment = output_commitment(name);
    Payload::CreateCommitment(CreateCommitment {
        task_id: id(name),
        output_commitment,
        inputs,
        bond: BOND,
        expires_at: None,
    })
}

/// Bob replaces his commitment to a parent by one to another output.
fn commit_to_other(tasks: &mut Tasks, parent: &str) {
    let Payload::CreateCommitment(commitment) = tasks.commitment(parent) else {
        unreachable!("it is one")
    };
    let output_commitment = commitment_of(&other(parent));
    let changed = CreateCommitment { output_commitment, ..commitment };
    tasks.done("bob", Payload::CreateCommitment(changed));
}

/// An agent keeps a child's output after the parent's was refused and redone.
#[test]
fn a_result_built_on_a_refused_one_is_not_completed() {
    for mut tasks in [Tasks::real(), Tasks::new()] {
        tasks.committed("parent", &[], "bob");
        tasks.committed("child", &["parent"], "carol");
        let stale = tasks.completion("child", "carol");
        let real = tasks.real;
        let bad = CompleteTask { proof: vec![0; PROOF_BYTES], ..tasks.completion("parent", "bob") };
        tasks.refused_proof("bob", bad);
        // The parent is redone with another output, and proved.
        tasks.claim("parent", "bob");
        commit_to_other(&mut tasks, "parent");
        let proof = proof_from("parent", &inputs(&[]), "bob", &other("parent"), real);
        let complete = CompleteTask { task_id: id("parent"), parents: vec![], proof };
        tasks.done("bob", Payload::CompleteTask(complete));
        assert_eq!(tasks.task("parent").output, Some(commitment_of(&other("parent"))));

        // The child's proof is valid, but for the parent's old output.
        let agent = key("carol").address();
        let refused = check_completion(&tasks.chain.state, &agent, &stale).unwrap_err();
        let (got, expected) = (inputs(&["parent"]), digest("parent", &other("parent")));
        assert_eq!(refused, TaskError::StaleInputs { task_id: id("child"), got, expected });
        tasks.refused("carol", Payload::CompleteTask(stale.clone()), "StaleInputs");
        // The same proof under a new commitment, which covers the parent's present output.
        tasks.done("carol", resolve("child", Some(RollbackReason::AncestorFailed)));
        tasks.claim("child", "carol");
        tasks.refused("carol", committing("child", got), "StaleInputs");
        tasks.commit("child", "carol");
        let refused = check_completion(&tasks.chain.state, &agent, &stale).unwrap_err();
        let TaskError::BadProof(ProofError::OtherStatement { input, .. }) = refused else {
            panic!("{refused}")
        };
        assert_eq!(input, "task_id");
        tasks.complete("child", "carol");
    }
}

#[test]
fn a_parent_is_committed_to_before_its_child() {
    let mut tasks = Tasks::new();
    tasks.create("parent", &[]);
    tasks.create("child", &["parent"]);
    tasks.claim("child", "carol");
    tasks.refused("carol", committing("child", inputs(&["parent"])), "ParentNotCommitted");
    tasks.claim("parent", "bob");
    tasks.refused("carol", committing("child", inputs(&["parent"])), "ParentNotCommitted");
    tasks.commit("parent", "bob");
    for wrong in [inputs(&[]), Hash::ZERO, digest("parent", &other("parent"))] {
        tasks.refused("carol", committing("child", wrong), "StaleInputs");
    }
    tasks.done("carol", committing("child", inputs(&["parent"])));
    // A parent that is completed and resolved still has its output.
    tasks.complete("parent", "bob");
    tasks.done("bob", resolve("parent", None));
    assert_eq!(tasks.task("parent").commitment, None);
    tasks.complete("child", "carol");
    tasks.committed("another", &["parent"], "carol");
    tasks.complete("another", "carol");
}

#[test]
fn inputs_are_in_the_order_of_the_dependencies() {
    let mut tasks = Tasks::new();
    for name in ["a", "b"] {
        tasks.committed(name, &[], "bob");
    }
    tasks.create("child", &["b", "a"]);
    tasks.claim("child", "carol");
    tasks.refused("carol", committing("child", inputs(&["a", "b"])), "StaleInputs");
    tasks.done("carol", committing("child", inputs(&["b", "a"])));
    for name in ["a", "b"] {
        tasks.complete(name, "bob");
    }
    tasks.complete("child", "carol");
}

/// The output of an order-only parent may change.
#[test]
fn what_is_only_come_after_is_no_input() {
    let mut tasks = Tasks::new();
    tasks.committed("read", &[], "bob");
    tasks.create("before", &[]);
    let Payload::CreateTask(child) = create("child", &["before", "read"], tasks.next() + 40) else {
        unreachable!("it is one")
    };
    let with = |order_only: &[&str]| {
        let order_only = order_only.iter().map(|parent| id(parent)).collect();
        Payload::CreateTask(CreateTask { order_only, ..child.clone() })
    };
    tasks.refused("alice", with(&["nobody"]), "StrangeParent");
    tasks.refused("alice", with(&["before", "before"]), "RepeatedParent");
    tasks.done("alice", with(&["before"]));
    assert_eq!(tasks.task("child").reads().collect::<Vec<_>>(), [&id("read")]);
    tasks.claim("child", "carol");
    tasks.done("carol", committing("child", inputs(&["read"])));
    tasks.complete("read", "bob");
    let early = Payload::CompleteTask(tasks.completion("child", "carol"));
    tasks.refused("carol", early, "ParentNotCompleted");
    for _ in 0..2 {
        tasks.claim("before", "bob");
        tasks.commit("before", "bob");
        tasks.done("bob", resolve("before", Some(RollbackReason::ManualCancel)));
    }
    tasks.claim("before", "bob");
    commit_to_other(&mut tasks, "before");
    let proof = proof_from("before", &inputs(&[]), "bob", &other("before"), false);
    let complete = CompleteTask { task_id: id("before"), parents: vec![], proof };
    tasks.done("bob", Payload::CompleteTask(complete));
    tasks.complete("child", "carol");
}

//! Proofs that are wrong in every way, and the batch check of a block's proofs.

use super::*;
use crate::proof::ProofError;

/// A chain with task `a`, which bob may complete, another task of his and one of carol's.
fn ready(mut tasks: Tasks) -> Tasks {
    tasks.committed("a", &[], "bob");
    tasks.committed("other", &[], "bob");
    tasks.committed("carol's", &[], "carol");
    tasks
}

/// The result of checking bob's completion of `a` with this proof.
fn checked(tasks: &Tasks, proof: Vec<u8>) -> Result<(), TaskError> {
    let complete = CompleteTask { task_id: id("a"), parents: vec![], proof };
    check_completion(&tasks.chain.state, &key("bob").address(), &complete)
}

#[test]
fn a_proof_is_of_this_task_this_agent_and_this_output() {
    for tasks in [Tasks::real(), Tasks::new()] {
        let mut tasks = ready(tasks);
        let real = tasks.real;
        let good = proof_of("a", &[], "bob", real);
        assert_eq!(checked(&tasks, good.clone()), Ok(()));
        let input = |result: Result<(), TaskError>| match result {
            Err(TaskError::BadProof(ProofError::OtherStatement { input, .. })) => input,
            other => panic!("{other:?}"),
        };
        assert_eq!(input(checked(&tasks, proof_of("other", &[], "bob", real))), "task_id");
        assert_eq!(input(checked(&tasks, proof_of("a", &[], "carol", real))), "agent");
        let of = |witness: &Witness| proof_from("a", &inputs(&[]), "bob", witness, real);
        // A proof of the task alone, without the inputs.
        let agent = statement_agent(&key("bob").address());
        let bare = crate::proof::Statement::of(&id("a").0, &agent, &witness("a"));
        let bare = match real {
            true => PROVER.prove(&id("a").0, &agent, &witness("a"), &[9; 32]).to_bytes(),
            false => mock::prove(&[0; 32], &bare),
        };
        assert_eq!(input(checked(&tasks, bare.to_vec())), "task_id");
        let Witness { output, salt } = witness("a");
        let wrong = Witness { output: [output[1], output[0], output[2], output[3]], salt };
        assert_eq!(input(checked(&tasks, of(&wrong))), "constraint_hash");
        let salted = Witness { output, salt: Element::from(1) };
        assert_eq!(input(checked(&tasks, of(&salted))), "output_commitment");
        for proof in [vec![], good[1..].to_vec(), [&good[..], &[0]].concat(), vec![0; PROOF_BYTES]]
        {
            let refused = checked(&tasks, proof).unwrap_err();
            assert!(matches!(refused, TaskError::BadProof(ProofError::Format(_))), "{refused}");
        }
        let wrong = CompleteTask { task_id: id("a"), parents: vec![], proof: of(&wrong) };
        tasks.refused_proof("bob", wrong);
        tasks.claim("a", "bob");
        tasks.commit("a", "bob");
        tasks.complete("a", "bob");
        // The same proof again, in another transaction.
        let again = Payload::CompleteTask(tasks.completion("a", "bob"));
        tasks.refused("bob", again, "TaskEnded");
        assert_eq!(
            checked(&tasks, good).unwrap_err().to_string().split(':').next(),
            Some("TaskEnded")
        );
    }
}

#[test]
fn a_proof_with_one_bit_flipped_completes_nothing() {
    for tasks in [Tasks::real(), Tasks::new()] {
        let mut tasks = ready(tasks);
        let good = proof_of("a", &[], "bob", tasks.real);
        let flipped = (0..PROOF_BYTES).map(|at| {
            let mut proof = good.clone();
            proof[at] ^= 1 << (at % 8);
            proof
        });
        let flipped: Vec<_> = flipped.collect();
        for (at, proof) in flipped.iter().enumerate() {
            let refused = checked(&tasks, proof.clone());
            assert!(matches!(refused, Err(TaskError::BadProof(_))), "byte {at}: {refused:?}");
        }
        // The same in blocks, as many proofs as a block may have.
        for proofs in flipped.chunks(meter::MAX_BLOCK_PROOFS as usize) {
            let nonce = tasks.chain.state.account(&key("bob").address()).nonce;
            let transactions = (nonce..).zip(proofs).map(|(nonce, proof)| {
                let (task_id, proof) = (id("a"), proof.clone());
                let complete = CompleteTask { task_id, parents: vec![], proof };
                tasks.chain.sign_at("bob", nonce, Payload::CompleteTask(complete))
            });
            let execution = tasks.chain.push(transactions.collect());
            assert_eq!(execution.receipts.len(), proofs.len());
            // The first one ends the commitment, and with it the claim.
            for (at, receipt) in execution.receipts.iter().enumerate() {
                let text = receipt.status.error().unwrap();
                let expected = if at == 0 { "BadProof: " } else { "NotClaimed: " };
                assert!(text.starts_with(expected), "{text}");
            }
            tasks.claim("a", "bob");
            tasks.commit("a", "bob");
        }
        tasks.complete("a", "bob");
    }
}

#[test]
fn a_task_without_a_constraint_takes_any_output_behind_the_commitment() {
    let mut tasks = Tasks::real();
    let Payload::CreateTask(free) = create("a", &[], 40) else { unreachable!("it is one") };
    tasks.done("alice", Payload::CreateTask(CreateTask { constraint_hash: None, ..free }));
    tasks.claim("a", "bob");
    tasks.commit("a", "bob");
    let other = proof_from("a", &inputs(&[]), "bob", &witness("b"), true);
    let other = CompleteTask { task_id: id("a"), parents: vec![], proof: other };
    tasks.refused_proof("bob", other);
    tasks.claim("a", "bob");
    tasks.commit("a", "bob");
    tasks.complete("a", "bob");
}

/// Completes tasks named by number for bob in one block; `bad` carries the first point of another
/// task's proof.
fn block_of(tasks: &mut Tasks, names: &[String], bad: Option<usize>) -> Execution {
    let nonce = tasks.chain.state.account(&key("bob").address()).nonce;
    let completions: Vec<_> = names.iter().map(|name| tasks.completion(name, "bob")).collect();
    let transactions = completions.iter().enumerate().map(|(n, complete)| {
        let mut complete = complete.clone();
        if bad == Some(n) {
            complete.proof[..64].copy_from_slice(&completions[n + 1].proof[..64]);
        }
        tasks.chain.sign_at("bob", nonce + n as u64, Payload::CompleteTask(complete))
    });
    let transactions = transactions.collect();
    tasks.chain.push(transactions)
}

#[test]
fn of_a_block_s_proofs_the_bad_one_alone_is_refused() {
    let mut tasks = Tasks::real();
    let names: Vec<String> = (0..6).map(|n| n.to_string()).collect();
    for name in &names {
        tasks.committed(name, &[], "bob");
    }
    let execution = block_of(&mut tasks, &names, Some(2));
    for (name, receipt) in names.iter().zip(&execution.receipts) {
        match name.as_str() {
            "2" => assert_eq!(receipt.status.error(), Some("BadProof: the proof does not hold")),
            _ => assert_eq!(receipt.status, ReceiptStatus::Success, "{name}"),
        }
        let status = if name == "2" { TaskStatus::Open } else { TaskStatus::Completed };
        assert_eq!(tasks.task(name).status, status);
    }
    tasks.claim("2", "bob");
    tasks.commit("2", "bob");
    tasks.complete("2", "bob");
}

#[test]
fn a_parent_and_its_child_in_one_block() {
    let mut tasks = Tasks::real();
    let names = ["0", "1"].map(str::to_owned);
    tasks.committed("0", &[], "bob");
    tasks.committed("1", &["0"], "bob");
    let reversed = [names[1].clone(), names[0].clone()];
    let execution = block_of(&mut tasks, &reversed, None);
    let error = execution.receipts[0].status.error().unwrap();
    assert!(error.starts_with("ParentNotCompleted: "), "{error}");
    assert_eq!(execution.receipts[1].status, ReceiptStatus::Success);
    tasks.complete("1", "bob");
    let mut tasks = Tasks::real();
    tasks.committed("0", &[], "bob");
    tasks.committed("1", &["0"], "bob");
    let execution = block_of(&mut tasks, &names, None);
    assert!(execution.receipts.iter().all(|receipt| receipt.status == ReceiptStatus::Success));
}

/// Sends bob's payloads for all names in one block.
fn all(tasks: &mut Tasks, names: &[String], payload: &dyn Fn(&str) -> Payload) {
    let nonce = tasks.chain.state.account(&key("bob").address()).nonce;
    let transactions = (nonce..).zip(names);
    let transactions = transactions.map(|(n, name)| tasks.chain.sign_at("bob", n, payload(name)));
    let transactions = transactions.collect();
    let execution = tasks.chain.push(transactions);
    assert!(execution.receipts.iter().all(|receipt| receipt.status == ReceiptStatus::Success));
}

#[test]
fn a_block_holds_so_many_completions_and_no_more() {
    let mut tasks = Tasks::new();
    let names: Vec<String> = (0..=meter::MAX_BLOCK_PROOFS).map(|n| n.to_string()).collect();
    all(&mut tasks, &names, &|name| create(name, &[], 9));
    all(&mut tasks, &names, &|name| claim(name, 9));
    all(&mut tasks, &names, &commit);
    let execution = block_of(&mut tasks, &names, None);
    let (last, others) = execution.receipts.split_last().unwrap();
    assert!(others.iter().all(|receipt| receipt.status == ReceiptStatus::Success));
    assert!(last.status.error().unwrap().starts_with("BlockFull: "), "{:?}", last.status);
}

//! Proofs that are false on purpose: each is a valid proof of another statement with the public
//! inputs that the chain expects put into it. Only the pairing check tells it from a true one.

use super::{Core, ToProve};
use crate::speculation::pipeline::{TaskFault, elements};
use cowboy_engine::{
    chain::{statement_agent, statement_task},
    primitives::{Hash, keccak256},
    proof::{Element, Statement, Witness},
};

impl Core {
    /// The inputs of a task's false proof; `None` if the fault is not a false proof.
    pub(super) fn misproof(
        &self,
        (number, at): (u64, usize),
        fault: TaskFault,
        honest: &ToProve,
    ) -> Option<ToProve> {
        let ToProve { task, witness, .. } = *honest;
        let (task, witness) = match fault {
            TaskFault::WrongOutput => {
                let mut output = self.runs[&number].tasks[at].output.as_deref()?.clone();
                output.push(0);
                (task, Witness { output: elements(&output), ..witness })
            }
            TaskFault::OtherTasksProof => self.of_another_task((number, at), witness),
            TaskFault::OldProof => {
                let salt = keccak256(&[b"cowboy/earlier-salt/v1", &witness.salt.to_bytes()]);
                (task, Witness { salt: Element::reduce(&salt.0), ..witness })
            }
            TaskFault::WrongProof
            | TaskFault::Crash
            | TaskFault::Slow(_)
            | TaskFault::LateEvent(_)
            | TaskFault::Memory(_) => return None,
        };
        let says = Statement::of(&honest.task, &statement_agent(&self.agent), &honest.witness);
        Some(ToProve { task, witness, says: Some(says) })
    }

    /// The statement of another task: the first of the pipeline that has an output. When no other
    /// task has one, the task id is one that no chain knows.
    fn of_another_task(&self, (number, at): (u64, usize), witness: Witness) -> ([u8; 32], Witness) {
        let tasks = self.runs[&number].tasks.iter().enumerate().filter(|(other, _)| *other != at);
        let mut proved = tasks.filter_map(|(_, task)| Some((task, task.output.as_deref()?)));
        if let Some((task, output)) = proved.next() {
            let inputs = task.inputs.map_or(Hash::ZERO, |inputs| inputs.0);
            return (statement_task(&task.id, &inputs), self.witness(&task.id, output));
        }
        let id = self.runs[&number].tasks[at].id;
        (keccak256(&[b"cowboy/no-task/v1", &id.0]).0, witness)
    }
}

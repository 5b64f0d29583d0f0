//! Stored and encoded formats of tasks are frozen.

use super::*;
use crate::primitives::codec::{Encode, to_vec};

/// keccak256 of encoded records, computed with an independent CBOR encoder.
const FORMATS: &[(&str, &str)] = &[
    ("create_task", "0x3aa044d51a8185a4b23c041b7887aeb82bd3ed9e0e595c7f891a3ddc0abf4824"),
    ("create_dependent_task", "0x2d9e2dc596db3e82dd1cae7c6437e41d1aeff77319eb91cf818372601e9f3f88"),
    ("claim_task", "0x14fc380ae7e7aac13b5aee95339ee3381e9e923f4bae942e9dda1baeb36dc5a2"),
    ("create_commitment", "0x4bef97af3e0ecf475ec94c0671c0b1ed832b956c94e045f8eff1a1b02370e3b4"),
    ("complete_task_private", "0x3eac37e6830ec6b572884312c79de5d7ec2319b1ddddc4f5ab46b0b453371f0d"),
    ("resolve_commitment", "0x08d825a95df36cdfac96b854857a66420b555e33a032072de5d7b1c4b251178c"),
    ("resolve_commitment", "0x3d7fa86bb3b53310bcc30f52a0eedf4723f003960199469914431022dab666ed"),
    ("Task", "0xc59853c59684b3e813c912272370d08f3494b0b273c424fc8a5094020b516f20"),
    ("Task, open", "0x5198d398e908f02039644988a266979fa6bf92195acc4a2dcf7f6eaaaf9a2465"),
    ("TaskParams", "0x4b8173f763db7d748a1c54534dd6e6d536afefa0e35013f3a7b6815e490bb092"),
    ("TaskCreated", "0xfda0171f8b5562087de6e27fbca62696e8078201b817d1828dbfe2fb3b356531"),
    ("TaskClaimed", "0xe657c1b1a61aed523ac30dc5c214784dd7f234e58e08071f2254dd017bd47345"),
    ("CommitmentCreated", "0x140392ad144ee4bb65cb745cfbbd767c472821d40dd492d30c2d790d1057e8e7"),
    ("TaskCompleted", "0x378451a286fb316b4e60c0673886e033394c568314121d8c6d5c16f7499bd1aa"),
    ("CommitmentResolved", "0xd56697583633532035916a2d82ace75b64dea7b5673ba6e1b453bf52ca68286f"),
    ("TaskExpired", "0x8eaced94f359626eaf3ccf60e72f0737e685f9b3b2b5c8f50b9b2b0e15788ac5"),
];

fn task_id() -> Hash {
    Hash([1; 32])
}

fn payloads() -> Vec<Payload> {
    let task = CreateTask {
        task_id: task_id(),
        depends_on: vec![],
        order_only: vec![],
        constraint_hash: None,
        requirements: vec![],
        reward: Wei::new(7),
        deadline: Height::new(40),
    };
    let parents = vec![Hash([2; 32]), Hash([3; 32])];
    let constraint_hash = Some(Element::from(5));
    let resolve = |reason| ResolveCommitment { task_id: task_id(), reason };
    vec![
        Payload::CreateTask(task.clone()),
        Payload::CreateTask(CreateTask {
            depends_on: parents.clone(),
            order_only: parents[1..].to_vec(),
            constraint_hash,
            ..task
        }),
        Payload::ClaimTask(ClaimTask { task_id: task_id(), expires_at: Height::new(30) }),
        Payload::CreateCommitment(CreateCommitment {
            task_id: task_id(),
            output_commitment: Element::from(6),
            inputs: Hash([7; 32]),
            bond: Wei::new(1_000),
            expires_at: None,
        }),
        Payload::CompleteTask(CompleteTask {
            task_id: task_id(),
            parents: parents[..1].to_vec(),
            proof: vec![9; PROOF_BYTES],
        }),
        Payload::ResolveCommitment(resolve(None)),
        Payload::ResolveCommitment(resolve(Some(RollbackReason::ProofFailed))),
    ]
}

/// A completed task with every optional field, and an open one with none.
fn records() -> [Task; 2] {
    let (agent, bond) = (Address([4; 20]), Wei::new(1_000));
    let open = Task {
        creator: Address([8; 20]),
        depends_on: vec![],
        order_only: vec![],
        speculation_depth: 0,
        constraint_hash: None,
        requirements: vec![],
        reward: Wei::new(7),
        deadline: Height::new(40),
        status: TaskStatus::Open,
        claim: None,
        commitment: None,
        output: None,
        failed_at: None,
        created_at: Height::new(10),
        completed_at: None,
    };
    let completed = Task {
        depends_on: vec![Hash([2; 32])],
        order_only: vec![Hash([2; 32])],
        speculation_depth: 1,
        constraint_hash: Some(Element::from(5)),
        status: TaskStatus::Completed,
        claim: Some(TaskClaim { agent, expires_at: Height::new(30) }),
        commitment: Some(TaskCommitment {
            agent,
            output_commitment: Element::from(6),
            inputs: Hash([7; 32]),
            bond,
            depth: 2,
            created_at: Height::new(20),
            expires_at: Some(Height::new(28)),
        }),
        output: Some(Element::from(6)),
        failed_at: Some(Height::new(15)),
        completed_at: Some(Height::new(25)),
        ..open.clone()
    };
    [completed, open]
}

fn events() -> Vec<EventKind> {
    let (task_id, agent, paid) = (task_id(), Address([4; 20]), Wei::new(7));
    let bond = Wei::new(1_000);
    vec![
        event::TaskCreated {
            task_id,
            creator: Address([8; 20]),
            depends_on: vec![Hash([2; 32])],
            order_only: vec![Hash([2; 32])],
            depth: 2,
            constraint_hash: Some(Element::from(5)),
            requirements: vec!["gpu".to_owned()],
            reward: paid,
            deadline: Height::new(40),
        }
        .into(),
        event::TaskClaimed { task_id, agent, expires_at: Height::new(30) }.into(),
        event::CommitmentCreated {
            task_id,
            agent,
            output_commitment: Element::from(6),
            inputs: Hash([7; 32]),
            bond,
            expires_at: Some(Height::new(28)),
        }
        .into(),
        event::TaskCompleted { task_id, agent, paid }.into(),
        event::CommitmentResolved {
            task_id,
            agent,
            reason: Some(RollbackReason::ClaimExpired),
            released: Wei::new(950),
            slashed: Wei::new(50),
        }
        .into(),
        event::TaskExpired { task_id, refunded: paid }.into(),
    ]
}

#[test]
fn formats_are_frozen() {
    let form = |name: &str, value: &dyn Encode| {
        (name.to_owned(), keccak256(&[&to_vec(value)]).to_string())
    };
    let mut forms: Vec<_> =
        payloads().iter().map(|payload| form(payload.name(), payload)).collect();
    let [completed, open] = records();
    forms.extend([form("Task", &completed), form("Task, open", &open)]);
    forms.push(form("TaskParams", &TaskParams::default()));
    forms.extend(events().iter().map(|event| form(event.name(), event)));
    let frozen: Vec<_> =
        FORMATS.iter().map(|(name, hash)| ((*name).to_owned(), (*hash).to_owned())).collect();
    assert_eq!(forms, frozen);
}

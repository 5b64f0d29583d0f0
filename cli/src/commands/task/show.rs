//! Text output for tasks.

use crate::output::{Document, Row, amount, columns, fields, named, or_dash};
use cowboy_devnet::types::ChainTask;

impl Row for ChainTask {
    columns! { self;
        let name = |name: &Option<String>, address: String| name.clone().unwrap_or(address);
        let claim = self.claim.as_ref();
        "task" => self.task_id.to_string(),
        "status" => self.status.to_string(),
        "creator" => name(&self.creator_name, self.creator.to_string()),
        "agent" => or_dash(claim.map(|claim| name(&claim.agent_name, claim.agent.to_string()))),
        ">reward" => amount(*self.reward),
        ">bond" => or_dash(self.commitment.as_ref().map(|commitment| amount(*commitment.bond))),
        ">depth" => self.depth.to_string(),
        ">deadline" => self.deadline.to_string(),
        ">created at" => self.created_at.to_string(),
    }
    const LEAST: &'static [&'static str] = &["created at", "depth", "bond", "deadline", "creator"];

    fn id(&self) -> String {
        self.task_id.to_string()
    }
}

impl Document for ChainTask {
    fn text(&self) -> String {
        let lines = |ids: &[_]| ids.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        let mut rows = vec![
            ("task", self.task_id.to_string()),
            ("status", self.status.to_string()),
            ("creator", named(self.creator_name.as_deref(), &self.creator)),
            ("reward", amount(*self.reward)),
            ("deadline", format!("block {}", self.deadline)),
        ];
        let mut push = |name, value: Option<String>| rows.extend(value.map(|value| (name, value)));
        let labels = self.requirements.join(", ");
        push("requires", (!labels.is_empty()).then_some(labels));
        push("depends on", (!self.depends_on.is_empty()).then(|| lines(&self.depends_on)));
        push("without reading", (!self.order_only.is_empty()).then(|| lines(&self.order_only)));
        push("depth", Some(self.depth.to_string()));
        push("output asked for", self.constraint_hash.map(|hash| hash.to_string()));
        push(
            "agent",
            self.claim.as_ref().map(|claim| {
                let agent = named(claim.agent_name.as_deref(), &claim.agent);
                let until = match claim.counts {
                    true => format!("until block {}", claim.expires_at),
                    false => format!("until block {}, which has passed", claim.expires_at),
                };
                format!("{agent}, {until}")
            }),
        );
        if let Some(commitment) = &self.commitment {
            push("committed to", Some(commitment.output_commitment.to_string()));
            push("made from", Some(commitment.inputs.to_string()));
            push("bond", Some(amount(*commitment.bond)));
            let until = commitment.expires_at.map(|last| format!(", until block {last}"));
            let from = commitment.created_at;
            push("commitment", Some(format!("of block {from}{}", until.unwrap_or_default())));
        }
        push("output", self.output_commitment.map(|output| output.to_string()));
        push("least bond", self.least_bond.map(|least| amount(*least)));
        push("failed at", self.failed_at.map(|height| height.to_string()));
        push("created at", Some(self.created_at.to_string()));
        push("completed at", self.completed_at.map(|height| height.to_string()));
        fields(&rows)
    }

    fn id(&self) -> String {
        self.task_id.to_string()
    }
}

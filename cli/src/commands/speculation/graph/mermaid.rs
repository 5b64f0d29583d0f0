//! Draws the graph as a flowchart for Markdown viewers.

use super::{edges, statuses};
use cowboy_devnet::types::{Pipeline, TaskStatus};

/// The graph as Mermaid: a class per status, dotted edges where only the order matters. Ends with a
/// line feed.
pub fn mermaid(pipeline: &Pipeline) -> String {
    let mut text = "flowchart TD\n".to_owned();
    for (at, task) in pipeline.graph.iter().enumerate() {
        // Identifiers are numbers, because words such as `end` are keywords of Mermaid.
        let (name, status) = (escaped(&task.task), task.status);
        text += &format!("  t{at}[\"{name}<br/>{status}\"]:::{status}\n");
    }
    for (parent, child, order_only) in edges(&pipeline.graph) {
        let arrow = if order_only { "-.->" } else { "-->" };
        text += &format!("  t{parent} {arrow} t{child}\n");
    }
    for status in statuses(pipeline) {
        text += &format!("  classDef {status} {}\n", style(status));
    }
    text
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '"' | '#' | '<' | '>' | '&' | '`' | '\\' | '[' | ']' | '*' | '|' => {
                out += &format!("#{};", u32::from(character));
            }
            other if other.is_control() => out.push(' '),
            other => out.push(other),
        }
    }
    out
}

const fn style(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::Waiting => "fill:#ffffff,stroke:#999999,color:#000000",
        TaskStatus::Running => "fill:#e0ffff,stroke:#008b8b,color:#000000",
        TaskStatus::Proving => "fill:#afeeee,stroke:#008b8b,color:#000000",
        TaskStatus::Proved => "fill:#87cefa,stroke:#00008b,color:#000000",
        TaskStatus::Submitted => "fill:#add8e6,stroke:#00008b,color:#000000",
        TaskStatus::Confirmed => "fill:#98fb98,stroke:#006400,color:#000000",
        TaskStatus::Failed => "fill:#fa8072,stroke:#8b0000,color:#000000",
        TaskStatus::RolledBack => "fill:#f0e68c,stroke:#8b8000,color:#000000",
        TaskStatus::Cancelled => "fill:#d3d3d3,stroke:#696969,color:#000000",
    }
}

//! Draws the graph for Graphviz.

use super::edges;
use cowboy_devnet::types::{Pipeline, SpeculativeTask, TaskStatus};

/// The graph as DOT: a box per task filled by status, dashed edges where only the order matters.
/// Ends with a line feed.
pub fn dot(pipeline: &Pipeline) -> String {
    let mut text = format!(
        "digraph {} {{\n  node [shape=box, style=\"rounded,filled\", fontname=\"sans-serif\"];\n",
        quoted(&pipeline.summary.name)
    );
    for task in &pipeline.graph {
        // Only in a label do a backslash and an n make a line break.
        let label = format!("{}\\n{}", escaped(&task.task), standing(task));
        let (name, fill) = (quoted(&task.task), fill(task.status));
        text += &format!("  {name} [label=\"{label}\", fillcolor=\"{fill}\"];\n");
    }
    for (parent, child, order_only) in edges(&pipeline.graph) {
        let [from, to] = [parent, child].map(|at| quoted(&pipeline.graph[at].task));
        let style = if order_only { " [style=dashed]" } else { "" };
        text += &format!("  {from} -> {to}{style};\n");
    }
    text + "}\n"
}

fn standing(task: &SpeculativeTask) -> String {
    match task.depth {
        Some(depth) => format!("{}, depth {depth}", task.status),
        None => task.status.to_string(),
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", escaped(name))
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace(char::is_control, " ")
}

/// Graphviz colours that are light enough for black text.
const fn fill(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::Waiting => "white",
        TaskStatus::Running => "lightcyan",
        TaskStatus::Proving => "paleturquoise",
        TaskStatus::Proved => "lightskyblue",
        TaskStatus::Submitted => "lightblue",
        TaskStatus::Confirmed => "palegreen",
        TaskStatus::Failed => "salmon",
        TaskStatus::RolledBack => "khaki",
        TaskStatus::Cancelled => "lightgrey",
    }
}

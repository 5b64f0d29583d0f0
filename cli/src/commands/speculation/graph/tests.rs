//! Tests of drawn graphs.

use super::{
    samples::{branches, chain, diamond, fan, statuses, task},
    *,
};
use crate::output::within;
use cowboy_devnet::types::TaskParent;

/// A tree without colours, at most `columns` wide.
fn plain(pipeline: &Pipeline, columns: usize) -> String {
    let text = within(Some(columns), || tree(pipeline, columns));
    let text = anstream::adapter::strip_str(&text).to_string();
    for line in text.lines() {
        assert!(line.chars().count() <= columns, "{} columns: {line}", line.chars().count());
        assert_eq!(line.trim_end(), line, "a line ends with its last column");
    }
    text
}

#[test]
fn a_chain_stands_at_one_indentation() {
    insta::assert_snapshot!(plain(&chain(5), 80));
}

#[test]
fn a_task_with_two_parents_stands_once() {
    insta::assert_snapshot!(plain(&diamond(), 80));
}

#[test]
fn of_parents_as_deep_one_that_is_read_counts() {
    let mut diamond = diamond();
    diamond.graph[3].depends_on[1].order_only = true;
    let text = plain(&diamond, 80);
    assert!(text.contains("\n└ left ") && text.contains("  + only after right\n"), "{text}");
}

#[test]
fn sixty_tasks_fit_a_terminal() {
    insta::assert_snapshot!(plain(&branches(), 80));
}

#[test]
fn every_status_and_note_is_shown() {
    insta::assert_snapshot!(plain(&statuses(), 80));
    insta::assert_snapshot!(plain(&statuses(), 120));
}

#[test]
fn a_fan_has_a_line_a_task() {
    insta::assert_snapshot!(plain(&fan(20), 80));
}

#[test]
fn a_narrow_terminal_cuts_and_nothing_else_does() {
    let mut long = statuses();
    long.graph[0].task = "a-task-with-a-name-of-many-more-columns-than-there-are".to_owned();
    for columns in 10..100 {
        plain(&long, columns);
    }
    insta::assert_snapshot!(plain(&long, 40));
    assert!(tree(&long, 40).contains(&long.graph[0].task));
}

#[test]
fn styles_say_the_status() {
    let text = tree(&statuses(), 80);
    for status in TaskStatus::ALL {
        let cell = format!("{}{:11}{:#}", colour(*status), status.name(), colour(*status));
        assert!(text.contains(&cell), "{status}: {text:?}");
    }
}

#[test]
fn dot_has_boxes_and_edges() {
    insta::assert_snapshot!(dot(&statuses()));
    let mut odd = diamond();
    odd.summary.name = "a \"b\" \\ c".to_owned();
    odd.graph[0].task = "to\"p\\n\n".to_owned();
    odd.graph.truncate(1);
    insta::assert_snapshot!(dot(&odd));
}

#[test]
fn mermaid_has_classes_and_edges() {
    insta::assert_snapshot!(mermaid(&statuses()));
    let mut odd = diamond();
    odd.graph.truncate(1);
    odd.graph[0].task = "end; \"t\"<b>#1\n".to_owned();
    insta::assert_snapshot!(mermaid(&odd));
}

#[test]
fn scripts_find_tasks_and_edges() {
    let diamond = diamond();
    let json = serde_json::to_value(Graph::of(&diamond)).unwrap();
    let bottom = &json["tasks"][3];
    assert_eq!((&bottom["id"], &bottom["status"]), (&"bottom".into(), &"confirmed".into()));
    assert_eq!(bottom["parents"], serde_json::json!(["left", "right"]));
    assert_eq!((&bottom["depth"], &bottom["bond"]), (&0.into(), &"1000000".into()));
    let edge =
        |from: &str, to: &str| serde_json::json!({"from": from, "to": to, "order_only": false});
    let edges = [("top", "left"), ("top", "right"), ("left", "bottom"), ("right", "bottom")];
    assert_eq!(json["edges"], serde_json::Value::from(edges.map(|(a, b)| edge(a, b)).to_vec()));
}

/// The indentation of every line, in columns.
fn indentation(text: &str) -> usize {
    let width = |line: &str| line.find(|c: char| c.is_ascii_alphanumeric());
    let before = |line: &str| width(line).map_or(0, |at| line[..at].chars().count());
    text.lines().map(before).max().unwrap_or(0)
}

#[test]
fn ten_thousand_in_a_row_are_drawn() {
    let long = chain(10_000);
    let text = plain(&long, 80);
    assert_eq!(text.lines().count(), 10_003);
    assert_eq!(indentation(&text), 2);
    assert_eq!(dot(&long).lines().count(), 2 + 10_000 + 9_999 + 1);
    assert_eq!(mermaid(&long).lines().count(), 1 + 10_000 + 9_999 + 1);
}

/// A spine whose every task has a leaf next to its successor, and a tree that doubles at every
/// level.
#[test]
fn deep_trees_stay_narrow() {
    let mut spine = diamond();
    spine.graph = vec![task(0, "0", &[], TaskStatus::Waiting)];
    for at in 1..5_000_usize {
        let above = (at - 1).to_string();
        spine.graph.push(task(at, &at.to_string(), &[&above], TaskStatus::Waiting));
        spine.graph.push(task(at, &format!("{at}x"), &[&above], TaskStatus::Waiting));
    }
    let text = plain(&spine, 80);
    assert_eq!(text.lines().count(), 2 + 1 + 9_999);
    assert_eq!(indentation(&text), 14);

    let mut halving = diamond();
    halving.graph = vec![task(0, "0", &[], TaskStatus::Waiting)];
    for at in 1..8_191_usize {
        let above = ((at - 1) / 2).to_string();
        halving.graph.push(task(at, &at.to_string(), &[&above], TaskStatus::Waiting));
    }
    assert!(indentation(&plain(&halving, 80)) <= 26);
}

#[test]
fn an_answer_that_cannot_be_is_drawn_as_far_as_it_goes() {
    let parent = |task: &str| TaskParent { task: task.to_owned(), order_only: false };
    let mut odd = diamond();
    odd.graph[0].depends_on = vec![parent("bottom"), parent("nowhere"), parent("top")];
    let text = plain(&odd, 80);
    assert_eq!(text.lines().filter(|line| line.starts_with('●')).count(), 4, "{text}");
    odd.graph.clear();
    insta::assert_snapshot!(plain(&odd, 80));
    assert_eq!(mermaid(&odd), "flowchart TD\n");
}

//! A transaction in full: its payload, its fee, and its effects.

use super::OpenedTransaction;
use crate::{
    dashboard::{
        drawing::{Page, printable},
        look::Look,
        pane::Cx,
        panes::events::happened,
    },
    output::{amount, grouped, known},
};
use cowboy_devnet::types::{ActorReceipt, Fee, Transaction, TransactionStatus};
use ratatui::style::Style;
use serde_json::Value;

pub fn style(status: TransactionStatus, look: Look) -> Style {
    match status {
        TransactionStatus::Pending => look.busy(),
        TransactionStatus::Success => look.good(),
        TransactionStatus::Failed => look.bad(),
        TransactionStatus::Skipped | TransactionStatus::Dropped => look.warn(),
    }
}

pub fn page(opened: &OpenedTransaction, cx: &Cx<'_>) -> Page {
    let look = cx.look;
    let mut page = Page::new(cx.area.width, look);
    let Some(transaction) = &opened.known else {
        let text = opened.refused.as_deref().unwrap_or("asking for the transaction");
        page.text(text, look.faint());
        return page;
    };
    page.fact("status", transaction.status.name(), style(transaction.status, look));
    let Transaction { error, message, .. } = transaction;
    if let Some(reason) = message.as_ref().or(error.as_ref()) {
        page.fact("error", &printable(reason), look.bad());
    }
    page.plain("kind", &transaction.kind);
    let sender = transaction.sender.to_string();
    let sender = match &transaction.sender_name {
        Some(name) if *name != sender => format!("{name} {sender}"),
        _ => sender,
    };
    page.plain("sender", &sender);
    page.plain("nonce", &grouped(transaction.nonce.into()));
    if let (Some(height), Some(index)) = (transaction.height, transaction.index) {
        page.plain("block", &format!("{}, as number {index}", grouped(height.into())));
    }
    page.plain("hash", &transaction.hash.to_string());
    if let Some(fee) = &transaction.fee {
        paid(fee, &mut page);
    }
    if let Some(allowance) = &transaction.timer_allowance {
        page.plain("timers take", &format!("{} at most", amount(**allowance)));
    }
    if let Some(receipt) = &transaction.actor {
        worked(receipt, &mut page);
    }
    page.title("payload");
    match transaction.payload.as_object() {
        Some(fields) => {
            for (name, value) in fields {
                let text = known(name, value).unwrap_or_else(|| match value {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                });
                page.text(&format!("{name}: {}", printable(&text)), Style::new());
            }
        }
        None => page.text(&transaction.payload.to_string(), Style::new()),
    }
    page.title(&format!("events: {}", grouped(transaction.events.len() as u128)));
    match transaction.events.is_empty() {
        true => page.text("none", look.faint()),
        false => happened(
            &mut page,
            transaction.events.iter().map(|event| (event.height, event.kind.as_str(), &event.data)),
        ),
    }
    page
}

fn paid(fee: &Fee, page: &mut Page) {
    let Fee { cycles, unused, cells, burned, tip } = fee;
    let unused = match unused {
        0 => String::new(),
        unused => format!(", {} of them bought and not used", grouped((*unused).into())),
    };
    let parts = (amount(**burned), amount(**tip));
    page.plain("fee", &amount(burned.saturating_add(**tip)));
    page.plain("", &format!("{} burned, {} to the proposer", parts.0, parts.1));
    let (cycles, cells) = (grouped((*cycles).into()), grouped((*cells).into()));
    page.plain("paid for", &format!("{cycles} cycles{unused}, {cells} cells"));
}

fn worked(receipt: &ActorReceipt, page: &mut Page) {
    page.plain("actor", &receipt.actor.to_string());
    let (cycles, cells) = (receipt.usage.cycles, receipt.usage.cells);
    let calls = match receipt.deliveries {
        1 => "1 call".to_owned(),
        count => format!("{} calls", grouped(count.into())),
    };
    let used = format!("{} cycles, {} cells", grouped(cycles.into()), grouped(cells.into()));
    page.plain("used", &format!("{used}, in {calls}"));
    if let Some(result) = &receipt.result {
        page.plain("result", &printable(&result.to_string()));
    }
    for (index, line) in receipt.log.iter().enumerate() {
        page.plain(if index == 0 { "log" } else { "" }, &printable(&line.text));
    }
}

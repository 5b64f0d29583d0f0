//! An actor in full: its store, timers, continuations and log; or an account.

use super::{Accounts, AnyAccount, OpenedHolder};
use crate::{
    dashboard::{
        drawing::{Cell, Column, Page, plain, printable, section},
        look::Look,
        pane::Cx,
    },
    output::{amount, grouped, named, or_dash},
};
use cowboy_devnet::types::{
    Actor, ActorLine, ActorLineKind, Handler, StateEntry, TimerSummary, WaitingContinuation,
};
use cowboy_engine::primitives::Wei;
use ratatui::{buffer::Buffer, layout::Rect, style::Style};

/// The minimum width to show timers and log next to the store, instead of below.
const WIDE: u16 = 150;

const GAP: u16 = 2;

const STORE: [Column; 2] = [Column::long("key"), Column::long("value")];

const TIMERS: [Column; 4] = [
    Column::long("timer"),
    Column::text("status"),
    Column::number("height"),
    Column::long("handler"),
];

const CONTINUATIONS: [Column; 4] = [
    Column::long("job"),
    Column::number("since"),
    Column::number("until"),
    Column::long("handler"),
];

const LOG: [Column; 3] = [Column::number("block"), Column::text("kind"), Column::long("line")];

pub fn draw(pane: &Accounts, opened: &OpenedHolder, area: Rect, cx: &Cx<'_>, buffer: &mut Buffer) {
    let holder = pane.holder(opened);
    let kind = if holder.is_some_and(|one| one.actor.is_some()) { "actor" } else { "account" };
    let name = holder.and_then(|holder| holder.name.clone());
    let name = name.unwrap_or_else(|| opened.address.to_string());
    let area = section(&format!("{kind} {name}"), area, cx.look, buffer);
    let mut x = area.x;
    for page in pages(pane, opened, cx) {
        let width = page.width();
        page.draw(opened.first, Rect { x, width, ..area }, buffer);
        x += width + GAP;
    }
}

/// Number of positions that the page can be scrolled to, if `fit` lines fit.
pub fn places(pane: &Accounts, opened: &OpenedHolder, cx: &Cx<'_>, fit: usize) -> usize {
    pages(pane, opened, cx).iter().map(|page| page.places(fit)).max().unwrap_or(1)
}

fn pages(pane: &Accounts, opened: &OpenedHolder, cx: &Cx<'_>) -> Vec<Page> {
    let (width, look) = (cx.area.width, cx.look);
    let Some(holder) = pane.holder(opened) else {
        let mut page = Page::new(width, look);
        page.text("this account is gone", look.faint());
        return vec![page];
    };
    if holder.actor.is_none() {
        let mut page = Page::new(width, look);
        account(pane, holder, &mut page);
        return vec![page];
    }
    let (left, right) = match width {
        0..WIDE => (width, 0),
        _ => (width - width / 2, width / 2 - GAP),
    };
    let mut page = Page::new(left, look);
    actor(pane, opened, holder, &mut page);
    if right == 0 {
        activity(opened, &mut page);
        return vec![page];
    }
    let mut aside = Page::new(right, look);
    activity(opened, &mut aside);
    vec![page, aside]
}

fn account(pane: &Accounts, holder: &AnyAccount, page: &mut Page) {
    page.plain("name", &or_dash(holder.name.clone()));
    page.plain("address", &holder.address.to_string());
    page.plain("balance", &amount(Wei::new(holder.balance)));
    page.plain("nonce", &or_dash(holder.nonce.map(|nonce| grouped(nonce.into()))));
    page.title("actors that it deployed");
    let all = pane.holders.iter().filter_map(|one| one.actor.as_ref());
    let deployed = all.filter(|actor| actor.deployer == holder.address);
    let rows: Vec<Vec<Cell>> = deployed
        .map(|actor| {
            vec![
                plain(or_dash(actor.name.clone())),
                plain(grouped(actor.deployed_at.into())),
                plain(amount(*actor.balance)),
                plain(actor.actor.to_string()),
            ]
        })
        .collect();
    let columns = [
        Column::text("name"),
        Column::number("deployed at"),
        Column::number("balance"),
        Column::long("address"),
    ];
    match rows.is_empty() {
        true => page.text("none", page.look().faint()),
        false => page.table(&columns, &rows),
    }
}

fn actor(pane: &Accounts, opened: &OpenedHolder, holder: &AnyAccount, page: &mut Page) {
    let look = page.look();
    page.plain("address", &holder.address.to_string());
    page.plain("balance", &amount(Wei::new(holder.balance)));
    page.plain("calls", &format!("{} seen here", grouped(pane.calls(holder.address).into())));
    let Some(actor) = &opened.actor else {
        let text = opened.refused.as_deref().unwrap_or("asking for the actor");
        return page.text(text, look.faint());
    };
    let deployer = named(actor.deployer_name.as_deref(), &actor.deployer);
    let at = grouped(actor.deployed_at.into());
    page.plain("language", &actor.language);
    page.plain("owner", &pane.named(actor.owner));
    page.plain("deployed", &format!("at {at} by {deployer}"));
    page.plain("code", &actor.code.to_string());
    page.plain("keeps", &format!("{} bytes of heap", grouped(actor.retained.into())));
    if !actor.handlers.is_empty() {
        let signature =
            |handler: &Handler| format!("{}({})", handler.name, handler.parameters.join(", "));
        let all: Vec<_> = actor.handlers.iter().map(signature).collect();
        page.plain("handlers", &all.join(" "));
    }
    store(actor, page);
    if !actor.continuations.is_empty() {
        page.title(&format!("continuations: {}", actor.continuations.len()));
        let row = |waiting: &WaitingContinuation| -> Vec<Cell> {
            vec![
                plain(waiting.job_id.to_string()),
                plain(grouped(waiting.submitted_at.into())),
                plain(grouped(waiting.deadline.into())),
                plain(printable(&waiting.handler)),
            ]
        };
        page.table(&CONTINUATIONS, &actor.continuations.iter().map(row).collect::<Vec<_>>());
    }
}

fn store(actor: &Actor, page: &mut Page) {
    let count = grouped(actor.state.len() as u128);
    page.title(&match &actor.next {
        Some(_) => format!("store: the first {count} entries"),
        None => format!("store: {count} entries"),
    });
    let row = |entry: &StateEntry| -> Vec<Cell> {
        vec![plain(printable(&entry.key)), plain(printable(&entry.value.to_string()))]
    };
    match actor.state.is_empty() {
        true => page.text("empty", page.look().faint()),
        false => page.table(&STORE, &actor.state.iter().map(row).collect::<Vec<_>>()),
    }
}

/// The timers of an actor and the last lines of its log, the newest first.
fn activity(opened: &OpenedHolder, page: &mut Page) {
    let look = page.look();
    page.title("timers");
    match opened.timers.as_deref() {
        None => page.text("asking", look.faint()),
        Some([]) => page.text("none", look.faint()),
        Some(timers) => {
            let row = |timer: &TimerSummary| -> Vec<Cell> {
                vec![
                    plain(timer.timer_id.to_string()),
                    plain(timer.status.to_string()),
                    plain(grouped(timer.fired_at.unwrap_or(timer.height).into())),
                    plain(printable(&timer.handler)),
                ]
            };
            page.table(&TIMERS, &timers.iter().map(row).collect::<Vec<_>>());
        }
    }
    page.title("log, the newest first");
    match opened.log.as_deref() {
        None => page.text("asking", look.faint()),
        Some([]) => page.text("nothing yet", look.faint()),
        Some(log) => {
            let rows: Vec<_> = log.iter().rev().map(|line| log_row(line, look)).collect();
            page.table(&LOG, &rows);
        }
    }
}

fn log_row(line: &ActorLine, look: Look) -> Vec<Cell> {
    let (word, style) = match line.kind {
        ActorLineKind::Log => ("log", Style::new()),
        ActorLineKind::Event => ("event", look.busy()),
        ActorLineKind::Error => ("error", look.bad()),
    };
    let data = line.data.as_ref().map(ToString::to_string).unwrap_or_default();
    let text = match (&line.text, &line.name) {
        (Some(text), _) => text.clone(),
        (None, Some(name)) => format!("{name} {data}"),
        (None, None) => data,
    };
    vec![plain(grouped(line.height.into())), (word.to_owned(), style), plain(printable(&text))]
}

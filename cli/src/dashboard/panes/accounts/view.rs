//! The list of accounts and actors.

use super::{Accounts, AnyAccount, HolderKind, OpenedHolder, opened};
use crate::{
    dashboard::{
        arrangement::{Column, SortKey},
        drawing::{Cell, beneath, lines, list_grid, list_rows, plain, section, unlike, wrapped},
        pane::Cx,
    },
    output::{amount, grouped, or_dash},
};
use cowboy_engine::primitives::Wei;
use ratatui::{buffer::Buffer, style::Style, text::Line};

pub const COLUMNS: [Column; 9] = [
    Column::text("name"),
    Column::number("balance"),
    Column::text("kind"),
    Column::number("nonce"),
    Column::text("language"),
    Column::number("entries"),
    Column::number("calls"),
    Column::long("address"),
    Column::long("owner"),
];

pub const fn kind(holder: &AnyAccount) -> &'static str {
    if holder.actor.is_some() { "actor" } else { "account" }
}

/// An account's value in a column.
pub fn key(pane: &Accounts, holder: &AnyAccount, column: usize) -> SortKey {
    let figures = pane.figures(holder.address);
    match COLUMNS[column].name {
        "name" => holder.name.as_ref().map_or(SortKey::Nothing, SortKey::text),
        "kind" => SortKey::text(kind(holder)),
        "balance" => SortKey::number(holder.balance),
        "nonce" => SortKey::of(holder.nonce),
        "language" => figures.map_or(SortKey::Nothing, |known| SortKey::text(&known.language)),
        "entries" => SortKey::of(figures.map(|known| known.entries as u64)),
        "calls" => SortKey::number(pane.calls(holder.address)),
        "owner" => figures.map_or(SortKey::Nothing, |known| SortKey::text(known.owner)),
        _ => SortKey::text(holder.address),
    }
}

pub fn draw(pane: &Accounts, cx: &Cx<'_>, buffer: &mut Buffer) {
    if let Some(opened) = &pane.opened {
        return opened::draw(pane, opened, cx.area, cx, buffer);
    }
    let accepted = pane.accepted(cx);
    let (list, below) = beneath(cx.area, accepted.len());
    if let Some(chosen) = pane.chosen(cx).filter(|_| below.height > 0) {
        let unknown = OpenedHolder::new(chosen);
        opened::draw(pane, pane.preview(cx).unwrap_or(&unknown), below, cx, buffer);
    }
    let area = section(&title(pane, accepted.len(), cx), list, cx.look, buffer);
    if accepted.is_empty() {
        let text = nothing(pane, cx);
        let text = wrapped(&text, area.width).into_iter();
        return lines(text.map(|line| Line::styled(line, cx.look.faint())), area, buffer);
    }
    let (seen, selected) = pane.cursor(&accepted).seen(&accepted, list_rows(list));
    let rows: Vec<_> = seen.iter().map(|holder| row(pane, holder, cx)).collect();
    list_grid(&COLUMNS, COLUMNS.len(), &rows, selected, area, cx, buffer);
}

fn title(pane: &Accounts, accepted: usize, cx: &Cx<'_>) -> String {
    if !pane.is_known() {
        return "accounts".to_owned();
    }
    let count = |kind| grouped(pane.all(kind).count() as u128);
    let title = match pane.kind {
        HolderKind::All => {
            let (accounts, actors) = (count(HolderKind::Accounts), count(HolderKind::Actors));
            format!("{accounts} accounts, {actors} actors")
        }
        HolderKind::Accounts => format!("{} accounts", count(HolderKind::Accounts)),
        HolderKind::Actors => format!("{} actors", count(HolderKind::Actors)),
    };
    match cx.filter.is_empty() {
        true => title,
        false => format!("{title}; {} match", grouped(accepted as u128)),
    }
}

fn nothing(pane: &Accounts, cx: &Cx<'_>) -> String {
    match (pane.is_known(), &pane.refused) {
        (false, Some(reason)) => format!("no accounts: {reason}"),
        (false, None) => "asking".to_owned(),
        (true, _) if cx.filter.is_empty() && pane.kind == HolderKind::Actors => {
            "no actors yet: cowboyctl actor deploy FILE; a shows accounts".to_owned()
        }
        (true, _) => {
            let narrowed = (pane.kind != HolderKind::All).then_some("a shows others");
            unlike("account", narrowed, cx)
        }
    }
}

fn row(pane: &Accounts, holder: &AnyAccount, cx: &Cx<'_>) -> Vec<Cell> {
    let is_actor = holder.actor.is_some();
    let figures = pane.figures(holder.address);
    let entries = figures.map(|known| {
        let more = if known.more { "+" } else { "" };
        format!("{}{more}", grouped(known.entries as u128))
    });
    let calls = is_actor.then(|| grouped(pane.calls(holder.address).into()));
    vec![
        plain(or_dash(holder.name.clone())),
        plain(amount(Wei::new(holder.balance))),
        (kind(holder).to_owned(), if is_actor { cx.look.busy() } else { Style::new() }),
        plain(or_dash(holder.nonce.map(|nonce| grouped(nonce.into())))),
        plain(or_dash(figures.map(|known| known.language.clone()))),
        plain(or_dash(entries)),
        plain(or_dash(calls)),
        plain(holder.address.to_string()),
        plain(or_dash(figures.map(|known| pane.named(known.owner)))),
    ]
}

//! The list of blocks, and one of them with its transactions.

use super::{
    BlockLevel, NewestBlocks,
    receipt::{self, style},
};
use crate::{
    dashboard::{
        arrangement::{Column, SortKey},
        drawing::{
            Cell, Page, beneath,
            facts::{self, Facts},
            grid, lines, list_grid, list_rows, plain, printable, section, split, unlike,
        },
        look::Look,
        pane::Cx,
        panes::events::happened,
        rows::Cursor,
        shared::SeenBlock,
    },
    output::{amount, cut, grouped, millis, or_dash, seconds_since, share},
};
use cowboy_devnet::types::{Block, BlockFire, BlockTransaction, TimerStatus};
use ratatui::{buffer::Buffer, layout::Rect, style::Style, text::Line};
use std::ops::Range;

/// Rows of facts about a block, including their rule.
const FACTS: u16 = 6;

/// The minimum rows of a block for its facts.
const LOW: u16 = 14;

/// Columns of a timer's id.
const TIMER: usize = 14;

/// The minimum rows below the transactions for fires and events.
const BELOW: u16 = 4;

pub const COLUMNS: [Column; 13] = [
    Column::number("block"),
    Column::number("ago"),
    Column::text("proposer"),
    Column::number("txs"),
    Column::number("failed"),
    Column::number("fires"),
    Column::number("load"),
    Column::number("present"),
    Column::number("finality"),
    Column::number("events"),
    Column::number("cycles"),
    Column::number("cells"),
    Column::long("hash"),
];

const TRANSACTIONS: [Column; 7] = [
    Column::number("#"),
    Column::text("kind"),
    Column::text("status"),
    Column::number("fee"),
    Column::long("from"),
    Column::long("transaction"),
    Column::long("error"),
];

const FIRES: [Column; 6] = [
    Column::text("timer"),
    Column::text("status"),
    Column::long("handler"),
    Column::number("cycles"),
    Column::number("due at"),
    Column::long("actor"),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockAreas {
    pub list: Rect,
    /// The block in full: opened, or under the cursor if there is room below the list.
    pub block: Rect,
    facts: Rect,
    pub transactions: Rect,
    below: Rect,
}

pub fn shape(pane: &NewestBlocks, cx: &Cx<'_>) -> BlockAreas {
    let (list, block) = match pane.level {
        BlockLevel::Blocks => beneath(cx.area, cx.shared.blocks.len()),
        BlockLevel::Block { .. } => (Rect { height: 0, ..cx.area }, cx.area),
    };
    let (facts, rest) = split(block, if block.height < LOW { 0 } else { FACTS });
    let count = pane.full(cx).map_or(0, |block| block.transactions.len());
    let wanted = if count == 0 { 0 } else { count.min(10_000) as u16 + 2 };
    let rows = match rest.height.checked_sub(wanted) {
        Some(BELOW..) => wanted,
        _ if count == 0 => 0,
        _ if rest.height > 4 * BELOW => rest.height * 2 / 3,
        _ => rest.height,
    };
    let (transactions, below) = split(rest, rows);
    BlockAreas { list, block, facts, transactions, below }
}

/// The visible transactions of a block.
pub fn seen(pane: &NewestBlocks, shape: &BlockAreas, block: &Block) -> Range<usize> {
    let cursor = match pane.level {
        BlockLevel::Block { cursor, .. } => cursor,
        BlockLevel::Blocks => Cursor::default(),
    };
    cursor.window(block.transactions.len(), list_rows(shape.transactions))
}

/// The number of places for the cursor in a block, and of those that are visible.
pub fn places(pane: &NewestBlocks, shape: &BlockAreas, cx: &Cx<'_>) -> (usize, usize) {
    match pane.full(cx) {
        Some(block) if !block.transactions.is_empty() => {
            (block.transactions.len(), list_rows(shape.transactions))
        }
        Some(block) => {
            let fit = shape.below.height.into();
            (below(block, shape.below.width, cx.look).places(fit), fit)
        }
        None => (0, 0),
    }
}

/// A block's value in a column.
pub fn key(block: &SeenBlock, column: usize, cx: &Cx<'_>) -> SortKey {
    let figures = cx.shared.figures(block.height);
    match COLUMNS[column].name {
        "proposer" => SortKey::text(block.proposer.as_deref().unwrap_or_default()),
        "txs" => SortKey::number(block.transactions),
        "failed" => SortKey::of(figures.map(|figures| figures.failed)),
        "fires" => SortKey::number(block.fires),
        "present" => SortKey::number(block.present),
        "finality" => SortKey::of(figures.and_then(|figures| figures.latency)),
        "events" => SortKey::number(block.events as u64),
        "load" | "cycles" => SortKey::of(figures.map(|figures| figures.cycles)),
        "cells" => SortKey::of(figures.map(|figures| figures.cells)),
        "hash" => SortKey::text(block.hash),
        // The youngest block is the highest.
        _ => SortKey::number(block.height),
    }
}

pub fn draw(pane: &NewestBlocks, cx: &Cx<'_>, buffer: &mut Buffer) {
    let shape = shape(pane, cx);
    if let BlockLevel::Block { transaction: Some(opened), .. } = &pane.level {
        let area = section(&format!("transaction {}", opened.key), cx.area, cx.look, buffer);
        return receipt::page(opened, cx).draw(opened.first, area, buffer);
    }
    if pane.level == BlockLevel::Blocks {
        draw_list(pane, &shape, cx, buffer);
    }
    if shape.block.height > 0 {
        draw_block(pane, &shape, cx, buffer);
    }
}

fn draw_list(pane: &NewestBlocks, shape: &BlockAreas, cx: &Cx<'_>, buffer: &mut Buffer) {
    let accepted = NewestBlocks::accepted(cx);
    let known = cx.shared.blocks.len();
    let title = match accepted.len() == known {
        true => format!("blocks: the newest {}", grouped(known as u128)),
        false => format!("blocks: {} of the newest {}", accepted.len(), grouped(known as u128)),
    };
    let area = section(&title, shape.list, cx.look, buffer);
    if accepted.is_empty() {
        let text = match known {
            0 => "no blocks yet".to_owned(),
            _ => unlike("block", None, cx),
        };
        return lines([Line::styled(text, cx.look.faint())], area, buffer);
    }
    let (seen, selected) = pane.cursor(&accepted).seen(&accepted, list_rows(shape.list));
    let rows: Vec<_> = seen.iter().map(|block| row(block, cx)).collect();
    list_grid(&COLUMNS, COLUMNS.len(), &rows, selected, area, cx, buffer);
}

fn row(block: &SeenBlock, cx: &Cx<'_>) -> Vec<Cell> {
    let look = cx.look;
    let figures = cx.shared.figures(block.height);
    let limit = cx.shared.parameters.as_ref().map(|known| known.cycle_limit);
    let load = figures.zip(limit).map(|(figures, limit)| share(figures.cycles, limit));
    let failed = match figures.map_or(0, |figures| figures.failed) {
        0 => plain(or_dash(figures.map(|_| 0))),
        count => (count.to_string(), look.bad()),
    };
    let present = format!("{} of {}", block.present, block.registry_len);
    let all = block.present == block.registry_len;
    let number = |value: u64| grouped(value.into());
    vec![
        plain(number(block.height)),
        plain(seconds_since(block.finalized_at, cx.now)),
        plain(or_dash(block.proposer.clone())),
        plain(number(block.transactions.into())),
        failed,
        plain(number(block.fires.into())),
        plain(or_dash(load)),
        (present, if all { Style::new() } else { look.warn() }),
        plain(or_dash(figures.and_then(|figures| figures.latency).map(millis))),
        plain(number(block.events as u64)),
        plain(or_dash(figures.map(|figures| number(figures.cycles)))),
        plain(or_dash(figures.map(|figures| number(figures.cells)))),
        plain(block.hash.to_string()),
    ]
}

fn draw_block(pane: &NewestBlocks, shape: &BlockAreas, cx: &Cx<'_>, buffer: &mut Buffer) {
    let look = cx.look;
    let Some(block) = pane.full(cx) else {
        let chosen = pane.chosen(cx);
        let title = chosen.map_or_else(String::new, |h| format!("block {}", grouped(h.into())));
        let area = section(&title, shape.block, look, buffer);
        let withheld = pane.withheld.as_ref().filter(|(height, _)| Some(*height) == chosen);
        let text = withheld.map_or("asking for the block", |(_, reason)| reason.as_str());
        return lines([Line::styled(text.to_owned(), look.faint())], area, buffer);
    };
    let height = grouped(block.height.into());
    let area = section(&format!("block {height}"), shape.facts, look, buffer);
    let (left, right) = about(block, cx);
    facts::draw(&left, &right, area, look, buffer);
    let count = block.transactions.len();
    if count > 0 {
        let title = format!("transactions of block {height}: {}", grouped(count as u128));
        let area = section(&title, shape.transactions, look, buffer);
        let seen = seen(pane, shape, block);
        let selected = match pane.level {
            BlockLevel::Block { cursor, .. } => cursor.of(count).checked_sub(seen.start),
            BlockLevel::Blocks => None,
        };
        let shown = block.transactions[seen.clone()].iter().zip(seen.start..);
        let rows: Vec<_> =
            shown.map(|(one, index)| transaction_row(pane, one, index, cx)).collect();
        grid(&TRANSACTIONS, &rows, selected, area, look, buffer);
    }
    let first = match pane.level {
        BlockLevel::Block { cursor, .. } if count == 0 => cursor,
        _ => Cursor::default(),
    };
    below(block, shape.below.width, look).draw(first, shape.below, buffer);
}

fn about(block: &Block, cx: &Cx<'_>) -> (Facts, Facts) {
    let proposed = match &block.proposer {
        Some(proposer) => format!("{proposer}, in view {}", grouped(block.view.into())),
        None => "none, it is the genesis".to_owned(),
    };
    let latency = cx.shared.figures(block.height).and_then(|figures| figures.latency);
    let since = seconds_since(*block.timestamp, cx.now);
    let of = |used: u64, limit: Option<u64>| match limit {
        Some(limit) => format!("{}, {}", grouped(used.into()), share(used, limit)),
        None => grouped(used.into()),
    };
    let limits = cx.shared.parameters.as_ref();
    let certified = match block.certificate_for.as_slice() {
        [] => "none".to_owned(),
        heights => heights.iter().map(u64::to_string).collect::<Vec<_>>().join(", "),
    };
    let left = [
        ("hash", block.hash.to_string()),
        ("proposer", proposed),
        ("proposed", format!("{since} ago, at {}", block.timestamp)),
        ("finality", or_dash(latency.map(millis))),
        ("state root", block.state_root.to_string()),
    ];
    let right = [
        ("cycles", of(block.cycles_used, limits.map(|limits| limits.cycle_limit))),
        ("cells", of(block.cells_used, limits.map(|limits| limits.cell_limit))),
        ("fires", grouped(block.fires.len() as u128)),
        ("events", grouped(block.events.len() as u128)),
        ("certifies", certified),
    ];
    let facts = |all: [(&'static str, String); 5]| {
        all.map(|(name, text)| (name, facts::raw(text))).into_iter().collect()
    };
    (facts(left), facts(right))
}

fn transaction_row(
    pane: &NewestBlocks,
    transaction: &BlockTransaction,
    index: usize,
    cx: &Cx<'_>,
) -> Vec<Cell> {
    let known = pane.receipt(transaction.hash);
    let fee = known.and_then(|known| known.fee.as_ref());
    let fee = fee.map(|fee| amount(fee.burned.saturating_add(*fee.tip)));
    let name = known.and_then(|known| known.sender_name.clone());
    let error = known.and_then(|known| known.message.clone().or_else(|| known.error.clone()));
    vec![
        plain(index.to_string()),
        plain(transaction.kind.clone()),
        (transaction.status.name().to_owned(), style(transaction.status, cx.look)),
        plain(or_dash(fee)),
        plain(name.unwrap_or_else(|| transaction.sender.to_string())),
        plain(transaction.hash.to_string()),
        (printable(&error.unwrap_or_default()), cx.look.bad()),
    ]
}

/// What else happened in a block: the timers that fired in it, and its events.
fn below(block: &Block, width: u16, look: Look) -> Page {
    let mut page = Page::new(width, look);
    if !block.fires.is_empty() {
        let count = grouped(block.fires.len() as u128);
        page.title(&format!("timers fired in block {}: {count}", grouped(block.height.into())));
        let row = |fire: &BlockFire| -> Vec<Cell> {
            let style = if fire.status == TimerStatus::Fired { look.good() } else { look.bad() };
            vec![
                plain(cut(&fire.timer_id.to_string(), TIMER)),
                (fire.status.to_string(), style),
                plain(fire.handler.clone()),
                plain(grouped(fire.cycles.into())),
                plain(grouped(fire.due_at.into())),
                plain(fire.actor.to_string()),
            ]
        };
        page.table(&FIRES, &block.fires.iter().map(row).collect::<Vec<_>>());
    }
    let count = grouped(block.events.len() as u128);
    page.title(&format!("events of block {}: {count}", grouped(block.height.into())));
    match block.events.is_empty() {
        true => page.text("none", look.faint()),
        false => happened(
            &mut page,
            block.events.iter().map(|event| (event.height, event.kind.as_str(), &event.data)),
        ),
    }
    page
}

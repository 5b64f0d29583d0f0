//! Accounts and actors, and one of them in full.

mod opened;
mod view;

use crate::dashboard::{
    arrangement::Column,
    drawing::{beneath, list_row_at, list_rows, page},
    news::{Answer, Ask},
    pane::{Cx, Pane},
    rows::{Cursor, Pick},
    shared::AT_A_TIME,
};
use cowboy_devnet::types::{
    Account, Actor, ActorLine, ActorSummary, AddressText, BlockNotice, TimerSummary,
};
use crossterm::event::{KeyCode, KeyEvent};
use ratatui::{buffer::Buffer, layout::Position};
use std::collections::{BTreeMap, BTreeSet};

/// The event of every call of an actor.
const CALLED: &str = "ActorCalled";

/// Maximum number of actors whose calls are counted, and whose details are kept.
const COUNTED: usize = 10_000;
const KEPT: usize = 200;

/// Which accounts are listed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HolderKind {
    #[default]
    All,
    Accounts,
    Actors,
}

/// An account or an actor. An actor has a nonce too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnyAccount {
    pub address: AddressText,
    pub name: Option<String>,
    /// In wei.
    pub balance: u128,
    pub nonce: Option<u64>,
    pub actor: Option<ActorSummary>,
}

/// What the list shows of an actor that only a request for it returns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActorFigures {
    pub language: String,
    pub owner: AddressText,
    /// Entries of its store, up to a page of them.
    pub entries: usize,
    /// Whether the store has more.
    pub more: bool,
}

/// The opened account or actor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenedHolder {
    pub address: AddressText,
    pub actor: Option<Actor>,
    pub timers: Option<Vec<TimerSummary>>,
    /// The last lines of its log, the oldest first.
    pub log: Option<Vec<ActorLine>>,
    pub refused: Option<String>,
    pub first: Cursor,
}

impl OpenedHolder {
    pub fn new(address: AddressText) -> Self {
        let first = Cursor::default();
        Self { address, actor: None, timers: None, log: None, refused: None, first }
    }
}

#[derive(Debug, Default)]
pub struct Accounts {
    accounts: Option<Vec<Account>>,
    actors: Option<Vec<ActorSummary>>,
    /// Both together: actors, the newest first, then the other accounts.
    holders: Vec<AnyAccount>,
    figures: BTreeMap<AddressText, ActorFigures>,
    /// Actors whose figures are of the newest block that called them.
    fresh: BTreeSet<AddressText>,
    /// Calls of each actor in the blocks since the dashboard runs.
    calls: BTreeMap<AddressText, u64>,
    pub refused: Option<String>,
    pick: Pick<AddressText>,
    pub kind: HolderKind,
    pub opened: Option<OpenedHolder>,
    /// The actor under the cursor, which is shown below the list if there is room.
    preview: Option<OpenedHolder>,
}

impl Accounts {
    /// Whether the devnet has answered.
    pub const fn is_known(&self) -> bool {
        self.accounts.is_some() || self.actors.is_some()
    }

    /// All accounts and actors of this kind.
    pub fn all(&self, kind: HolderKind) -> impl Iterator<Item = &AnyAccount> {
        self.holders.iter().filter(move |holder| match kind {
            HolderKind::All => true,
            HolderKind::Accounts => holder.actor.is_none(),
            HolderKind::Actors => holder.actor.is_some(),
        })
    }

    pub fn accepted(&self, cx: &Cx<'_>) -> Vec<&AnyAccount> {
        let accepts = |holder: &&AnyAccount| {
            let name = holder.name.as_deref().unwrap_or_default();
            cx.filter.is_empty()
                || cx.filter.accepts(&format!("{name} {} {}", holder.address, view::kind(holder)))
        };
        let mut accepted: Vec<_> = self.all(self.kind).filter(accepts).collect();
        cx.arrangement.sort(&mut accepted, |holder, column| view::key(self, holder, column));
        accepted
    }

    pub fn cursor(&self, accepted: &[&AnyAccount]) -> Cursor {
        self.pick.cursor(&addresses(accepted))
    }

    pub fn figures(&self, actor: AddressText) -> Option<&ActorFigures> {
        self.figures.get(&actor)
    }

    pub fn calls(&self, actor: AddressText) -> u64 {
        self.calls.get(&actor).copied().unwrap_or(0)
    }

    /// An account's name, or its address.
    pub fn named(&self, address: AddressText) -> String {
        let known = self.holders.iter().find(|holder| holder.address == address);
        let name = known.and_then(|holder| holder.name.clone());
        name.unwrap_or_else(|| address.to_string())
    }

    /// The opened account or actor.
    pub fn holder(&self, opened: &OpenedHolder) -> Option<&AnyAccount> {
        self.holders.iter().find(|holder| holder.address == opened.address)
    }

    /// What is known of the account under the cursor.
    pub fn preview(&self, cx: &Cx<'_>) -> Option<&OpenedHolder> {
        let chosen = self.chosen(cx)?;
        self.preview.as_ref().filter(|preview| preview.address == chosen)
    }

    /// The opened account, or the one under the cursor, if it has this address.
    fn shown(
        &mut self,
        address: AddressText,
        chosen: Option<AddressText>,
    ) -> Option<&mut OpenedHolder> {
        if self.opened.is_some() {
            return self.opened.as_mut().filter(|opened| opened.address == address);
        }
        let chosen = chosen.filter(|chosen| *chosen == address)?;
        if self.preview.as_ref().is_none_or(|preview| preview.address != chosen) {
            self.preview = Some(OpenedHolder::new(chosen));
        }
        self.preview.as_mut()
    }

    fn is_actor(&self, address: AddressText) -> bool {
        self.holders.iter().any(|holder| holder.address == address && holder.actor.is_some())
    }

    /// The opened account, or the one under the cursor.
    pub fn chosen(&self, cx: &Cx<'_>) -> Option<AddressText> {
        match &self.opened {
            Some(opened) => Some(opened.address),
            None => self.pick.chosen(&addresses(&self.accepted(cx))),
        }
    }

    fn merge(&mut self) {
        let accounts = self.accounts.iter().flatten();
        let nonces: BTreeMap<_, _> =
            accounts.clone().map(|account| (account.address, account.nonce)).collect();
        let actors = self.actors.iter().flatten();
        let known: BTreeSet<_> = actors.clone().map(|actor| actor.actor).collect();
        let actors = actors.map(|actor| AnyAccount {
            address: actor.actor,
            name: actor.name.clone(),
            balance: actor.balance.get(),
            nonce: nonces.get(&actor.actor).copied(),
            actor: Some(actor.clone()),
        });
        let others = accounts.filter(|account| !known.contains(&account.address));
        let others = others.map(|account| AnyAccount {
            address: account.address,
            name: account.name.clone(),
            balance: account.balance.get(),
            nonce: Some(account.nonce),
            actor: None,
        });
        self.holders = actors.chain(others).collect();
        self.refused = None;
    }

    fn hear(&mut self, actor: &Actor) {
        let figures = ActorFigures {
            language: actor.language.clone(),
            owner: actor.owner,
            entries: actor.state.len(),
            more: actor.next.is_some(),
        };
        if self.figures.len() == KEPT {
            self.figures.clear();
            self.fresh.clear();
        }
        self.figures.insert(actor.actor, figures);
        self.fresh.insert(actor.actor);
    }
}

fn addresses(holders: &[&AnyAccount]) -> Vec<AddressText> {
    holders.iter().map(|holder| holder.address).collect()
}

impl Pane for Accounts {
    fn name(&self) -> &'static str {
        "accounts"
    }

    fn short(&self) -> &'static str {
        "acct"
    }

    fn wants(&self, cx: &Cx<'_>) -> Vec<Ask> {
        let mut wants = vec![Ask::Accounts, Ask::Actors];
        let accepted = self.accepted(cx);
        let (list, below) = beneath(cx.area, accepted.len());
        let wants_all = self.opened.is_some() || below.height > 0;
        if let Some(address) = self.chosen(cx).filter(|_| wants_all)
            && self.is_actor(address)
        {
            wants.extend([Ask::Actor(address), Ask::ActorLog(address), Ask::ActorTimers(address)]);
        }
        if self.opened.is_some() {
            return wants;
        }
        let (seen, _) = self.cursor(&accepted).seen(&accepted, list_rows(list));
        let stale = seen.iter().filter(|holder| holder.actor.is_some());
        let stale = stale.filter(|holder| !self.fresh.contains(&holder.address));
        let stale = stale.take(AT_A_TIME).map(|holder| Ask::Actor(holder.address));
        let stale: Vec<_> = stale.filter(|ask| !wants.contains(ask)).collect();
        wants.extend(stale);
        wants
    }

    fn block(&mut self, block: &BlockNotice, _cx: &Cx<'_>) {
        for event in block.events.iter().filter(|event| event.kind == CALLED) {
            let actor = event.data.get("actor").and_then(|actor| actor.as_str());
            let Some(actor) = actor.and_then(|actor| actor.parse().ok()) else { continue };
            self.fresh.remove(&actor);
            if self.calls.len() < COUNTED || self.calls.contains_key(&actor) {
                *self.calls.entry(actor).or_default() += 1;
            }
        }
    }

    fn answer(&mut self, ask: &Ask, answer: &Answer, cx: &Cx<'_>) {
        match (ask, answer) {
            (_, Answer::Accounts(accounts)) => {
                self.accounts = Some(accounts.clone());
                self.merge();
            }
            (_, Answer::Actors(actors)) => {
                self.actors = Some(actors.clone());
                self.merge();
            }
            (Ask::Actor(address), Answer::Actor(actor)) => {
                self.hear(actor);
                if let Some(opened) = self.shown(*address, self.chosen(cx)) {
                    opened.actor = Some(actor.clone());
                    opened.refused = None;
                }
            }
            (Ask::ActorLog(address), Answer::ActorLog(log)) => {
                if let Some(opened) = self.shown(*address, self.chosen(cx)) {
                    opened.log = Some(log.lines.clone());
                }
            }
            (Ask::ActorTimers(address), Answer::ActorTimers(timers)) => {
                if let Some(opened) = self.shown(*address, self.chosen(cx)) {
                    opened.timers = Some(timers.clone());
                }
            }
            _ => {}
        }
    }

    fn refused(&mut self, ask: &Ask, reason: &str) {
        match ask {
            Ask::Accounts | Ask::Actors => self.refused = Some(reason.to_owned()),
            Ask::Actor(address) => {
                // It is asked again after its next call.
                self.fresh.insert(*address);
                if let Some(opened) = self.opened.as_mut().filter(|o| o.address == *address) {
                    opened.refused = Some(reason.to_owned());
                }
            }
            _ => {}
        }
    }

    fn key(&mut self, key: KeyEvent, cx: &Cx<'_>) -> bool {
        if let Some(opened) = &self.opened {
            let fit = page::rows(cx.area);
            let places = opened::places(self, opened, cx, fit);
            return self.opened.as_mut().is_some_and(|opened| opened.first.key(key, places, fit));
        }
        if key.code == KeyCode::Char('a') {
            self.kind = match self.kind {
                HolderKind::All => HolderKind::Actors,
                HolderKind::Actors => HolderKind::Accounts,
                HolderKind::Accounts => HolderKind::All,
            };
            self.pick = Pick::default();
            return true;
        }
        let rows = addresses(&self.accepted(cx));
        let (list, _) = beneath(cx.area, rows.len());
        self.pick.key(key, &rows, list_rows(list))
    }

    fn click(&mut self, at: Position, cx: &Cx<'_>) -> bool {
        let rows = addresses(&self.accepted(cx));
        let (list, _) = beneath(cx.area, rows.len());
        let line = list_row_at(list, at).filter(|_| self.opened.is_none());
        line.is_some_and(|line| self.pick.click(line, &rows, list_rows(list)))
    }

    fn enter(&mut self, cx: &Cx<'_>) -> bool {
        let Some(address) = self.chosen(cx).filter(|_| self.opened.is_none()) else {
            return false;
        };
        self.pick.go(address);
        let preview = self.preview.take().filter(|preview| preview.address == address);
        self.opened = Some(preview.unwrap_or_else(|| OpenedHolder::new(address)));
        true
    }

    fn back(&mut self) -> bool {
        self.opened.take().is_some()
    }

    fn columns(&self) -> &'static [Column] {
        if self.opened.is_some() { &[] } else { &view::COLUMNS }
    }

    fn equivalent(&self, cx: &Cx<'_>) -> Option<String> {
        let chosen = self.chosen(cx);
        let known = self.holders.iter().find(|holder| Some(holder.address) == chosen);
        Some(match known {
            Some(holder) if holder.actor.is_some() => {
                format!("cowboyctl actor show {}", holder.address)
            }
            Some(holder) => format!("cowboyctl account balance {}", holder.address),
            None => "cowboyctl account ls".to_owned(),
        })
    }

    fn keys(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("↑ ↓ PgUp PgDn Home End", "move"),
            ("a", "only actors, only other accounts, or all"),
            ("enter", "an actor with its store, timers and log; an account"),
            ("esc", "back to the list"),
        ]
    }

    fn draw(&self, cx: &Cx<'_>, buffer: &mut Buffer) {
        view::draw(self, cx, buffer);
    }
}

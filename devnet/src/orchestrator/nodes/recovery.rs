//! Handles validators that cannot continue: their disk is full, their files are damaged, or the
//! clock was set back.

use super::{Name, Nodes, Plain};
use crate::{consensus::EngineError, orchestrator::space, topology::Size};
use cowboy_engine::presence::canonical::quorum;
use cowboy_host::last_words;
use std::{fmt, fs, io, time::Instant};

/// Extra free space before validators resume, in percent of the reserve.
const SPACE_MORE: u64 = 10;
/// Minimum free space in bytes before a validator that ended on a full disk starts again, however
/// small the reserve is.
const LEAST_SPACE: u64 = 1_000_000;

/// What is removed from a validator that ended before it took part in consensus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repair {
    /// Everything except the journals of its votes.
    Archives,
    /// The journals as well.
    All,
}

impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Archives => "its archives are",
            Self::All => "its archives and the journals of its votes are",
        })
    }
}

impl Nodes {
    /// Whether the validators that run or wait for space are too few to decide.
    pub(in crate::orchestrator) fn lacks_quorum(&self) -> bool {
        let members = self.config.members.all().len();
        let quorum = quorum(members as u32) as usize;
        self.running().len() + self.paused.len() + self.starved.len() < quorum
    }

    /// Handles a validator that has ended by itself; returns false if it stays down. With a full
    /// disk it waits for space. If it has executed no block since its start, or has not taken part
    /// in consensus (blocks arrive from the others before its own journals are read), its consensus
    /// files may be damaged, and it starts again without them.
    pub(in crate::orchestrator) async fn goes_on(
        &mut self,
        name: &Name,
        error: &EngineError,
    ) -> bool {
        let (home, reserve) = (&self.config.home, self.config.reserve.0);
        let short = space::short(home, reserve.max(Size(LEAST_SPACE)), 0);
        if short.is_some() {
            self.short_at = Some(Instant::now());
        }
        // There may be space again by now, because other validators were handled first and the
        // remains of a failed write are removed.
        let lately = self.short_at.is_some_and(|at| at.elapsed() < last_words::LATELY);
        let full = || {
            let error = error.to_string();
            (lately || is_of_full_disk(&error)).then(|| format!("a disk was full: {error}"))
        };
        if let Some(reason) = short.map(|short| short.to_string()).or_else(full) {
            tracing::error!(validator = %name, %error, %reason, "ended, and waits for space");
            self.bury(name).await;
            if let Some(slot) = self.config.backend.slot(name.as_str()) {
                slot.set_paused(reason);
            }
            self.starved.insert(name.clone());
            return true;
        }
        let began = self.validators.get(name).is_some_and(|validator| {
            let services = validator.handle.services();
            services.takes_part() && services.ledger.head().height() > validator.from
        });
        if began {
            self.repairs.remove(name);
        }
        let repair = match self.repairs.get(name) {
            _ if began || !error.may_be_damage() => return false,
            None => Repair::Archives,
            Some(Repair::Archives) => Repair::All,
            Some(Repair::All) => return false,
        };
        self.repairs.insert(name.clone(), repair);
        tracing::warn!(
            validator = %name, %error,
            "ended before it took part: {repair} removed, other validators have the rest"
        );
        self.bury(name).await;
        let again = match self.clear(name, repair) {
            Ok(()) => self.resume(name).await,
            Err(error) => Err(error.to_string()),
        };
        match again {
            Ok(()) => true,
            Err(error) => {
                tracing::error!(validator = %name, %error, "not started again");
                false
            }
        }
    }

    /// Ends the remaining parts of a validator that has ended by itself.
    async fn bury(&mut self, name: &Name) {
        if let Some(validator) = self.take(name) {
            validator.gateway.close(&self.context).await;
        }
    }

    /// Removes a stopped validator's consensus files. Their contents are in its store or come from
    /// the others.
    fn clear(&self, name: &Name, repair: Repair) -> io::Result<()> {
        let members: Vec<_> = self.config.members.all().iter().map(|member| &member.name).collect();
        for entry in fs::read_dir(self.config.home.consensus_path())? {
            let entry = entry?;
            let file = entry.file_name();
            let Some(file) = file.to_str() else { continue };
            let owner = |member: &&&Name| {
                file.strip_prefix(member.as_str()).is_some_and(|rest| rest.starts_with('-'))
            };
            if members.iter().filter(owner).max_by_key(|member| member.as_str().len())
                != Some(&name)
            {
                continue;
            }
            let journal = file[name.as_str().len()..].starts_with("-simplex-");
            if journal && repair == Repair::Archives {
                continue;
            }
            match entry.file_type()?.is_dir() {
                true => fs::remove_dir_all(entry.path())?,
                false => fs::remove_file(entry.path())?,
            }
        }
        Ok(())
    }

    pub(super) fn forget_pause(&mut self, name: &Name) {
        if (self.paused.remove(name) || self.starved.remove(name))
            && let Some(slot) = self.config.backend.slot(name.as_str())
        {
            slot.set_stopped();
        }
    }

    /// Pauses all validators while a disk is short of space, and resumes them afterwards.
    pub(in crate::orchestrator) async fn look_at_space(&mut self) {
        let (home, reserve) = (&self.config.home, self.config.reserve.0);
        let more = if self.paused.is_empty() { 0 } else { SPACE_MORE };
        let room = |least: Size| space::short(home, reserve.max(least), SPACE_MORE).is_none();
        let fed = !self.starved.is_empty() && room(Size(LEAST_SPACE));
        match space::short(home, reserve, more) {
            Some(short) => {
                let names: Vec<_> = self.validators.keys().cloned().collect();
                if !names.is_empty() {
                    tracing::error!(%short, "validators pause");
                }
                for name in names {
                    self.pause(&name, &short.to_string()).await;
                }
            }
            None => {
                let mut waiting = std::mem::take(&mut self.paused);
                if fed {
                    waiting.append(&mut self.starved);
                }
                for name in waiting {
                    tracing::info!(validator = %name, "there is space again");
                    self.go_on(&name).await;
                }
            }
        }
    }

    /// Restarts all validators if the clock was set back. Their waits and their peers' rate limits
    /// use that clock, so they would stall until it reaches its old time.
    pub(in crate::orchestrator) async fn look_at_clock(&mut self) {
        let Some(by) = self.clock.set_back() else { return };
        let by = Plain(by);
        tracing::warn!("the clock was set back by {by}: validators start again");
        let names: Vec<_> = self.validators.keys().cloned().collect();
        for name in &names {
            self.pause(name, &format!("the clock was set back by {by}")).await;
        }
        for name in &names {
            self.paused.remove(name);
            self.go_on(name).await;
        }
    }

    /// Ends all writing parts of a validator. Its stored data stays readable.
    async fn pause(&mut self, name: &Name, reason: &str) {
        let Some(validator) = self.take(name) else { return };
        if let Some(slot) = self.config.backend.slot(name.as_str()) {
            slot.set_paused(reason.to_owned());
        }
        validator.gateway.close(&self.context).await;
        validator.handle.stop().await;
        self.paused.insert(name.clone());
    }

    /// If the disk is full again, it keeps waiting.
    async fn go_on(&mut self, name: &Name) {
        let Err(error) = self.resume(name).await else { return };
        if !is_of_full_disk(&error) {
            return self.died(name, error);
        }
        tracing::error!(validator = %name, %error, "not started again, and waits for space");
        if let Some(slot) = self.config.backend.slot(name.as_str()) {
            slot.set_paused(format!("a disk was full: {error}"));
        }
        self.starved.insert(name.clone());
    }

    async fn resume(&mut self, name: &Name) -> Result<(), String> {
        let Some(member) = self.member(name.as_str()) else { return Ok(()) };
        self.start_released(&member).await
    }

    pub(in crate::orchestrator) fn died(&mut self, name: &Name, error: String) {
        let last_words = last_words::first(name.as_str(), last_words::LATELY);
        let reason = match last_words {
            Some(words) if !error.contains(&words) => format!("{error}; first: {words}"),
            _ => error,
        };
        tracing::error!(validator = %name, %reason, "died");
        self.take(name);
        if let Some(slot) = self.config.backend.slot(name.as_str()) {
            slot.set_died(reason);
        }
    }
}

fn is_of_full_disk(error: &str) -> bool {
    ["No space left", "disk is full"].iter().any(|words| error.contains(words))
}

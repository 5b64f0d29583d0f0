//! Names of actors, timers and jobs, given by users and kept in a file of the devnet's folder. A
//! reset removes them with the chain.
//!
//! A name refers to one object at a time. Once a timer or a job has ended, its name is free for
//! another one.

use crate::{topology::Name, types::NamedKind};
use commonware_utils::sync::Mutex;
use std::{collections::BTreeMap, fmt};

pub(super) const MOST: usize = 10_000;

/// Saves the names as text for [`Labels::new`]; the error is the reason of the failure.
pub type SaveNames = Box<dyn Fn(&str) -> Result<(), String> + Send + Sync>;

/// The names that users gave, at most `MOST` of one kind.
pub struct Labels {
    kept: Mutex<StoredLabels>,
    save: SaveNames,
}

impl fmt::Debug for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kept.lock().fmt(f)
    }
}

#[derive(Debug, Default)]
struct StoredLabels {
    ids: BTreeMap<NamedKind, BTreeMap<Name, String>>,
    names: BTreeMap<NamedKind, BTreeMap<String, Name>>,
}

impl StoredLabels {
    fn of(ids: BTreeMap<NamedKind, BTreeMap<Name, String>>) -> Self {
        let turned = |(kind, of): (&NamedKind, &BTreeMap<Name, String>)| {
            (*kind, of.iter().map(|(name, id)| (id.clone(), name.clone())).collect())
        };
        let names = ids.iter().map(turned).collect();
        Self { ids, names }
    }
}

impl Labels {
    /// Reads the names from a saved text; an empty text has none.
    pub fn new(text: &str, save: SaveNames) -> Result<Self, serde_json::Error> {
        let ids = match text {
            "" => BTreeMap::new(),
            text => serde_json::from_str(text)?,
        };
        Ok(Self { kept: Mutex::new(StoredLabels::of(ids)), save })
    }

    pub(super) fn id(&self, kind: NamedKind, name: &str) -> Option<String> {
        let name = name.parse::<Name>().ok()?;
        self.kept.lock().ids.get(&kind)?.get(&name).cloned()
    }

    pub(super) fn name(&self, kind: NamedKind, id: &impl ToString) -> Option<String> {
        let kept = self.kept.lock();
        Some(kept.names.get(&kind)?.get(&id.to_string())?.to_string())
    }

    pub(super) fn count(&self, kind: NamedKind) -> usize {
        self.kept.lock().ids.get(&kind).map_or(0, BTreeMap::len)
    }

    pub(super) fn all(&self, kind: NamedKind) -> BTreeMap<Name, String> {
        self.kept.lock().ids.get(&kind).cloned().unwrap_or_default()
    }

    /// Gives an id this name, replacing its previous name. The name may have belonged to another
    /// id. When the names cannot be saved, the error is the reason and nothing changes.
    pub(super) fn give(&self, kind: NamedKind, name: Name, id: String) -> Result<(), String> {
        let mut kept = self.kept.lock();
        let mut ids = kept.ids.clone();
        let of_kind = ids.entry(kind).or_default();
        of_kind.retain(|_, of| *of != id);
        of_kind.insert(name, id);
        let json = serde_json::to_string_pretty(&ids).expect("names are plain data");
        (self.save)(&format!("{json}\n"))?;
        *kept = StoredLabels::of(ids);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn names_are_kept_and_move() {
        let saved = Arc::new(Mutex::new(String::new()));
        let save = saved.clone();
        let save: SaveNames = Box::new(move |text| {
            *save.lock() = text.to_owned();
            Ok(())
        });
        let name = |text: &str| text.parse::<Name>().unwrap();
        let labels = Labels::new("", save).unwrap();
        labels.give(NamedKind::Job, name("build"), "0x01".to_owned()).unwrap();
        labels.give(NamedKind::Timer, name("build"), "0x01".to_owned()).unwrap();
        labels.give(NamedKind::Job, name("test"), "0x02".to_owned()).unwrap();
        labels.give(NamedKind::Job, name("build"), "0x03".to_owned()).unwrap();
        labels.give(NamedKind::Job, name("check"), "0x02".to_owned()).unwrap();
        let full: SaveNames = Box::new(|_| Err("no space".to_owned()));
        let again = Labels::new(&saved.lock(), full).unwrap();
        assert_eq!(
            again.give(NamedKind::Job, name("late"), "0x04".to_owned()),
            Err("no space".into())
        );
        for labels in [labels, again] {
            let id = |name: &str| labels.id(NamedKind::Job, name);
            assert_eq!(id("build").as_deref(), Some("0x03"));
            assert_eq!(id("check").as_deref(), Some("0x02"));
            assert_eq!((id("test"), id("No Name"), id("late")), (None, None, None));
            assert_eq!(labels.name(NamedKind::Job, &"0x01"), None);
            assert_eq!(labels.name(NamedKind::Timer, &"0x01").as_deref(), Some("build"));
            assert_eq!(labels.all(NamedKind::Actor), BTreeMap::new());
        }
        assert!(Labels::new("garbage", Box::new(|_| Ok(()))).is_err());
    }
}

//! The names of a devnet's accounts and nodes.

use crate::types::Text;
use commonware_utils::sync::Mutex;
use cowboy_engine::primitives::Address;
use cowboy_host::spelling::nearest;
use std::collections::BTreeMap;

/// The names of a devnet's accounts and nodes. An address without a name is shown as it is.
#[derive(Debug, Default)]
pub struct NodeNames(Mutex<NamedAddresses>);

#[derive(Debug, Default)]
struct NamedAddresses {
    by_address: BTreeMap<Address, String>,
    by_name: BTreeMap<String, Address>,
}

impl NodeNames {
    pub(super) fn insert(&self, name: &str, address: Address) {
        let mut named = self.0.lock();
        named.by_address.insert(address, name.to_owned());
        named.by_name.insert(name.to_owned(), address);
    }

    /// Gives an address this name, replacing its previous one, unless another address has the name.
    pub(in crate::api) fn give(&self, name: &str, address: Address) {
        let mut named = self.0.lock();
        if named.by_name.get(name).is_some_and(|known| *known != address) {
            return;
        }
        if let Some(before) = named.by_address.insert(address, name.to_owned()) {
            named.by_name.remove(&before);
        }
        named.by_name.insert(name.to_owned(), address);
    }

    pub fn get(&self, address: &Address) -> Option<String> {
        self.0.lock().by_address.get(address).cloned()
    }

    pub fn of(&self, address: &Address) -> String {
        self.get(address).unwrap_or_else(|| address.to_string())
    }

    pub(in crate::api) fn named(&self, name: &str) -> Option<Address> {
        self.0.lock().by_name.get(name).copied()
    }

    /// The name that was probably meant, among addresses for which `holds` is true.
    pub fn nearest(&self, typed: &str, holds: impl Fn(&Address) -> bool) -> Option<String> {
        let named = self.0.lock();
        let names = named.by_name.iter().filter(|(_, address)| holds(address));
        nearest(typed, names.map(|(name, _)| name.as_str())).map(str::to_owned)
    }

    pub fn resolve(&self, text: &str) -> Option<Address> {
        let named = self.0.lock().by_name.get(text).copied();
        named.or_else(|| text.parse::<Text<Address>>().ok().map(|address| address.0))
    }
}

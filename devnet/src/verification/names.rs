//! Names of nodes and accounts: those of a topology, and labels that a devnet assigns.

use crate::types::AddressText;
use cowboy_engine::primitives::Address;
use std::collections::BTreeMap;

/// The names of a topology. Any other name that a devnet uses for an address is its own label and
/// cannot be verified.
#[derive(Debug)]
pub(super) struct Names {
    by_name: BTreeMap<String, Address>,
    by_address: BTreeMap<Address, String>,
}

impl Names {
    pub(super) fn of(by_name: BTreeMap<String, Address>) -> Self {
        let by_address = by_name.iter().map(|(name, address)| (*address, name.clone())).collect();
        Self { by_name, by_address }
    }

    pub(super) fn address(&self, name: &str) -> Option<Address> {
        self.by_name.get(name).copied()
    }

    pub(super) fn name(&self, address: &Address) -> String {
        self.by_address.get(address).cloned().unwrap_or_else(|| address.to_string())
    }

    /// `said` if it is a valid name for the address, otherwise the address's name.
    pub(super) fn shown(&self, address: &Address, said: Option<&str>) -> String {
        let is_name = |said: &&str| match self.by_name.get(*said) {
            Some(named) => named == address,
            None => said.parse::<AddressText>().map_or(true, |other| *other == *address),
        };
        said.filter(is_name).map_or_else(|| self.name(address), str::to_owned)
    }

    /// Like [`Self::shown`], for addresses in order.
    pub(super) fn listed<'a>(
        &self,
        addresses: impl IntoIterator<Item = &'a Address>,
        said: &[String],
    ) -> Vec<String> {
        let said = said.iter().map(|name| Some(name.as_str())).chain(std::iter::repeat(None));
        addresses.into_iter().zip(said).map(|(address, said)| self.shown(address, said)).collect()
    }
}

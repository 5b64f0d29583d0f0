//! What nodes and accounts are called: names of a topology, and labels that a devnet gives.

use crate::api::types::AddressText;
use cowboy_engine::primitives::Address;
use std::collections::BTreeMap;

/// The names of a topology. What else a devnet calls an address is its own label: nobody can say
/// whether it is right.
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

    /// The address that bears a name.
    pub(super) fn address(&self, name: &str) -> Option<Address> {
        self.by_name.get(name).copied()
    }

    /// The name of an address, or the address.
    pub(super) fn name(&self, address: &Address) -> String {
        self.by_address.get(address).cloned().unwrap_or_else(|| address.to_string())
    }

    /// `said`, where it may stand for the address; else what does.
    pub(super) fn shown(&self, address: &Address, said: Option<&str>) -> String {
        let stands = |said: &&str| match self.by_name.get(*said) {
            Some(named) => named == address,
            None => said.parse::<AddressText>().map_or(true, |other| *other == *address),
        };
        said.filter(stands).map_or_else(|| self.name(address), str::to_owned)
    }

    /// As [`Self::shown`], for addresses in order.
    pub(super) fn listed<'a>(
        &self,
        addresses: impl IntoIterator<Item = &'a Address>,
        said: &[String],
    ) -> Vec<String> {
        let said = said.iter().map(|name| Some(name.as_str())).chain(std::iter::repeat(None));
        addresses.into_iter().zip(said).map(|(address, said)| self.shown(address, said)).collect()
    }
}

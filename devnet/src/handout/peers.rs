//! `peers.yaml`: where the validators of a chain listen.

use super::{GenesisDocument, load};
use crate::{
    topology::{Name, TopologyError},
    types::{Bytes, BytesText, KeyText, Text},
};
use commonware_codec::{Copying, DecodeExt as _};
use commonware_cryptography::ed25519::PublicKey;
use cowboy_engine::chain::GenesisValidator;
use cowboy_host::host_port::HostPort;
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

/// The places of a chain's validators. People may write the file, so it may have comments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "the field `validators` with a list")]
pub struct Peers {
    pub validators: Vec<ValidatorPlace>,
    /// Validators of the genesis document that have left the devnet since.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<Name>,
}

/// Where one validator listens. A host may be a name, which is looked up again and again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "the fields of a validator: name, p2p, quic, api")]
pub struct ValidatorPlace {
    pub name: Name,
    /// For other validators.
    pub p2p: HostPort,
    /// For runners.
    pub quic: HostPort,
    /// The URL of its control API, for runners.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api: Option<String>,
    /// Its keys, if it has joined since genesis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<JoinedKeys>,
}

/// The public keys of a validator that is not in the genesis document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "the fields of keys: identity, consensus")]
pub struct JoinedKeys {
    pub identity: KeyText,
    pub consensus: BytesText,
}

impl JoinedKeys {
    fn validator(&self) -> Option<GenesisValidator> {
        let consensus_key: [u8; 32] = self.consensus.0.0.as_slice().try_into().ok()?;
        let is_key = PublicKey::decode(Copying(&consensus_key)).is_ok();
        is_key.then(|| GenesisValidator { pubkey: self.identity.0.clone(), consensus_key })
    }
}

impl From<GenesisValidator> for JoinedKeys {
    fn from(validator: GenesisValidator) -> Self {
        let consensus = Text(Bytes(validator.consensus_key.to_vec()));
        Self { identity: validator.pubkey.into(), consensus }
    }
}

/// Why a list of peers does not fit a chain.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PeersError {
    #[error("validators: `{0}` is listed twice")]
    Twice(Name),
    #[error("validators: `{name}` is no validator of the genesis document; these are {known}")]
    Unknown { name: Name, known: String },
    #[error("validators: `{0}` has keys that no validator can have")]
    Keys(Name),
    #[error("validators: `{0}` of the genesis document is missing")]
    Missing(String),
    #[error("validators: `{one}` and `{other}` both have the {field} {place}")]
    SharedPlace { one: Name, other: Name, field: &'static str, place: HostPort },
}

impl Peers {
    pub fn load(path: &Path) -> Result<Self, TopologyError> {
        Ok(load(path)?.0)
    }

    /// The contents of a file.
    pub fn to_yaml(&self) -> String {
        let yaml = serde_yaml::to_string(self).expect("places are plain data");
        format!(
            "# Where the validators of the chain listen. A host may be an address or a name.\n{yaml}"
        )
    }

    /// Each validator of the chain with its place: those of the genesis document in its order, then
    /// those that have joined.
    pub fn of(
        &self,
        document: &GenesisDocument,
    ) -> Result<Vec<(GenesisValidator, &ValidatorPlace)>, PeersError> {
        let named = |validator: &GenesisValidator| {
            let address = validator.pubkey.address();
            let found = document.names.iter().find(|(_, named)| **named == address);
            found.map(|(name, _)| name)
        };
        let validators = &document.genesis.validators;
        let mut seen = BTreeSet::new();
        for ValidatorPlace { name, keys, .. } in &self.validators {
            if !seen.insert(name) {
                return Err(PeersError::Twice(name.clone()));
            }
            if keys.is_none() && !validators.iter().any(|validator| named(validator) == Some(name))
            {
                let known = validators.iter().filter_map(named).map(Name::as_str);
                let known = known.collect::<Vec<_>>().join(", ");
                return Err(PeersError::Unknown { name: name.clone(), known });
            }
        }
        self.check_places()?;
        let stays = |validator: &&GenesisValidator| {
            named(validator).is_none_or(|name| !self.left.contains(name))
        };
        let place = |validator: &GenesisValidator| {
            let name = named(validator);
            let place = self.validators.iter().find(|place| Some(&place.name) == name);
            let missing = || {
                let address = || validator.pubkey.address().to_string();
                PeersError::Missing(name.map_or_else(address, Name::to_string))
            };
            Ok((validator.clone(), place.ok_or_else(missing)?))
        };
        let joined = self.validators.iter().filter_map(|place| {
            let keys = place.keys.as_ref()?;
            let unfit = || PeersError::Keys(place.name.clone());
            Some(keys.validator().map(|validator| (validator, place)).ok_or_else(unfit))
        });
        validators.iter().filter(stays).map(place).chain(joined).collect()
    }

    fn check_places(&self) -> Result<(), PeersError> {
        let (mut p2p, mut quic) = (BTreeMap::new(), BTreeMap::new());
        for place in &self.validators {
            for (field, at, seen) in
                [("p2p", &place.p2p, &mut p2p), ("quic", &place.quic, &mut quic)]
            {
                if let Some(one) = seen.insert(at, &place.name) {
                    let (one, other) = (one.clone(), place.name.clone());
                    return Err(PeersError::SharedPlace { one, other, field, place: at.clone() });
                }
            }
        }
        Ok(())
    }

    /// The URLs of the control APIs.
    pub fn apis(&self) -> Vec<String> {
        self.validators.iter().filter_map(|place| place.api.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{handout::fixture::document, sample};
    use std::fs;

    fn peers() -> Peers {
        let place = |index| ValidatorPlace {
            name: sample::validator_name(index).parse().unwrap(),
            p2p: format!("host-{index}.example:9000").parse().unwrap(),
            quic: format!("127.0.0.1:{}", 9_100 + index).parse().unwrap(),
            api: (index == 2).then(|| "http://127.0.0.1:9202".to_owned()),
            keys: None,
        };
        // Not in the order of the genesis document.
        Peers { validators: [3, 1, 0, 2].map(place).into(), left: Vec::new() }
    }

    #[test]
    fn places_are_read_as_written_and_found_for_each_validator() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("peers.yaml");
        fs::write(&path, peers().to_yaml()).unwrap();
        let (read, document) = (Peers::load(&path).unwrap(), document());
        assert_eq!(read, peers());
        assert_eq!(read.apis(), ["http://127.0.0.1:9202"]);
        for (index, (validator, place)) in read.of(&document).unwrap().into_iter().enumerate() {
            assert_eq!(validator, sample::validator_keys(index).public());
            assert_eq!(place.name.as_str(), sample::validator_name(index));
        }
    }

    #[test]
    fn a_list_that_does_not_fit_the_chain_is_refused() {
        let (document, all) = (document(), peers());
        let refused = |validators: Vec<ValidatorPlace>, says: &str| {
            let peers = Peers { validators, left: Vec::new() };
            let error = peers.of(&document).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        };
        refused(all.validators[..3].to_vec(), "`validator-2` of the genesis document is missing");
        refused(vec![all.validators[0].clone(); 2], "`validator-3` is listed twice");
        let mut shared = all.validators.clone();
        shared[3].quic = shared[0].quic.clone();
        refused(shared, "`validator-3` and `validator-2` both have the quic 127.0.0.1:9103");
        let mut stranger = all.validators;
        stranger[1].name = "validator-9".parse().unwrap();
        let known = "these are validator-0, validator-1, validator-2, validator-3";
        refused(stranger, known);
    }

    #[test]
    fn validators_join_with_their_keys_and_leave_by_name() {
        let (document, mut peers) = (document(), peers());
        let late = sample::validator_keys(9).public();
        let mut joined = peers.validators[0].clone();
        joined.name = "late".parse().unwrap();
        joined.p2p = "late.example:9000".parse().unwrap();
        joined.quic = "late.example:9100".parse().unwrap();
        joined.keys = Some(late.clone().into());
        peers.validators.push(joined);
        peers.validators.retain(|place| place.name.as_str() != "validator-1");
        assert!(peers.of(&document).unwrap_err().to_string().contains("`validator-1`"));
        peers.left.push("validator-1".parse().unwrap());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("peers.yaml");
        fs::write(&path, peers.to_yaml()).unwrap();
        let read = Peers::load(&path).unwrap();
        assert_eq!(read, peers);
        let of = read.of(&document).unwrap();
        let names: Vec<_> = of.iter().map(|(_, place)| place.name.as_str()).collect();
        assert_eq!(names, ["validator-0", "validator-2", "validator-3", "late"]);
        assert_eq!(of[3].0, late);
        peers.validators.last_mut().unwrap().keys.as_mut().unwrap().consensus =
            Text(Bytes(vec![1; 31]));
        let refused = peers.of(&document).unwrap_err().to_string();
        assert!(refused.contains("`late` has keys that no validator can have"), "{refused}");
    }

    #[test]
    fn a_malformed_place_is_named_with_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("peers.yaml");
        let check = |text: &str, says: &str| {
            fs::write(&path, text).unwrap();
            let error = Peers::load(&path).unwrap_err().to_string();
            assert!(error.contains("peers.yaml") && error.contains(says), "{error}");
        };
        let one = "validators:\n- name: a\n  p2p: host:1\n  quic: host:2\n";
        check(&one.replace("host:1", "host"), "a port is missing");
        check(&one.replace("quic", "quik"), "quik");
        check(&one.replace("name: a", "name: A"), "peers.yaml:2");
        check("[]", "the field `validators`");
    }
}

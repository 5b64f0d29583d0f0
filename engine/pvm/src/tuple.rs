//! Everything that results and fuel depend on: the component, the compiler, its settings and the
//! limits of an instance.

use crate::limits::{CROSSING, MEMORY, TABLE_ELEMENTS, WASM_STACK};
use cowboy_engine::primitives::{Hash, keccak256};

/// The version of wasmtime. Fuel differs between versions, so `Cargo.toml` demands exactly this
/// one.
pub const WASMTIME: &str = "48.0.8";

/// The version of the functions in `wit/pvm.wit` and of what this package does for each. A change
/// of either is a new version.
pub const INTERFACE: u32 = 2;

/// The settings of [`engine`](crate::engine::engine), in words.
const FLAGS: &str = "cranelift speed fuel nan-canonicalization no-relaxed-simd no-threads";

/// The target of the machine code: any processor of this family, because code for this processor
/// alone would be refused by lesser ones. `None` on systems that nodes do not run on.
pub const TARGET: Option<&str> = if cfg!(all(target_os = "linux", target_arch = "x86_64")) {
    Some("x86_64-unknown-linux-gnu")
} else if cfg!(all(target_os = "linux", target_arch = "aarch64")) {
    Some("aarch64-unknown-linux-gnu")
} else if cfg!(all(target_os = "macos", target_arch = "aarch64")) {
    Some("aarch64-apple-darwin")
} else {
    None
};

/// What the nodes of a chain must have in common to run its Python actors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tuple {
    /// keccak256 of the component. Two builds of the same inputs differ, also in fuel.
    pub component: Hash,
    pub wasmtime: String,
    pub flags: String,
    pub target: String,
    /// Bytes of linear memory.
    pub memory: u64,
    /// Bytes of native stack.
    pub stack: u64,
    pub table_elements: u64,
    /// Bytes that one call may pass to the host.
    pub crossing: u64,
    pub interface: u32,
}

impl Tuple {
    /// The tuple of a component in this program; `None` where there is no [`TARGET`].
    pub fn of(component: Hash) -> Option<Self> {
        Some(Self {
            component,
            wasmtime: WASMTIME.to_owned(),
            flags: FLAGS.to_owned(),
            target: TARGET?.to_owned(),
            memory: MEMORY as u64,
            stack: WASM_STACK as u64,
            table_elements: TABLE_ELEMENTS as u64,
            crossing: CROSSING as u64,
            interface: INTERFACE,
        })
    }

    /// keccak256 of all fields: texts with their length before them, numbers in eight bytes.
    pub fn hash(&self) -> Hash {
        let mut bytes = b"pvm-tuple".to_vec();
        bytes.extend(self.component.0);
        for text in [&self.wasmtime, &self.flags, &self.target] {
            bytes.extend((text.len() as u64).to_be_bytes());
            bytes.extend(text.as_bytes());
        }
        let numbers = [
            self.memory,
            self.stack,
            self.table_elements,
            self.crossing,
            u64::from(self.interface),
        ];
        bytes.extend(numbers.into_iter().flat_map(u64::to_be_bytes));
        keccak256(&[&bytes])
    }
}

#[cfg(test)]
mod tests {
    use super::{Hash, Tuple, WASMTIME};

    #[test]
    fn the_version_is_the_one_that_is_built() {
        let lock = include_str!("../../../Cargo.lock");
        let entry = format!("name = \"wasmtime\"\nversion = \"{WASMTIME}\"\n");
        assert!(lock.contains(&entry), "Cargo.lock has another version of wasmtime");
    }

    /// Nodes compare the hash, so its form is frozen.
    #[test]
    fn the_form_is_frozen() {
        let tuple = Tuple {
            component: Hash([7; 32]),
            wasmtime: "48.0.8".to_owned(),
            flags: "fuel".to_owned(),
            target: "x86_64-unknown-linux-gnu".to_owned(),
            memory: 1,
            stack: 2,
            table_elements: 3,
            crossing: 4,
            interface: 5,
        };
        let expected = "f75a9a1d1ae57969f74b893b4fd51403e9f72f51f79d1bdc94851c448081b578";
        assert_eq!(hex::encode(tuple.hash().0), expected);
    }

    #[test]
    fn every_field_changes_the_hash() {
        let Some(tuple) = Tuple::of(Hash([7; 32])) else { return };
        let changes: [fn(&mut Tuple); 9] = [
            |tuple| tuple.component.0[31] ^= 1,
            |tuple| tuple.wasmtime.push('0'),
            |tuple| tuple.flags.clear(),
            |tuple| tuple.target.push('x'),
            |tuple| tuple.memory += 1,
            |tuple| tuple.stack += 1,
            |tuple| tuple.table_elements += 1,
            |tuple| tuple.crossing += 1,
            |tuple| tuple.interface += 1,
        ];
        let mut hashes = vec![tuple.hash()];
        for change in changes {
            let mut changed = tuple.clone();
            change(&mut changed);
            hashes.push(changed.hash());
        }
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), 10);
    }
}

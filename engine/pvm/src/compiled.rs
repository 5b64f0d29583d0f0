//! Compiled modules, kept for further calls of them.
//!
//! Compiling has no effects and the same result for every call of a source. What is kept changes
//! how long a call takes, not what it costs.

use cowboy_engine::primitives::Hash;
use lru::LruCache;
use std::sync::Arc;

/// Bytes of code that are kept.
const MOST: usize = 64 << 20;

/// The code of a module.
#[derive(Debug)]
pub struct Compiled {
    pub code: Vec<u8>,
    /// Fuel that compiling took, without that of the instance.
    pub fuel: u64,
}

/// The modules that were used last, by the hash of their source.
#[derive(Debug)]
pub struct Kept {
    modules: LruCache<Hash, Arc<Compiled>>,
    bytes: usize,
}

impl Default for Kept {
    fn default() -> Self {
        Self { modules: LruCache::unbounded(), bytes: 0 }
    }
}

impl Kept {
    pub fn get(&mut self, hash: &Hash) -> Option<Arc<Compiled>> {
        self.modules.get(hash).cloned()
    }

    pub fn insert(&mut self, hash: Hash, compiled: Arc<Compiled>) {
        self.bytes += compiled.code.len();
        if let Some(before) = self.modules.put(hash, compiled) {
            self.bytes -= before.code.len();
        }
        while self.bytes > MOST {
            let Some((_, oldest)) = self.modules.pop_lru() else { return };
            self.bytes -= oldest.code.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Compiled, Hash, Kept, MOST};
    use std::sync::Arc;

    #[test]
    fn the_modules_used_last_are_kept() {
        let mut kept = Kept::default();
        let hash = |n: u8| Hash([n; 32]);
        let third = || Arc::new(Compiled { code: vec![0; MOST / 3], fuel: 1 });
        for n in 1..=3 {
            kept.insert(hash(n), third());
        }
        assert!(kept.get(&hash(1)).is_some());
        // Again the same, then one more than there is room for.
        kept.insert(hash(3), third());
        kept.insert(hash(4), third());
        let known = [1, 2, 3, 4].map(|n| kept.get(&hash(n)).is_some());
        assert_eq!(known, [true, false, true, true]);
        assert_eq!(kept.bytes, MOST / 3 * 3);
        let all = Arc::new(Compiled { code: vec![0; MOST + 1], fuel: 1 });
        kept.insert(hash(5), all);
        assert_eq!((kept.modules.len(), kept.bytes), (0, 0));
    }
}

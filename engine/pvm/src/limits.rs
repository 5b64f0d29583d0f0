//! The bounds of an instance. All of them decide results, so they are part of the [`Tuple`].
//!
//! [`Tuple`]: crate::tuple::Tuple

use cowboy_engine::pvm::Raised;
use wasmtime::ResourceLimiter;

/// Bytes of linear memory.
pub const MEMORY: usize = 64 << 20;

/// Bytes of native stack that compiled code may use. The depth at which it ends depends on the
/// compiler and the processor, so it is large enough never to end first: the deepest recursion
/// found, which frees nested tuples, takes less than 16 bytes of native stack for each byte of
/// memory that its objects occupy.
pub const WASM_STACK: usize = 16 * MEMORY;

/// Bytes of a thread's stack that runs instances; the rest is for host functions. On a smaller
/// thread, deep recursion aborts the process. Only the pages in use take memory, until the thread
/// ends.
pub const THREAD_STACK: usize = WASM_STACK + (8 << 20);

/// Elements of a table of functions. The component needs about 8,000.
pub const TABLE_ELEMENTS: usize = 20_000;

/// Bytes that one call of a host function, or the end of a handler, may pass to the host. The
/// guest refuses single values above 1 MiB and has up to three of them.
pub const CROSSING: usize = 4 << 20;

/// Bytes of a host function's refusal.
pub const REFUSAL: usize = 2_048;

/// Bytes of the parts of an exception, as the guest cuts them; what gets round the guest is cut
/// again.
const KIND: usize = 128;
const SLUG: usize = 16;
const HINT: usize = 512;
const MESSAGE: usize = 2_048;
const TRACEBACK: usize = 4_096;

/// Counts what an instance takes and refuses what exceeds its limits.
#[derive(Debug, Default)]
pub struct Limits {
    /// Bytes of linear memory in use.
    pub memory: usize,
    /// Whether the operating system gave less than the limits allow. What the instance does then
    /// is no result.
    pub starved: bool,
}

impl ResourceLimiter for Limits {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let after = self.memory + (desired - current);
        let allowed = after <= MEMORY && maximum.is_none_or(|maximum| desired <= maximum);
        if allowed {
            self.memory = after;
        }
        Ok(allowed)
    }

    fn memory_grow_failed(&mut self, error: wasmtime::Error) -> wasmtime::Result<()> {
        self.starved = true;
        Err(error)
    }

    fn table_growing(
        &mut self,
        _current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(desired <= TABLE_ELEMENTS && maximum.is_none_or(|maximum| desired <= maximum))
    }

    fn table_grow_failed(&mut self, error: wasmtime::Error) -> wasmtime::Result<()> {
        self.starved = true;
        Err(error)
    }
}

/// Cuts a text to at most `most` bytes, between two characters.
pub fn cut(text: &mut String, most: usize) {
    text.truncate(text.floor_char_boundary(most));
}

/// Cuts every part of an exception. A slug that is no word is left out.
pub fn cut_raised(raised: &mut Raised) {
    raised.slug.take_if(|slug| slug.chars().any(|c| c.is_whitespace() || c.is_control()));
    cut(&mut raised.kind, KIND);
    cut(&mut raised.message, MESSAGE);
    cut(&mut raised.traceback, TRACEBACK);
    for (part, most) in [(&mut raised.slug, SLUG), (&mut raised.why, HINT), (&mut raised.fix, HINT)]
    {
        if let Some(part) = part {
            cut(part, most);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Limits, MEMORY, Raised, cut_raised};
    use wasmtime::ResourceLimiter as _;

    #[test]
    fn memories_share_one_limit() {
        let mut limits = Limits::default();
        assert!(limits.memory_growing(0, MEMORY - 10, None).unwrap());
        assert!(!limits.memory_growing(0, 11, None).unwrap());
        assert!(limits.memory_growing(0, 10, None).unwrap());
        assert_eq!(limits.memory, MEMORY);
    }

    #[test]
    fn exceptions_are_cut_between_characters() {
        let long = "é".repeat(5_000);
        let mut raised = Raised {
            kind: format!("x{long}"),
            message: long.clone(),
            slug: Some(long.clone()),
            why: None,
            fix: Some("short".to_owned()),
            traceback: long,
        };
        cut_raised(&mut raised);
        assert_eq!(raised.kind.len(), 127);
        assert_eq!(raised.message.len(), 2_048);
        assert_eq!(raised.slug.as_deref().map(str::len), Some(16));
        assert_eq!(raised.fix.as_deref(), Some("short"));
        assert_eq!(raised.traceback.len(), 4_096);
    }
}

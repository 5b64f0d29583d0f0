//! How much of a chain is kept, and the deletion of older blocks.

use super::{StorageError, segment};
use cowboy_engine::primitives::Height;
use rusqlite::{Transaction, params};

/// How much of its chain a validator keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Every block since genesis.
    All,
    /// This number of the newest blocks, at least [`Keep::MIN_BLOCKS`].
    Blocks(u64),
    /// As many blocks as fit into this many bytes of the file, at least [`Keep::MIN_BYTES`].
    Bytes(u64),
}

impl Keep {
    /// With fewer blocks, a restart could lack some.
    pub const MIN_BLOCKS: u64 = segment::RECENT;
    /// A recent chain's rows and two snapshots fit into this.
    pub const MIN_BYTES: u64 = 64_000_000;
}

impl Default for Keep {
    /// All blocks of a chain whose file is below 4 GB: about 8 million empty blocks.
    fn default() -> Self {
        Self::Bytes(4_000_000_000)
    }
}

/// Segments that one block may drop: more than it can add, so that the file reaches a lowered limit
/// step by step while the chain continues.
const SEGMENTS: usize = 4;

/// Drops the oldest segments beyond `keep`, together with all rows of other tables about their
/// blocks. Returns the first block that is kept, if that changed.
pub(super) fn drop_oldest(
    transaction: &Transaction<'_>,
    keep: Keep,
    head: Height,
) -> Result<Option<Height>, StorageError> {
    let mut kept_from = None;
    for _ in 0..SEGMENTS {
        let oldest = "SELECT first, last FROM segment ORDER BY first LIMIT 1";
        let mut statement = transaction.prepare_cached(oldest)?;
        let mut rows = statement.query([])?;
        let Some(row) = rows.next()? else { break };
        let (first, last): (u64, u64) = (row.get(0)?, row.get(1)?);
        let beyond = match keep {
            Keep::All => false,
            Keep::Blocks(blocks) => last + blocks <= head.get(),
            Keep::Bytes(bytes) => used(transaction)? > bytes,
        };
        if !beyond {
            break;
        }
        segment::remove(transaction, (first, last))?;
        // The block after the last dropped one loses its rows too: only its body stays, as a
        // parent. Its effects go with its segment, and are not read until then.
        drop_rows(transaction, last + 1)?;
        kept_from = Some(Height::new(last + 2));
    }
    if let Some(height) = kept_from {
        transaction.execute("UPDATE meta SET kept_from = ?", params![height.get()])?;
    }
    Ok(kept_from)
}

/// Used bytes of the file. Freed pages are reused: the file does not shrink.
fn used(transaction: &Transaction<'_>) -> Result<u64, StorageError> {
    let pragma = |name: &str| -> rusqlite::Result<u64> {
        transaction.query_row(&format!("PRAGMA {name}"), [], |row| row.get(0))
    };
    Ok((pragma("page_count")? - pragma("freelist_count")?) * pragma("page_size")?)
}

/// Drops the rows that describe the effects of the blocks up to `last`.
fn drop_rows(transaction: &Transaction<'_>, last: u64) -> Result<(), StorageError> {
    let drop = |sql: &str| -> Result<(), StorageError> {
        transaction.prepare_cached(sql)?.execute(params![last])?;
        Ok(())
    };
    for table in ["presence", "lane", "draw", "result", "actor_log"] {
        drop(&format!("DELETE FROM {table} WHERE height <= ?"))?;
    }
    Ok(())
}

//! `storage`: the blocks of a chain written by our validators' store, and the rows that it writes
//! for them by SQLite, redb and fjall, one block per transaction.

mod series;
mod stores;

use crate::figures::Figures;
use cowboy_devnet::storage::StorageError;
use cowboy_engine::chain::GenesisError;
use series::Series;
use std::{fs, io, path::Path, time::Instant};
use stores::Kind;

/// Why there are no figures of the stores.
#[derive(Debug, thiserror::Error)]
pub enum StorageFailure {
    #[error("files in $TMPDIR: {0}")]
    Files(#[from] io::Error),
    #[error("our store: {0}")]
    Ours(#[from] StorageError),
    #[error("the sample chain: {0}")]
    Genesis(#[from] GenesisError),
    #[error("SQLite: {0}")]
    Sqlite(#[from] rusqlite::Error),
    #[error("redb: {0}")]
    Redb(Box<redb::Error>),
    #[error("fjall: {0}")]
    Fjall(#[from] fjall::Error),
    #[error("our store has no table `{0}`: a new format, to which this program must be adapted")]
    Table(&'static str),
    #[error("a store has lost block {0}")]
    Missing(u64),
}

/// Reads of blocks in each round.
const READS: u64 = 2_000;

/// One store's figures of one series.
#[derive(Default)]
struct Measured {
    per_block: Figures,
    read: Figures,
    growth: Figures,
    closed: Figures,
}

/// Prints time and disk of every store for each series.
pub fn compare(empty: u64, fires: u64, rounds: u64) -> Result<(), StorageFailure> {
    for kind in Kind::ALL {
        println!("{:<15} {}", kind.name(), kind.meaning());
    }
    for series in [Series::empty(empty)?, Series::fires(fires)?] {
        let mut measured: [Measured; Kind::ALL.len()] = Default::default();
        for _ in 0..rounds {
            for (kind, measured) in Kind::ALL.into_iter().zip(&mut measured) {
                measure(kind, &series, measured)?;
            }
        }
        let (rows, bytes) = series.average();
        println!(
            "\n{} {}, each {rows:.1} rows of {bytes:.0} bytes in all; {rounds} rounds",
            series.blocks.len() - series.before,
            series.name,
        );
        println!(
            "{:<15} {:>10}  {:<26} {:<24} {:>16} {:>12}",
            "", "blocks/s", "µs per block", "µs per read", "MB, 1,000 blocks", "MB, closed"
        );
        for (kind, measured) in Kind::ALL.into_iter().zip(&measured) {
            println!(
                "{:<15} {:>10.0}  {:<26} {:<24} {:>16.2} {:>12.2}",
                kind.name(),
                1e6 / measured.per_block.median(),
                measured.per_block.range(1),
                measured.read.range(1),
                measured.growth.median(),
                measured.closed.median(),
            );
        }
    }
    Ok(())
}

/// One round: writes all blocks and times those that count, then reads some, then closes.
fn measure(kind: Kind, series: &Series, measured: &mut Measured) -> Result<(), StorageFailure> {
    let folder = tempfile::tempdir()?;
    let mut store = kind.open(folder.path(), series)?;
    for index in 0..series.before {
        store.commit(index)?;
    }
    let (last, counted) = (series.blocks.len(), series.blocks.len() - series.before);
    let middle = series.before + counted / 2;
    let start = Instant::now();
    for index in series.before..middle {
        store.commit(index)?;
    }
    let first_half = start.elapsed();
    let at_middle = disk(folder.path())?;
    let start = Instant::now();
    for index in middle..last {
        store.commit(index)?;
    }
    let took = first_half + start.elapsed();
    let grown = disk(folder.path())?.saturating_sub(at_middle);
    measured.per_block.push(took.as_secs_f64() * 1e6 / counted as f64);
    measured.growth.push(grown as f64 / 1e3 / (last - middle) as f64);
    let start = Instant::now();
    for read in 0..READS {
        // Each block of the series about as often, in no order: the step is a prime.
        let height = 1 + (read * 7_919) % last as u64;
        if store.read(height)? == 0 {
            return Err(StorageFailure::Missing(height));
        }
    }
    measured.read.push(start.elapsed().as_secs_f64() * 1e6 / READS as f64);
    store.close()?;
    measured.closed.push(disk(folder.path())? as f64 / 1e6);
    Ok(())
}

/// Bytes that the files below a folder take on the disk.
fn disk(folder: &Path) -> io::Result<u64> {
    use std::os::unix::fs::MetadataExt as _;
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        // `stat` counts in 512 bytes, whatever the disk's blocks are.
        bytes += if metadata.is_dir() { disk(&entry.path())? } else { metadata.blocks() * 512 };
    }
    Ok(bytes)
}

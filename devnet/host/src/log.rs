//! Logs that never fail: a line that cannot be written is dropped and counted.

use std::{
    io::{self, Write},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

static LOST: AtomicU64 = AtomicU64::new(0);

/// Number of log lines that this process has lost since it started.
pub fn lost() -> u64 {
    LOST.load(Ordering::Relaxed)
}

/// A log whose writes never fail: a full disk or a closed pipe does not end the thread that logs.
/// After a failure, the first line that can be written again is preceded by the number of lost
/// lines.
///
/// One call of `write` is one line, with its line feed. Clones write to the same log.
#[derive(Debug)]
pub struct Log<W>(Arc<Mutex<Lines<W>>>);

#[derive(Debug)]
struct Lines<W> {
    to: W,
    /// Lines lost since the last one was written.
    lost: u64,
    /// Whether the last line is incomplete.
    cut: bool,
}

impl<W: Write> Log<W> {
    pub fn new(to: W) -> Self {
        Self(Arc::new(Mutex::new(Lines { to, lost: 0, cut: false })))
    }
}

impl<W> Clone for Log<W> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<W: Write> Write for Log<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        // A panic in between cuts a line at worst.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<W: Write> Lines<W> {
    fn write(&mut self, line: &[u8]) {
        if !(self.told() && self.put(line)) {
            self.lost += 1;
            LOST.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Reports the lost lines. Returns whether the next line can follow.
    fn told(&mut self) -> bool {
        if self.cut && !self.put(b"\n") {
            self.cut = true;
            return false;
        }
        if self.lost > 0 {
            let lost = self.lost;
            let said = format!("{lost} lines of this log are lost: it could not be written\n");
            if !self.put(said.as_bytes()) {
                return false;
            }
            self.lost = 0;
        }
        true
    }

    fn put(&mut self, bytes: &[u8]) -> bool {
        let mut left = bytes;
        while !left.is_empty() {
            match self.to.write(left) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => break,
                Ok(written) => left = &left[written..],
            }
        }
        self.cut = !left.is_empty() && left.len() < bytes.len();
        left.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Default)]
    struct Disk(Arc<Mutex<(usize, Vec<u8>)>>);

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let (room, kept) = &mut *self.0.lock().unwrap();
            let written = bytes.len().min(*room);
            if written == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            *room -= written;
            kept.extend_from_slice(&bytes[..written]);
            Ok(written)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_that_are_lost_are_counted_once_there_is_room() {
        let (disk, before) = (Disk::default(), lost());
        let mut log = Log::new(disk.clone());
        let room = |bytes| disk.0.lock().unwrap().0 = bytes;
        let mut other = log.clone();
        let mut say = |line: &str| other.write_all(line.as_bytes()).unwrap();
        room(10);
        say("first\n");
        say("second\n");
        say("third\n");
        // Room only for the line feed that ends the cut line.
        room(1);
        say("fourth\n");
        room(100);
        log.write_all(b"fifth\n").unwrap();
        let kept = String::from_utf8(disk.0.lock().unwrap().1.clone()).unwrap();
        let told = "3 lines of this log are lost: it could not be written";
        assert_eq!(kept, format!("first\nseco\n{told}\nfifth\n"));
        assert!(lost() >= before + 3);
    }
}

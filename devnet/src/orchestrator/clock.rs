//! A clock that detects when it is set back.

use std::time::{Duration, Instant, SystemTime};

/// Steps back up to this size are ignored.
const STEP: Duration = Duration::from_secs(1);

/// The time of the last look, by the wall clock and by the monotonic clock.
#[derive(Debug)]
pub(super) struct ClockReading {
    wall: SystemTime,
    steady: Instant,
}

impl ClockReading {
    pub(super) fn new() -> Self {
        Self { wall: SystemTime::now(), steady: Instant::now() }
    }

    /// How far the clock was set back since the last look, if that is more than [`STEP`].
    pub(super) fn set_back(&mut self) -> Option<Duration> {
        self.look(SystemTime::now(), Instant::now())
    }

    fn look(&mut self, wall: SystemTime, steady: Instant) -> Option<Duration> {
        let expected = self.wall + steady.saturating_duration_since(self.steady);
        *self = Self { wall, steady };
        expected.duration_since(wall).ok().filter(|by| *by > STEP)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_steps_back_are_told() {
        let mut watched = ClockReading::new();
        let (wall, steady) = (watched.wall, watched.steady);
        let secs = Duration::from_secs;
        assert_eq!(watched.look(wall + secs(5), steady + secs(5)), None);
        assert_eq!(watched.look(wall + secs(3_600), steady + secs(6)), None, "set forward");
        assert_eq!(watched.look(wall + secs(7), steady + secs(7)), Some(secs(3_594)));
        assert_eq!(watched.look(wall + secs(7), steady + secs(8)), None, "a second");
    }
}

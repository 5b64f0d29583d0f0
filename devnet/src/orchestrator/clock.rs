//! A clock that is watched for being set back.

use std::time::{Duration, Instant, SystemTime};

/// Steps back that nobody minds.
const STEP: Duration = Duration::from_secs(1);

/// When the clock was last looked at, by itself and by one that nobody sets.
#[derive(Debug)]
pub(super) struct Watched {
    wall: SystemTime,
    steady: Instant,
}

impl Watched {
    pub(super) fn new() -> Self {
        Self { wall: SystemTime::now(), steady: Instant::now() }
    }

    /// By how much it was set back since it was last looked at, where that is more than [`STEP`].
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
        let mut watched = Watched::new();
        let (wall, steady) = (watched.wall, watched.steady);
        let secs = Duration::from_secs;
        assert_eq!(watched.look(wall + secs(5), steady + secs(5)), None);
        assert_eq!(watched.look(wall + secs(3_600), steady + secs(6)), None, "set forward");
        assert_eq!(watched.look(wall + secs(7), steady + secs(7)), Some(secs(3_594)));
        assert_eq!(watched.look(wall + secs(7), steady + secs(8)), None, "a second");
    }
}

//! The progress that a process reports on its standard error.

/// A task's progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskProgress {
    /// Percentage done, from 0 to 100; 0 if unknown.
    pub percent: u8,
    /// A description of the current step, for people; one line.
    pub detail: Option<String>,
}

impl TaskProgress {
    /// Parses a progress line; `None` if the line is not one.
    pub fn reported(line: &str) -> Option<Self> {
        let text = line.strip_prefix("progress:")?.trim_start();
        let (number, words) = text.split_once(' ').unwrap_or((text, ""));
        let digits = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
        let percent = number.parse().ok().filter(|percent| digits && *percent <= 100)?;
        let words = words.trim();
        Some(Self { percent, detail: (!words.is_empty()).then(|| words.to_owned()) })
    }
}

//! The latest panic messages, kept in memory, because a log cannot report a failure of its own
//! disk.

use std::{
    collections::VecDeque,
    panic::{self, PanicHookInfo},
    sync::{Mutex, Once, PoisonError},
    time::{Duration, Instant},
};

const KEPT: usize = 32;
/// The maximum length of a kept message, in characters.
const LENGTH: usize = 400;

static SAID: Mutex<VecDeque<(Instant, String)>> = Mutex::new(VecDeque::new());

/// Records the panics of this process from now on. They are still printed.
pub fn keep() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            remember(info);
            before(info);
        }));
    });
}

fn remember(info: &PanicHookInfo<'_>) {
    let text: String = info.payload_as_str().unwrap_or("a panic without a text").into();
    let text = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(LENGTH).collect();
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    if said.len() == KEPT {
        said.pop_front();
    }
    said.push_back((Instant::now(), text));
}

/// The first message within the last `within`, preferably one that mentions `name`, because later
/// panics are often consequences of the first.
pub fn first(name: &str, within: Duration) -> Option<String> {
    let said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    let recent = || said.iter().filter(|(at, _)| at.elapsed() <= within).map(|(_, text)| text);
    recent().find(|text| text.contains(name)).or_else(|| recent().next()).cloned()
}

/// The longest time between a panic and an end that it caused.
pub const LATELY: Duration = Duration::from_secs(5);

/// The first recent panic: the likely reason why a part of the process has just ended.
pub fn recent() -> String {
    first("", LATELY)
        .map_or_else(|| "the reason is unknown".to_owned(), |said| format!("a panic: {said}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_words_about_a_name_are_found() {
        keep();
        for text in ["the disk is full", "sync of node-7 failed", "node-7 should not end"] {
            let _ = std::thread::spawn(move || panic::panic_any(text.to_owned())).join();
        }
        let minute = Duration::from_secs(60);
        assert_eq!(first("node-7", minute).as_deref(), Some("sync of node-7 failed"));
        assert!(first("node-8", minute).is_some());
        assert_eq!(first("node-7", Duration::ZERO), None);
    }
}

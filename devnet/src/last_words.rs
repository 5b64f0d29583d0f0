//! What panicking tasks said last, kept in memory: a log cannot tell of the disk that it is on.

use std::{
    collections::VecDeque,
    panic::{self, PanicHookInfo},
    sync::{Mutex, Once, PoisonError},
    time::{Duration, Instant},
};

/// Panics that are kept.
const KEPT: usize = 32;
/// Characters of one that are kept.
const LENGTH: usize = 400;

static SAID: Mutex<VecDeque<(Instant, String)>> = Mutex::new(VecDeque::new());

/// Keeps what panics of this process say from now on, and has them printed as before.
pub(crate) fn keep() {
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

/// The first thing that was said within the last `within`: one about `name` where there is such,
/// since panics of others follow from the first.
pub(crate) fn first(name: &str, within: Duration) -> Option<String> {
    let said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    let recent = || said.iter().filter(|(at, _)| at.elapsed() <= within).map(|(_, text)| text);
    recent().find(|text| text.contains(name)).or_else(|| recent().next()).cloned()
}

/// How long before an end the panic was that it follows from.
pub(crate) const LATELY: Duration = Duration::from_secs(5);

/// What was said first of late: why a part may have ended that has just ended.
pub(crate) fn recent() -> String {
    first("", LATELY)
        .map_or_else(|| "nothing says why".to_owned(), |said| format!("a panic: {said}"))
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

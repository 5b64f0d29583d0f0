//! Paths in a container, and an engine's error messages.

use super::*;
use std::os::unix::process::ExitStatusExt as _;

#[test]
fn what_is_in_a_jobs_directory_is_at_one_place() {
    let check = |path: &str, expected: &str| {
        assert_eq!(inside(Path::new("/jobs/one"), Path::new(path)), Path::new(expected), "{path}");
    };
    check("/jobs/one", "/cowboy");
    check("/jobs/one/home", "/cowboy/home");
    check("/jobs/one/work/a/b", "/cowboy/work/a/b");
    check("/jobs/other/work", "/jobs/other/work");
}

#[test]
fn the_last_line_with_words_tells_what_went_wrong() {
    let check = |pieces: &[&str], expected: &str| {
        let mut last = LastLine::default();
        for piece in pieces {
            last.push(piece.as_bytes());
        }
        assert_eq!(last.or(ExitStatus::from_raw(125 << 8)), expected, "{pieces:?}");
    };
    check(&[], "exit status: 125");
    check(&["\n \n"], "exit status: 125");
    check(&["one\ntwo\n"], "two");
    check(&["one\nError: t", "wo\n\n"], "two");
    check(&["one\ntwo \u{1b}[2J without an end"], "two  [2J without an end");
    check(&[&"x".repeat(5000), "\n"], &"x".repeat(MAX_ERROR_LINE));
}

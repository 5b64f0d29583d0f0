//! Paths in a container.

use super::*;

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

//! Names, logs, uploads, limits.

use super::*;
use axum::body::Body;
use std::os::unix::fs::PermissionsExt as _;
use tempfile::TempDir;

fn place(attempt: u32) -> AttemptPlace {
    AttemptPlace { run: "run_1".to_owned(), job: "job_1".to_owned(), attempt }
}

fn files(limits: FileLimits) -> (TempDir, Files) {
    let folder = tempfile::tempdir().unwrap();
    let files = Files::open(folder.path(), limits).unwrap();
    (folder, files)
}

fn name(name: &str) -> ArtifactName {
    name.parse().unwrap()
}

#[test]
fn names_lead_nowhere_else() {
    let long = ["a"; 600].concat();
    let parts = vec![["b"; 180].concat(); 3].join("/");
    for name in ["a", "a/b.txt", "..a/b..", "-", "ü/ß", "a b", "%2e%2e", &parts[..400]] {
        assert_eq!(name.parse::<ArtifactName>().map(|name| name.0), Ok(name.to_owned()));
    }
    for (name, expected) in [
        ("", NameError::Length),
        (&*long, NameError::Length),
        (&long[..201], NameError::Length),
        ("/etc/passwd", NameError::Part),
        ("a//b", NameError::Part),
        ("a/", NameError::Part),
        ("..", NameError::Part),
        ("a/../../b", NameError::Part),
        ("./a", NameError::Part),
        ("a\\..\\b", NameError::Character),
        ("a\0b", NameError::Character),
        ("a\nb", NameError::Character),
    ] {
        assert_eq!(name.parse::<ArtifactName>(), Err(expected), "{name:?}");
    }
}

#[test]
fn logs_grow_once_whatever_is_sent_again() {
    let (_folder, files) = files(FileLimits { log: 10, ..FileLimits::default() });
    let at = place(1);
    assert_eq!(files.read_log(&at, 0, 100).unwrap(), (Vec::new(), 0));
    assert_eq!(files.append_log(&at, 0, b"abc").unwrap(), 3);
    let mut grows = files.watch_log(&at);
    assert_eq!(files.append_log(&at, 1, b"bcde").unwrap(), 5);
    assert!(grows.has_changed().unwrap());
    grows.mark_unchanged();
    assert_eq!(files.append_log(&at, 0, b"abc").unwrap(), 5);
    assert!(matches!(files.append_log(&at, 6, b"x"), Err(FileError::Gap { length: 5 })));
    assert_eq!(files.read_log(&at, 1, 2).unwrap(), (b"bc".to_vec(), 5));
    assert_eq!(files.read_log(&at, 7, 2).unwrap(), (Vec::new(), 5));
    let full = files.append_log(&at, 5, b"fghijkl");
    assert!(matches!(full, Err(FileError::TooLarge { limit: 10 })));
    assert_eq!(files.read_log(&at, 0, 100).unwrap(), (b"abcdefghij".to_vec(), 10));
    assert_eq!(files.log_bytes(&at), 10);
    assert_eq!(files.log_bytes(&place(2)), 0);
}

#[tokio::test]
async fn artifacts_stand_whole_under_their_name_or_not_at_all() {
    let limits =
        FileLimits { artifact: 4, artifacts: 6, artifact_count: 3, ..FileLimits::default() };
    let (folder, files) = files(limits);
    let at = place(1);
    let store = async |name: &str, bytes: &'static str| {
        let ready = files.receive_artifact(&at, &name.parse().unwrap(), Body::from(bytes)).await?;
        ready.naming()()?;
        ready.settle().await
    };
    assert_eq!(store("a/b", "1234").await.unwrap(), 4);
    assert!(matches!(store("c", "12345").await, Err(FileError::TooLarge { limit: 4 })));
    assert!(matches!(store("c", "123").await, Err(FileError::Full { limit: 6 })));
    assert!(matches!(store("a", "1").await, Err(FileError::Clash)));
    assert!(matches!(store("a/b/c", "1").await, Err(FileError::Clash)));
    assert_eq!(store("a/b", "12").await.unwrap(), 2);
    store("c", "1").await.unwrap();
    store("d", "1").await.unwrap();
    assert!(matches!(store("e", "1").await, Err(FileError::Full { limit: 3 })));

    let broken = futures::stream::iter([Ok("12"), Err(io::Error::other("gone"))]);
    let body = Body::from_stream(broken);
    let stored = files.receive_artifact(&place(2), &name("x"), body).await.map(drop);
    assert!(matches!(stored, Err(FileError::Broken)));

    let all = files.artifacts("run_1", "job_1").unwrap();
    assert_eq!(all, [(1, name("a/b"), 2), (1, name("c"), 1), (1, name("d"), 1)]);
    let (file, length) = files.open_artifact(&at, &name("a/b")).await.unwrap();
    assert_eq!(length, 2);
    let mode = file.metadata().await.unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    for absent in ["a", "b", "c/x"] {
        let opened = files.open_artifact(&at, &name(absent)).await;
        assert!(matches!(opened, Err(FileError::NotFound)), "{absent}");
    }
    assert_eq!(fs::read_dir(folder.path().join("tmp")).unwrap().count(), 0);
    files.forget("run_1").unwrap();
    files.forget("run_1").unwrap();
    assert_eq!(files.artifacts("run_1", "job_1").unwrap(), []);
}

#[tokio::test]
async fn caches_that_were_not_used_for_longest_go() {
    let (folder, files) = files(FileLimits { caches: 6, ..FileLimits::default() });
    let store = async |key: &str| {
        let ready = files.receive_cache(key, Body::from("123")).await.unwrap();
        ready.naming()().unwrap();
        ready.settle().await.unwrap()
    };
    store("a/../b").await;
    store("two").await;
    // Modification times may be coarser than the time between two writes.
    for (key, seconds) in [("a/../b", 10), ("two", 20)] {
        let (file, _) = files.open_cache(key).await.unwrap().unwrap();
        let used = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
        file.into_std().await.set_modified(used).unwrap();
    }
    files.open_cache("a/../b").await.unwrap().unwrap();
    store("three").await;
    assert!(files.open_cache("two").await.unwrap().is_none());
    assert!(files.open_cache("a/../b").await.unwrap().is_some());
    store("three").await;
    assert_eq!(fs::read_dir(folder.path().join("caches")).unwrap().count(), 2);
    let large = files.receive_cache("four", Body::from("1234567")).await.map(drop);
    assert!(matches!(large, Err(FileError::TooLarge { limit: 6 })));
}

#[tokio::test]
async fn an_upload_without_a_name_is_nowhere_and_has_its_place() {
    let limits = FileLimits { artifacts: 6, artifact_count: 2, ..FileLimits::default() };
    let (folder, files) = files(limits);
    let at = place(1);
    let receive = async |name: &str, bytes: &'static str| {
        files.receive_artifact(&at, &name.parse().unwrap(), Body::from(bytes)).await
    };
    let first = receive("a", "1234").await.unwrap();
    assert_eq!(files.artifacts("run_1", "job_1").unwrap(), []);
    assert!(matches!(receive("b", "123").await, Err(FileError::Full { limit: 6 })));
    let second = receive("b", "12").await.unwrap();
    assert!(matches!(receive("c", "").await, Err(FileError::Full { limit: 2 })));
    // Storing the same name again takes no further place.
    drop(receive("a", "12").await.unwrap());
    first.naming()().unwrap();
    assert!(matches!(receive("c", "").await, Err(FileError::Full { limit: 2 })));
    assert_eq!(first.settle().await.unwrap(), 4);
    drop(second);
    assert_eq!(files.artifacts("run_1", "job_1").unwrap(), [(1, name("a"), 4)]);
    receive("b", "12").await.unwrap();
    assert_eq!(fs::read_dir(folder.path().join("tmp")).unwrap().count(), 0);
    assert!(lock(&files.0.reserved).of.is_empty());
}

#[tokio::test]
async fn what_cannot_be_removed_keeps_nothing_else() {
    let (folder, files) = files(FileLimits { caches: 6, ..FileLimits::default() });
    // Something that is older than any cache and not a file.
    let strange = folder.path().join("caches/strange");
    fs::create_dir(&strange).unwrap();
    fs::write(strange.join("in it"), "").unwrap();
    let old = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1);
    fs::File::open(&strange).unwrap().set_modified(old).unwrap();
    for key in ["one", "two", "three"] {
        let ready = files.receive_cache(key, Body::from("123")).await.unwrap();
        ready.naming()().unwrap();
        assert_eq!(ready.settle().await.unwrap(), 3, "{key}");
    }
    assert!(files.open_cache("three").await.unwrap().is_some());
    let kept = fs::read_dir(folder.path().join("caches")).unwrap().flatten();
    assert!(kept.filter(|entry| entry.path().is_file()).count() <= 2);
}

//! Snapshots of folders that look like a devnet's.

use super::*;
use crate::{
    home::DevnetState,
    topology::{Overrides, Topology},
};
use cowboy_engine::primitives::SecretKey;
use cowboy_host::files;
use rusqlite::Connection;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use tempfile::TempDir;

struct Lab {
    folder: TempDir,
    home: Home,
}

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

impl Lab {
    /// A home with a stopped devnet called `one`, its chain at height 3.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path().join("home"));
        let lab = Self { folder, home };
        lab.write("one", 3, "first");
        lab
    }

    fn devnet(&self, devnet: &str) -> DevnetHome {
        self.home.devnet(&name(devnet))
    }

    fn snapshots(&self) -> Snapshots {
        Snapshots::of(&self.home)
    }

    /// Writes the files that a devnet's processes write.
    fn write(&self, devnet: &str, height: u64, text: &str) {
        let devnet = self.devnet(devnet);
        let lock = devnet.lock().unwrap();
        let yaml = format!("name: {}\n", devnet.name());
        let plan = Topology::parse(&yaml, "").unwrap();
        let plan = plan.resolve(&Overrides::default(), &yaml, "").unwrap();
        lock.write_topology(&plan.to_yaml()).unwrap();
        lock.write_token("the token").unwrap();
        lock.write_account_key(&name("dev-0"), &SecretKey::derive(b"x", "dev-0")).unwrap();
        let validator = devnet.validator_path(&name("validator-0"));
        files::create_private_dir(&validator).unwrap();
        let store = Connection::open(validator.join("index.db")).unwrap();
        store
            .execute_batch(&format!(
                "PRAGMA journal_mode = WAL; DROP TABLE IF EXISTS meta; DROP TABLE IF EXISTS block;
                 CREATE TABLE meta (chain_id BLOB); CREATE TABLE block (height INTEGER, hash BLOB);
                 INSERT INTO meta VALUES (x'000000000000002a');
                 INSERT INTO block VALUES ({height}, x'{}'); PRAGMA user_version = 7;",
                "ab".repeat(32)
            ))
            .unwrap();
        let journal = devnet.data_path().join("consensus/validator-0-blocks");
        files::create_private_dir(&journal).unwrap();
        fs::write(journal.join("00"), text).unwrap();
        fs::write(devnet.data_path().join("ports.json"), "{}").unwrap();
        files::create_private_dir(&devnet.jobs_path()).unwrap();
        fs::write(devnet.jobs_path().join("scratch"), "x").unwrap();
        fs::write(devnet.log_path(), "it said\n").unwrap();
    }

    fn save(&self, devnet: &str, as_name: Option<&str>) -> Result<Snapshot, SnapshotError> {
        let as_name = as_name.map(name);
        let draft =
            self.snapshots().copy(&self.devnet(devnet), as_name.as_ref(), Timestamp::UNIX_EPOCH)?;
        draft.finish(None)
    }

    fn journal(&self, devnet: &str) -> String {
        let folder = self.devnet(devnet).data_path();
        fs::read_to_string(folder.join("consensus/validator-0-blocks/00")).unwrap()
    }

    /// Temporary files and folders left next to devnets and snapshots.
    fn leftovers(&self) -> Vec<String> {
        let entries = [self.home.path().to_owned(), self.home.path().join(FOLDER)];
        let names = entries.iter().flat_map(|folder| fs::read_dir(folder).into_iter().flatten());
        let names = names.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
        names.filter(|name| name.starts_with('.') && name != FOLDER).collect()
    }
}

#[test]
fn a_snapshot_is_what_the_chain_needs_and_nothing_of_a_process() {
    let lab = Lab::new();
    let saved = lab.save("one", None).unwrap();
    assert_eq!((saved.snapshot.as_str(), saved.height, saved.format), ("one-3", 3, FORMAT));
    assert_eq!(saved.chain_id.0.0, 42);
    assert_eq!(saved.hash.0.0, [0xab; 32]);
    let folder = lab.snapshots().path(&name("one-3"));
    let devnet = folder.join(DEVNET);
    let has = |path: &str| devnet.join(path).exists();
    for path in ["topology.yaml", "accounts/dev-0.key", "validators/validator-0/index.db"] {
        assert!(has(path), "{path}");
    }
    for path in
        ["lock", "token", "devnet.json", "log", "jobs", "validators/validator-0/index.db-wal"]
    {
        assert!(!has(path), "{path}");
    }
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    assert_eq!(mode(&devnet.join("accounts")), 0o700);
    assert_eq!(mode(&devnet.join("accounts/dev-0.key")), 0o600);
    assert_eq!(mode(&devnet.join("validators/validator-0/index.db")), 0o600);
    assert_eq!(lab.snapshots().list().unwrap().0, [saved]);
    assert!(
        matches!(lab.save("one", None), Err(SnapshotError::Exists(taken)) if taken == name("one-3"))
    );
    assert!(lab.leftovers().is_empty(), "{:?}", lab.leftovers());
    lab.snapshots().remove(&name("one-3")).unwrap();
    assert!(matches!(lab.snapshots().get(&name("one-3")), Err(SnapshotError::Missing(_))));
    assert!(matches!(lab.snapshots().remove(&name("one-3")), Err(SnapshotError::Missing(_))));
    assert!(lab.leftovers().is_empty());
}

#[test]
fn a_load_brings_the_chain_back_and_keeps_what_is_the_folder_s_own() {
    let lab = Lab::new();
    lab.save("one", Some("before")).unwrap();
    lab.write("one", 9, "second");
    let one = lab.devnet("one");
    assert!(one.add_account(&name("mine"), &SecretKey::derive(b"x", "mine")).unwrap());
    let before = name("before");
    let refused = lab.snapshots().load(&before, None, false).unwrap_err();
    assert!(matches!(refused, SnapshotError::HasChain(devnet) if devnet == name("one")));
    assert_eq!(lab.journal("one"), "second");

    let lock = one.lock().unwrap();
    let refused = lab.snapshots().load(&before, None, true).unwrap_err();
    assert!(matches!(refused, SnapshotError::Running { .. }), "{refused}");
    drop(lock);

    let loaded = lab.snapshots().load(&before, None, true).unwrap();
    assert!(loaded.replaced);
    assert_eq!(lab.journal("one"), "first");
    assert_eq!(one.state().unwrap(), DevnetState::Stopped);
    assert_eq!(one.token().unwrap(), "the token");
    assert_eq!(one.accounts().unwrap(), [name("dev-0"), name("mine")]);
    assert_eq!(fs::read_to_string(one.log_path()).unwrap(), "it said\n");
    assert!(!one.jobs_path().exists());
    assert!(lab.leftovers().is_empty(), "{:?}", lab.leftovers());
}

#[test]
fn under_another_name_the_chain_keeps_its_own() {
    let lab = Lab::new();
    lab.save("one", Some("before")).unwrap();
    let loaded = lab.snapshots().load(&name("before"), Some(&name("two")), false).unwrap();
    assert!(!loaded.replaced);
    let two = lab.devnet("two");
    assert_eq!(two.state().unwrap(), DevnetState::Stopped);
    assert_eq!(lab.journal("two"), "first");
    let text = two.topology().unwrap().unwrap();
    let plan = Topology::parse(&text, "").unwrap();
    let plan = plan.resolve(&Overrides::default(), &text, "").unwrap();
    assert_eq!((plan.name, plan.chain_name), (name("two"), name("one")));
    assert!(!two.data_path().join("ports.json").exists(), "the first devnet's ports");
    assert!(two.token().is_err(), "a token of its own is made when it starts");
    assert_eq!(lab.journal("one"), "first");
}

#[test]
fn what_is_not_a_whole_snapshot_of_this_format_is_refused() {
    let lab = Lab::new();
    let before = name("before");
    lab.save("one", Some("before")).unwrap();
    let manifest = lab.snapshots().path(&before).join(MANIFEST);
    let text = fs::read_to_string(&manifest).unwrap();
    let refused = || lab.snapshots().load(&before, Some(&name("two")), false).unwrap_err();

    fs::write(&manifest, text.replace("\"format\": 2", "\"format\": 1")).unwrap();
    assert!(matches!(refused(), SnapshotError::Format { got: 1, .. }));
    let (none, unreadable) = lab.snapshots().list().unwrap();
    assert!(none.is_empty() && unreadable.len() == 1);
    fs::write(&manifest, "{").unwrap();
    assert!(matches!(refused(), SnapshotError::Damaged { .. }));
    fs::remove_file(&manifest).unwrap();
    assert!(matches!(refused(), SnapshotError::Damaged { .. }));
    fs::write(&manifest, &text).unwrap();
    let key = lab.snapshots().path(&before).join(DEVNET).join("accounts/dev-0.key");
    fs::remove_file(key).unwrap();
    let error = refused().to_string();
    assert!(error.contains("accounts/dev-0.key is missing"), "{error}");
    assert_eq!(
        lab.devnet("two").state().unwrap(),
        DevnetState::Absent,
        "no partial devnet is left"
    );
    assert!(lab.leftovers().is_empty());
}

#[test]
fn a_changed_bit_is_seen_wherever_it_is() {
    let lab = Lab::new();
    let before = name("before");
    lab.save("one", Some("before")).unwrap();
    let folder = lab.snapshots().path(&before);
    let mut files = vec![folder.join(MANIFEST), folder.join(SUMS)];
    let mut folders = vec![folder.join(DEVNET)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { &mut folders } else { &mut files }.push(path);
        }
    }
    assert!(files.len() > 5, "{files:?}");
    for path in files {
        let saved = fs::read(&path).unwrap();
        let step = saved.len().div_ceil(150).max(1);
        for place in (0..saved.len()).step_by(step) {
            let mut changed = saved.clone();
            changed[place] ^= 1 << (place % 8);
            fs::write(&path, changed).unwrap();
            let loaded = lab.snapshots().load(&before, Some(&name("two")), false);
            let error = loaded.expect_err(&format!("byte {place} of {}", path.display()));
            assert!(
                matches!(
                    error,
                    SnapshotError::Damaged { .. }
                        | SnapshotError::Format { .. }
                        | SnapshotError::Home(_)
                ),
                "byte {place} of {}: {error}",
                path.display()
            );
        }
        fs::write(&path, saved).unwrap();
    }
    lab.snapshots().load(&before, Some(&name("two")), false).unwrap();
}

#[test]
fn what_a_snapshot_cannot_have_is_refused() {
    let lab = Lab::new();
    let before = name("before");
    lab.save("one", Some("before")).unwrap();
    let folder = lab.snapshots().path(&before);
    let devnet = folder.join(DEVNET);
    let photos = lab.folder.path().join("photos");
    fs::create_dir(&photos).unwrap();
    let check = |expected: &str| {
        let error = lab.snapshots().load(&before, Some(&name("two")), false).unwrap_err();
        assert!(matches!(error, SnapshotError::Damaged { .. }), "{error}");
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(lab.devnet("two").state().unwrap(), DevnetState::Absent);
    };
    for place in ["jobs", "log", "accounts/more", "data/consensus/link"] {
        symlink(&photos, devnet.join(place)).unwrap();
        check(&format!("devnet/{place} is a link"));
        fs::remove_file(devnet.join(place)).unwrap();
    }
    let pipe = devnet.join("data/pipe");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    check("devnet/data/pipe is neither file nor folder");
    fs::remove_file(pipe).unwrap();
    fs::create_dir(devnet.join("validators/more")).unwrap();
    check("devnet/validators/more is a folder that SHA256SUMS does not list");
    fs::remove_dir(devnet.join("validators/more")).unwrap();
    for place in ["token", "lock", "accounts/more.key", "../more"] {
        fs::write(devnet.join(place), "planted\n").unwrap();
        check("that SHA256SUMS does not list");
        // Listing it does not help.
        Sums::of(&folder).unwrap().write(&folder).unwrap();
        if place != "accounts/more.key" {
            check("is not part of a snapshot");
        }
        fs::remove_file(devnet.join(place)).unwrap();
        // The list listed itself.
        fs::remove_file(folder.join(SUMS)).unwrap();
        Sums::of(&folder).unwrap().write(&folder).unwrap();
    }
    let key = devnet.join("accounts/dev-0.key");
    fs::rename(&key, photos.join("key")).unwrap();
    symlink(photos.join("key"), &key).unwrap();
    check("devnet/accounts/dev-0.key is a link");
}

#[test]
fn only_real_files_and_folders_are_a_snapshot_s() {
    let lab = Lab::new();
    let before = name("before");
    lab.save("one", Some("before")).unwrap();
    lab.save("one", Some("good")).unwrap();
    let folder = lab.snapshots().path(&before);
    let aside = lab.folder.path().join("aside");
    let check = |path: &Path, is_read: bool, expected: &str| {
        let load = lab.snapshots().load(&before, Some(&name("two")), false).unwrap_err();
        assert!(matches!(load, SnapshotError::Damaged { .. }), "{}: {load}", path.display());
        assert!(load.to_string().contains(expected), "{load}");
        let (snapshots, damaged) = lab.snapshots().list().unwrap();
        assert_eq!(snapshots.len(), 2 - usize::from(is_read), "{}", path.display());
        assert_eq!(damaged.len(), usize::from(is_read), "{damaged:?}");
        assert!(damaged.iter().all(|error| error.to_string().contains("`before`")));
    };
    let places = [
        (folder.clone(), true, "its folder is not a folder"),
        (folder.join(MANIFEST), true, "snapshot.json is not a file"),
        (folder.join(SUMS), false, "SHA256SUMS is not a file"),
        (folder.join(DEVNET), false, "devnet is not a folder"),
    ];
    for (path, is_read, expected) in places {
        fs::rename(&path, &aside).unwrap();
        symlink(&aside, &path).unwrap();
        check(&path, is_read, expected);
        fs::remove_file(&path).unwrap();
        // Opening it does not wait for a writer.
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        check(&path, is_read, expected);
        fs::remove_file(&path).unwrap();
        fs::rename(&aside, &path).unwrap();
    }
    let manifest = folder.join(MANIFEST);
    fs::rename(&manifest, &aside).unwrap();
    // A sparse file takes no disk space.
    fs::File::create(&manifest).unwrap().set_len(1 << 36).unwrap();
    check(&manifest, true, "snapshot.json is not as it was written");
    fs::rename(&aside, &manifest).unwrap();
    lab.snapshots().load(&before, Some(&name("two")), false).unwrap();
}

#[test]
fn what_would_not_be_missed_is_told_apart_from_damage() {
    let lab = Lab::new();
    let before = name("before");
    lab.save("one", Some("before")).unwrap();
    let folder = lab.snapshots().path(&before);
    let stray = || match lab.snapshots().load(&before, Some(&name("two")), false).unwrap_err() {
        SnapshotError::Damaged { stray, .. } => stray,
        error => panic!("{error}"),
    };
    for place in ["notes.txt", "devnet/token", "devnet/accounts/more.key"] {
        fs::write(folder.join(place), "mine").unwrap();
        assert_eq!(stray(), Some(folder.join(place)));
        fs::remove_file(folder.join(place)).unwrap();
    }
    for place in ["devnet/jobs", "devnet/data/link"] {
        symlink("/", folder.join(place)).unwrap();
        assert_eq!(stray(), Some(folder.join(place)));
        fs::remove_file(folder.join(place)).unwrap();
    }
    for place in ["devnet/accounts", "devnet/topology.yaml"] {
        let aside = lab.folder.path().join("aside");
        fs::rename(folder.join(place), &aside).unwrap();
        symlink(&aside, folder.join(place)).unwrap();
        assert_eq!(stray(), None, "{place}");
        fs::remove_file(folder.join(place)).unwrap();
        fs::rename(&aside, folder.join(place)).unwrap();
    }
}

#[test]
fn a_linked_folder_of_snapshots_is_refused() {
    let lab = Lab::new();
    let elsewhere = lab.folder.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let linked = lab.home.path().join(FOLDER);
    symlink(&elsewhere, &linked).unwrap();
    let refused = |error: SnapshotError| match error {
        SnapshotError::Home(HomeError::NotFolder(path)) => assert_eq!(path, linked),
        error => panic!("{error}"),
    };
    refused(lab.save("one", Some("a")).unwrap_err());
    refused(lab.snapshots().list().unwrap_err());
    refused(lab.snapshots().load(&name("a"), None, false).unwrap_err());
    refused(lab.snapshots().remove(&name("a")).unwrap_err());
    assert_eq!(fs::read_dir(elsewhere).unwrap().count(), 0);
}

#[test]
fn links_are_not_saved() {
    let lab = Lab::new();
    let one = lab.devnet("one");
    symlink(lab.folder.path(), one.data_path().join("link")).unwrap();
    let error = lab.save("one", None).unwrap_err();
    assert!(matches!(error, SnapshotError::Strange(path) if path == one.data_path().join("link")));
    assert!(lab.leftovers().is_empty());
}

#[test]
fn what_a_killed_process_left_goes_with_the_next_snapshot() {
    let lab = Lab::new();
    lab.save("one", Some("a")).unwrap();
    let held = Scratch::new(&lab.home.path().join(FOLDER), UNFINISHED).unwrap();
    let left = lab.home.path().join(FOLDER).join(format!("{UNFINISHED}left"));
    fs::create_dir(&left).unwrap();
    fs::write(left.join("lock"), "1").unwrap();
    let deleted = lab.home.path().join(FOLDER).join(format!("{UNFINISHED}deleted"));
    fs::create_dir_all(deleted.join("snapshot/devnet")).unwrap();
    let loading = lab.home.path().join(".loading-left");
    fs::create_dir(&loading).unwrap();
    assert_eq!(lab.snapshots().list().unwrap().0.len(), 1);
    let leftovers = [deleted.clone(), left.clone(), loading.clone()];
    assert_eq!(lab.snapshots().leftovers().unwrap(), leftovers);
    lab.save("one", Some("b")).unwrap();
    assert!(!left.exists() && !deleted.exists());
    assert_eq!(lab.snapshots().leftovers().unwrap(), [loading]);
    lab.snapshots().sweep().unwrap();
    assert!(held.path("").exists(), "another process is at it");
    drop(held);
    assert!(lab.leftovers().is_empty());
    assert!(lab.folder.path().exists());
}

#[test]
fn a_devnet_without_a_chain_is_not_saved() {
    let lab = Lab::new();
    drop(lab.devnet("empty").lock().unwrap());
    assert!(matches!(lab.save("empty", None), Err(SnapshotError::NoChain(_))));
}

//! The folder of devnets: its owner, what it refuses, and what a reset leaves.

use super::*;
use cowboy_host::files::FileError;
use std::os::unix::fs::{PermissionsExt as _, symlink};

fn devnet(home: &Home, name: &str) -> DevnetHome {
    home.devnet(&name.parse().unwrap())
}

fn record(name: &str) -> DevnetRecord {
    DevnetRecord {
        name: name.parse().unwrap(),
        pid: process::id(),
        started_at: Text(Timestamp::UNIX_EPOCH),
        rpc_url: "http://127.0.0.1:20123".to_owned(),
        chain_id: Text(ChainId(0x0102)),
        lease_url: None,
    }
}

#[test]
fn the_lock_decides_whether_a_devnet_runs() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path());
    let devnet = devnet(&home, "one");
    assert_eq!(devnet.state().unwrap(), DevnetState::Absent);

    let lock = devnet.lock().unwrap();
    assert_eq!(devnet.state().unwrap(), DevnetState::Starting { pid: Some(process::id()) });
    lock.write_record(&record("one")).unwrap();
    assert_eq!(devnet.state().unwrap(), DevnetState::Running(record("one")));
    assert!(matches!(
        devnet.lock(),
        Err(HomeError::InUse { name, pid: Some(pid) })
            if name.as_str() == "one" && pid == process::id()
    ));

    lock.write_record(&DevnetRecord { pid: 1, ..record("one") }).unwrap();
    let starting = DevnetState::Starting { pid: Some(process::id()) };
    assert_eq!(devnet.state().unwrap(), starting, "another process's record is stale");

    drop(lock);
    let died = devnet.state().unwrap();
    assert_eq!(died, DevnetState::Died(DevnetRecord { pid: 1, ..record("one") }));
    devnet.lock().unwrap().clean().unwrap();
    assert_eq!(devnet.record().unwrap(), None);
}

#[test]
fn the_list_has_devnets_only() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path().join("absent"));
    assert!(home.list().unwrap().is_empty());
    for name in ["b", "a"] {
        drop(devnet(&home, name).lock().unwrap());
    }
    fs::create_dir(home.path().join("no devnet")).unwrap();
    fs::create_dir(home.path().join("empty")).unwrap();
    fs::write(home.path().join("file"), "").unwrap();
    let names: Vec<_> = home.list().unwrap().iter().map(|d| d.name().to_string()).collect();
    assert_eq!(names, ["a", "b"]);
}

#[test]
fn secrets_are_for_their_owner() {
    let folder = tempfile::tempdir().unwrap();
    let devnet = devnet(&Home::at(folder.path()), "one");
    let lock = devnet.lock().unwrap();
    let key = SecretKey::derive(b"seed", "dev-0");
    let account = "dev-0".parse().unwrap();
    lock.write_account_key(&account, &key).unwrap();
    lock.write_token("secret").unwrap();
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(devnet.account_key_path(&account)), 0o600);
    assert_eq!(mode(devnet.token_path()), 0o600);
    assert_eq!(mode(devnet.path().to_owned()), 0o700);
    assert_eq!(devnet.token().unwrap(), "secret");
    assert_eq!(devnet.accounts().unwrap(), std::slice::from_ref(&account));
    let read = devnet.account_key(&account).unwrap().unwrap();
    assert_eq!(read.address(), key.address());
    assert!(devnet.account_key(&"dev-1".parse().unwrap()).unwrap().is_none());
    let another = "another".parse().unwrap();
    assert!(devnet.add_account(&another, &key).unwrap());
    assert_eq!(mode(devnet.account_key_path(&another)), 0o600);
    let other = SecretKey::derive(b"seed", "dev-1");
    assert!(!devnet.add_account(&another, &other).unwrap());
    let kept = devnet.account_key(&another).unwrap().unwrap();
    assert_eq!(kept.address(), key.address());
    assert_eq!(devnet.accounts().unwrap(), [another, account.clone()]);
    fs::write(devnet.account_key_path(&account), "00\n").unwrap();
    assert!(matches!(
        devnet.account_key(&account),
        Err(HomeError::File(FileError::Malformed { .. }))
    ));
}

#[test]
fn a_reset_that_was_interrupted_is_finished_by_who_takes_the_lock() {
    let folder = tempfile::tempdir().unwrap();
    let devnet = devnet(&Home::at(folder.path()), "one");
    let lock = devnet.lock().unwrap();
    for path in [devnet.validator_path(&"validator-0".parse().unwrap()), devnet.jobs_path()] {
        create_private_dir(&path).unwrap();
    }
    write_private(&devnet.resetting_path(), "").unwrap();
    assert!(!devnet.has_chain(), "its chain is as good as gone");
    drop(lock);
    let _lock = devnet.lock().unwrap();
    for path in [devnet.validators_path(), devnet.jobs_path(), devnet.resetting_path()] {
        assert!(!path.exists(), "{}", path.display());
    }
}

#[test]
fn what_a_devnet_does_not_put_into_its_folder_is_refused() {
    let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let devnet = devnet(&Home::at(folder.path()), "one");
    drop(devnet.lock().unwrap());
    let refuses = |path: &Path| {
        let error = devnet.lock().unwrap_err();
        assert!(matches!(&error, HomeError::NotFolder(named) if named == path), "{error}");
    };
    for place in ["token", "runners/runner-0", "data/consensus", "lease/logs/run/job/1.log"] {
        let path = devnet.path().join(place);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(elsewhere.path(), &path).unwrap();
        refuses(&path);
        fs::remove_file(&path).unwrap();
    }
    for place in [
        "jobs/x/link",
        "processes/own/jobs/link",
        "nodes/boxed/one/processes/boxed/jobs/link",
        "lease/artifacts/r/j/1/link",
    ] {
        let path = devnet.path().join(place);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(elsewhere.path(), &path).unwrap();
        devnet.lock().unwrap();
    }
    let linked = folder.path().join("two");
    symlink(devnet.path(), &linked).unwrap();
    let error = devnet.home().devnet(&"two".parse().unwrap()).lock().unwrap_err();
    assert!(matches!(&error, HomeError::NotFolder(named) if *named == linked), "{error}");
}

#[test]
fn a_reset_keeps_keys_and_topology() {
    let folder = tempfile::tempdir().unwrap();
    let devnet = devnet(&Home::at(folder.path()), "one");
    let lock = devnet.lock().unwrap();
    let account = "dev-0".parse().unwrap();
    lock.write_account_key(&account, &SecretKey::derive(b"seed", "dev-0")).unwrap();
    lock.write_topology("name: one\n").unwrap();
    lock.write_record(&record("one")).unwrap();
    create_private_dir(&devnet.validator_path(&"validator-0".parse().unwrap())).unwrap();
    assert!(devnet.has_chain());
    lock.reset().unwrap();
    assert!(!devnet.has_chain());
    assert_eq!(devnet.record().unwrap(), None);
    assert_eq!(devnet.topology().unwrap().as_deref(), Some("name: one\n"));
    assert_eq!(devnet.accounts().unwrap().len(), 1);
}

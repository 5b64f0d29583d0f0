//! Archives of folders: what goes in comes out, and what must not is refused.

use super::*;
use std::{fs::File, os::unix::fs::symlink};
use tempfile::TempDir;

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// An archive with these entries: name, kind, link target, file size.
fn archive(entries: &[(&str, EntryType, &str, usize)]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for (name, kind, to, length) in entries {
        let mut header = Header::new_ustar();
        header.set_entry_type(*kind);
        header.set_mode(0o755);
        header.set_size(*length as u64);
        // Raw bytes, because the builder's own checks do not stop an attacker.
        let old = header.as_old_mut();
        old.name[..name.len()].copy_from_slice(name.as_bytes());
        old.linkname[..to.len()].copy_from_slice(to.as_bytes());
        header.set_cksum();
        builder.append(&header, &vec![b'x'; *length][..]).unwrap();
    }
    zstd::encode_all(&builder.into_inner().unwrap()[..], LEVEL).unwrap()
}

fn check_refused(entries: &[(&str, EntryType, &str, usize)], expected: &str) {
    let into = folder();
    let error = unpack(&archive(entries)[..], LIMITS, into.path()).unwrap_err().to_string();
    assert!(error.starts_with(expected), "{error}");
}

const FILE: EntryType = EntryType::Regular;
const FOLDER: EntryType = EntryType::Directory;
const LINK: EntryType = EntryType::Symlink;

#[test]
fn what_is_packed_is_unpacked() {
    let from = folder();
    let long = "long/".repeat(60);
    let deep = format!("work/{long}");
    fs::create_dir_all(from.path().join(&deep)).unwrap();
    fs::create_dir_all(from.path().join("home/.deps")).unwrap();
    fs::write(from.path().join(format!("{deep}file")), "text").unwrap();
    fs::write(from.path().join("work/not-asked"), "text").unwrap();
    symlink("../../work/x", from.path().join("home/.deps/out")).unwrap();
    symlink("../../../x", from.path().join("home/.deps/too-far")).unwrap();
    let time = after(981_173_106, 789_012_345);
    let file = File::options().write(true).open(from.path().join(format!("{deep}file"))).unwrap();
    file.set_times(FileTimes::new().set_modified(time)).unwrap();
    file.set_permissions(fs::Permissions::from_mode(0o400)).unwrap();
    fs::set_permissions(from.path().join("work/long"), fs::Permissions::from_mode(0o750)).unwrap();

    let mut bytes = Vec::new();
    let paths = ["home/.deps", "work/long", "work/none"].map(PathBuf::from);
    let packed = pack(from.path(), &paths, LIMITS, &mut bytes).unwrap();
    assert_eq!(packed, Packed { entries: 63, left_out: 1 });
    let into = folder();
    let unpacked = unpack(&bytes[..], LIMITS, into.path()).unwrap();
    unpacked.settle(into.path());
    assert_eq!(unpacked.entries, 63);
    let at = into.path().join(format!("{deep}file"));
    let meta = fs::metadata(&at).unwrap();
    assert_eq!((meta.modified().unwrap(), meta.mode() & 0o777), (time, 0o400));
    assert_eq!(fs::read_to_string(at).unwrap(), "text");
    assert_eq!(fs::metadata(into.path().join("work/long")).unwrap().mode() & 0o777, 0o750);
    let link = fs::read_link(into.path().join("home/.deps/out")).unwrap();
    assert_eq!(link, Path::new("../../work/x"));
    assert!(!into.path().join("work/not-asked").exists());
}

#[test]
fn what_leads_out_is_refused() {
    for name in ["etc/x", "/etc/x", "../x", "work/../x", "work/../../x", "", "x", "./work/x"] {
        check_refused(&[(name, FILE, "", 1)], &format!("{name}: not below work/ or home/"));
    }
    for to in ["/etc", "..", "../..", "../../x", "a/..", "a/../../x", "../etc"] {
        check_refused(&[("work/link", LINK, to, 0)], "work/link: a link that leads out");
    }
    check_refused(&[("work/link", LINK, "", 0)], "work/link: a link that leads nowhere");
    for to in ["x", "./x", "../home/x", "../work", "sub/x"] {
        let into = folder();
        unpack(&archive(&[("work/link", LINK, to, 0)])[..], LIMITS, into.path()).unwrap();
    }
    for kind in [
        EntryType::Link,
        EntryType::Char,
        EntryType::Block,
        EntryType::Fifo,
        EntryType::GNUSparse,
        EntryType::GNULongName,
        EntryType::XGlobalHeader,
    ] {
        let expected = "work/x: neither a file nor a folder nor a symbolic link";
        check_refused(&[("work/x", kind, "work/y", 0)], expected);
    }
}

#[test]
fn nothing_is_written_through_a_link_or_twice() {
    let exists = "File exists";
    check_refused(&[("work/l", LINK, "x", 0), ("work/l/file", FILE, "", 1)], exists);
    check_refused(&[("work/l", LINK, "x", 0), ("work/l", FILE, "", 1)], exists);
    check_refused(&[("work/l", LINK, "x", 0), ("work/l/sub", FOLDER, "", 0)], exists);
    check_refused(&[("work/f", FILE, "", 1), ("work/f", FILE, "", 1)], exists);
    check_refused(&[("work/f", FILE, "", 1), ("work/f/x", FILE, "", 1)], exists);
    check_refused(&[("work/f", FILE, "", 1), ("work/f", LINK, "x", 0)], exists);
    // A folder may be named twice.
    let twice = archive(&[("work/d/", FOLDER, "", 0), ("work/d", FOLDER, "", 0)]);
    let into = folder();
    assert_eq!(unpack(&twice[..], LIMITS, into.path()).unwrap().entries, 2);
}

#[test]
fn more_than_the_limits_is_neither_packed_nor_unpacked() {
    let limits = Limits { entries: 3, bytes: 10 };
    let three = [("work/a", FILE, "", 6), ("work/b", FILE, "", 4)];
    assert_eq!(unpack(&archive(&three)[..], limits, folder().path()).unwrap().entries, 2);
    let entries = Limits { entries: 2, ..limits };
    let error = unpack(&archive(&three)[..], entries, folder().path()).unwrap_err();
    assert_eq!(error.to_string(), "more than 2 files and folders");
    let bytes = Limits { bytes: 9, ..limits };
    let error = unpack(&archive(&three)[..], bytes, folder().path()).unwrap_err();
    assert_eq!(error.to_string(), "more than 9 bytes");
    // Folders without an entry of their own count too.
    let deep = [("work/a/b/c/d", FILE, "", 0)];
    unpack(&archive(&deep)[..], limits, folder().path()).unwrap_err();

    let from = folder();
    fs::create_dir(from.path().join("work")).unwrap();
    for name in ["a", "b"] {
        fs::write(from.path().join("work").join(name), "12345").unwrap();
    }
    let paths = [PathBuf::from("work")];
    let packed = pack(from.path(), &paths, limits, io::sink()).unwrap();
    assert_eq!(packed, Packed { entries: 3, left_out: 0 });
    pack(from.path(), &paths, entries, io::sink()).unwrap_err();
    pack(from.path(), &paths, bytes, io::sink()).unwrap_err();
}

#[test]
fn an_archive_that_grows_where_nobody_looks_is_given_up() {
    let limits = Limits { entries: 3, bytes: 10 };
    let most = usize::try_from(10 + 5 * ENTRY).unwrap();
    let expected = "longer than 3 files and folders with 10 bytes can be";
    // Data of a folder entry is skipped.
    let check = |bytes: &[u8]| {
        let error = unpack(bytes, limits, folder().path()).unwrap_err();
        assert_eq!(error.to_string(), expected);
    };
    check(&archive(&[("work/d", FOLDER, "", most)]));
    check(&archive(&[("work/l", LINK, "x", most)]));
    let mut builder = Builder::new(Vec::new());
    for _ in 0..=most / 1_024 {
        builder.append_pax_extensions([("comment", &b"x"[..])]).unwrap();
    }
    check(&zstd::encode_all(&builder.into_inner().unwrap()[..], LEVEL).unwrap());
}

#[test]
fn what_is_broken_off_or_no_archive_is_told() {
    let whole = archive(&[("work/a", FILE, "", 5_000), ("work/b", FILE, "", 5_000)]);
    for length in 0..whole.len() {
        // Without its end marks, which hold no data, it may be accepted.
        let unpacked = unpack(&whole[..length], LIMITS, folder().path());
        assert!(unpacked.is_err() || length + 16 > whole.len(), "{length} of {}", whole.len());
    }
    unpack(&b"neither"[..], LIMITS, folder().path()).unwrap_err();
    let text = zstd::encode_all(&[b'x'; 2_000][..], LEVEL).unwrap();
    unpack(&text[..], LIMITS, folder().path()).unwrap_err();
}

#[test]
fn an_extended_header_is_bounded() {
    let with = |records: &[(&str, &[u8])]| {
        let mut builder = Builder::new(Vec::new());
        builder.append_pax_extensions(records.iter().copied()).unwrap();
        let mut header = Header::new_ustar();
        header.set_size(1);
        header.set_mode(0o644);
        header.set_cksum();
        builder.append(&header, &b"x"[..]).unwrap();
        let bytes = zstd::encode_all(&builder.into_inner().unwrap()[..], LEVEL).unwrap();
        unpack(&bytes[..], LIMITS, folder().path()).map(|unpacked| unpacked.entries)
    };
    let text = |result: Result<usize, ArchiveError>| match result {
        Ok(entries) => entries.to_string(),
        Err(error) => error.to_string(),
    };
    assert_eq!(text(with(&[("path", b"work/x"), ("mtime", b"1.5"), ("other", b"y")])), "1");
    assert_eq!(text(with(&[("path", b"work/x"), ("mtime", b"-1"), ("mtime", b"x.y")])), "1");
    assert_eq!(text(with(&[("path", b"/x")])), "/x: not below work/ or home/");
    let size = with(&[("path", b"work/x"), ("size", b"4096")]);
    assert_eq!(text(size), "extended header: it has a size");
    let long = vec![b'x'; MAX_HEADER as usize];
    assert_eq!(text(with(&[("path", &long)])), "extended header: it is too long");
}

#[test]
fn times_are_read_to_the_nanosecond() {
    assert_eq!(time(b"12"), Some(after(12, 0)));
    assert_eq!(time(b"12.5"), Some(after(12, 500_000_000)));
    assert_eq!(time(b"12.0000000019"), Some(after(12, 1)));
    assert_eq!(time(b"18446744073709551615.9"), Some(UNIX_EPOCH));
    for none in [&b""[..], b"x", b"-1", b"1.x", b"1.-5", b"\xff"] {
        assert_eq!(time(none), None);
    }
}

//! Packs the relative relocations of the released program if linker and loader support it: a
//! megabyte less to download, and fewer pages to touch at each start.
//!
//! rust-lld, Rust's own linker for this target, writes this form; glibc reads it from 2.36 on, and
//! an older glibc reports the version that it lacks. A build on an older system links as before.

use std::{env, path::Path, process::Command};

const TARGET: &str = "x86_64-unknown-linux-gnu";
/// The first glibc that reads packed relocations.
const GLIBC: (u32, u32) = (2, 36);

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |variable: &str, value: &str| env::var(variable).is_ok_and(|got| got == value);
    if is("PROFILE", "release")
        && is("TARGET", TARGET)
        && is("HOST", TARGET)
        && glibc().is_some_and(|version| version >= GLIBC)
        && links_by_rust_lld()
    {
        println!("cargo::rustc-link-arg-bin=cowboyctl=-Wl,-z,pack-relative-relocs");
    }
}

/// The version of this system's glibc.
fn glibc() -> Option<(u32, u32)> {
    let said = said(Command::new("getconf").arg("GNU_LIBC_VERSION"))?;
    let (major, minor) = said.strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.split('.').next()?.parse().ok()?))
}

/// Whether Rust's own linker exists, and nothing requests another.
fn links_by_rust_lld() -> bool {
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    if env::var_os("RUSTC_LINKER").is_some() || flags.contains("link") {
        return false;
    }
    let sysroot = env::var_os("RUSTC").and_then(|rustc| {
        let mut rustc = Command::new(rustc);
        said(rustc.args(["--print", "sysroot"]))
    });
    let lld = format!("lib/rustlib/{TARGET}/bin/gcc-ld/ld.lld");
    sysroot.is_some_and(|sysroot| Path::new(&sysroot).join(lld).exists())
}

/// The output of a command, if it succeeds.
fn said(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}

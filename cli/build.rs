//! Has the linker keep one of identical functions in the released program, where the linker can.
//!
//! rust-lld, Rust's own for this target, has the option; others may refuse it.

use std::{env, path::Path, process::Command};

const TARGET: &str = "x86_64-unknown-linux-gnu";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |variable: &str, value: &str| env::var(variable).is_ok_and(|got| got == value);
    if is("PROFILE", "release") && is("TARGET", TARGET) && links_by_rust_lld() {
        println!("cargo::rustc-link-arg-bin=cowboyctl=-Wl,--icf=all");
    }
}

/// Whether Rust's own linker is there, and nothing asks for another.
fn links_by_rust_lld() -> bool {
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    if env::var_os("RUSTC_LINKER").is_some() || flags.contains("link") {
        return false;
    }
    let Some(rustc) = env::var_os("RUSTC") else { return false };
    let Ok(asked) = Command::new(rustc).args(["--print", "sysroot"]).output() else { return false };
    let sysroot = String::from_utf8_lossy(&asked.stdout);
    let lld = format!("lib/rustlib/{TARGET}/bin/gcc-ld/ld.lld");
    asked.status.success() && Path::new(sysroot.trim()).join(lld).exists()
}

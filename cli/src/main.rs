//! The program; see the library with the same name.

use std::process::ExitCode;

fn main() -> ExitCode {
    cowboyctl::run()
}

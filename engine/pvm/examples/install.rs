//! Makes an artifact: `cargo run -p cowboy-pvm --example install -- PYTHON CACHE`, or of a
//! component that exists: `… -- --component FILE CACHE`. Prints the artifact's folder.

use std::{error::Error, ffi::OsString, fs, io::Write as _, path::PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let folder = match &arguments[..] {
        [flag, component, cache] if flag == "--component" => {
            cowboy_pvm::artifact::compile(&fs::read(component)?, &PathBuf::from(cache))?
        }
        [python, cache] => cowboy_pvm::build::build(python, &PathBuf::from(cache), |step| {
            let _ = writeln!(std::io::stderr(), "{step}");
        })?,
        _ => return Err("usage: install PYTHON CACHE, or install --component FILE CACHE".into()),
    };
    writeln!(std::io::stdout(), "{}", folder.display())?;
    Ok(())
}

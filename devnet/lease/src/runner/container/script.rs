//! The runner's scripts in a container, for any `sh`: they use only its built-ins and `/proc`.
//!
//! They recognize the job's processes by id: all except the first, which is the container's own,
//! the one that holds the container, and the script's own.

use crate::check::is_variable;
use cowboy_host::spelling::Quoted;
use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt as _,
};

/// Prints its process id and runs until its input ends, which is when the runner ends, in whatever
/// way. It ignores the signals that ask the job to end.
pub(super) const HOLD: &str = "trap '' TERM HUP INT QUIT; echo $$; read -r _";

/// Runs a step: `$1` is the id of the process that holds the container, `$2` the file with the
/// environment, `$3` the working directory, `$4` the step's command. Processes that the step leaves
/// running are killed. If the step was asked to end, the script waits for them first, as far as the
/// image can, and passes on their output.
pub(super) const STEP: &str = r#"asked= hold=$1
trap 'asked=1' TERM HUP INT
( . "$2" && cd "$3" && exec /bin/sh -c "$4" ) < /dev/null
code=$?
others() {
    left=
    for process in /proc/[0-9]*; do
        process=${process#/proc/}
        case $process in 1|"$hold"|$$) continue ;; esac
        read -r stat < "/proc/$process/stat" || continue
        case ${stat##*) } in Z*|X*) continue ;; esac
        left=1
        [ -n "$asked" ] || kill -KILL "$process"
    done
    [ -n "$left" ]
}
rounds=0
while others; do
    rounds=$((rounds + 1))
    if [ -n "$asked" ]; then
        sleep 0.1 || sleep 1 || break
    elif [ $rounds -ge 1000 ]; then
        break
    fi
done 2> /dev/null
exit $code"#;

pub(super) const END: &str = "trap '' TERM; kill -TERM -1";

/// Variables that shells reserve: setting them fails or has no effect.
const OWN: [&str; 7] = ["BASHOPTS", "BASH_VERSINFO", "EUID", "OPTIND", "PPID", "SHELLOPTS", "UID"];

/// An environment as a script that a shell reads. Errors: a variable that it cannot have.
pub(super) fn environment(env: &BTreeMap<String, OsString>) -> Result<Vec<u8>, String> {
    let mut text = Vec::new();
    for (name, value) in env {
        check(name)?;
        text.extend_from_slice(b"export ");
        text.extend_from_slice(name.as_bytes());
        text.push(b'=');
        quote(value, &mut text);
        text.push(b'\n');
    }
    Ok(text)
}

fn check(name: &str) -> Result<(), String> {
    let refused = |why| Err(format!("{} cannot be a variable in a container: {why}", Quoted(name)));
    if !is_variable(name) {
        return refused("expected letters, digits and _, no digit first");
    }
    match OWN.contains(&name) {
        true => refused("the shell reserves it"),
        false => Ok(()),
    }
}

fn quote(value: &OsStr, text: &mut Vec<u8>) {
    text.push(b'\'');
    for byte in value.as_bytes() {
        match byte {
            b'\'' => text.extend_from_slice(b"'\\''"),
            byte => text.push(*byte),
        }
    }
    text.push(b'\'');
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, process::Command};

    fn env<const N: usize>(of: [(&str, &str); N]) -> BTreeMap<String, OsString> {
        of.iter().map(|(name, value)| ((*name).to_owned(), OsString::from(value))).collect()
    }

    #[test]
    fn a_shell_has_every_value_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("env");
        let values = [
            ("EMPTY", ""),
            ("KEY", "-----BEGIN-----\na'b\"c\\d\n\n-----END-----\n"),
            ("META", "$HOME `id` $(id) ; & | # \t*"),
            ("QUOTES", "'''"),
            ("_x1", "ü"),
        ];
        fs::write(&file, environment(&env(values)).unwrap()).unwrap();
        for (name, value) in values {
            let script = format!(". \"$1\" && printf %s \"${name}\"; env | grep -q ^{name}=");
            let mut command = Command::new(crate::runner::SHELL);
            let output = command.env_clear().env("PATH", "/usr/bin:/bin").args(["-c", &script]);
            let output = output.arg("sh").arg(&file).output().unwrap();
            assert!(output.status.success(), "{name}: {output:?}");
            assert_eq!(String::from_utf8(output.stdout).unwrap(), value, "{name}");
        }
    }

    #[test]
    fn what_a_shell_would_not_take_is_refused() {
        for name in ["a.b", "a-b", "1a", "", "a b", "x;id", "BASH_FUNC_id%%", "ü", "UID", "PPID"] {
            let error = environment(&env([(name, "1")])).unwrap_err();
            assert!(
                error.starts_with(&format!("{} cannot be a variable", Quoted(name))),
                "{error}"
            );
        }
    }
}

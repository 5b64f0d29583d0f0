//! What runs in a container for the runner: scripts for any `sh`, with nothing but what it has
//! built in, and `/proc`.
//!
//! They know a process of the job by its number: all but the first, which is the container's; the
//! one that holds the container; and their own.

use crate::spelling::Quoted;
use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt as _,
};

/// The shell, in every image.
pub(super) const SHELL: &str = "/bin/sh";

/// Says its number, and goes on until its input ends: that is when the runner ends, however. Deaf
/// to what asks the job to end.
pub(super) const HOLD: &str = "trap '' TERM HUP INT QUIT; echo $$; read -r _";

/// Runs a step: `$1` is the number of the process that holds the container, `$2` the file with the
/// environment, `$3` where the step begins, `$4` what it is. What it leaves running is killed;
/// unless it was asked to end: then that is waited for, as far as the image can wait, and what it
/// writes is heard.
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

/// Asks every process to end.
pub(super) const END: &str = "trap '' TERM; kill -TERM -1";

/// What shells keep for themselves: to set it fails, or is without effect.
const OWN: [&str; 7] = ["BASHOPTS", "BASH_VERSINFO", "EUID", "OPTIND", "PPID", "SHELLOPTS", "UID"];

/// An environment as a shell reads it. Errors: what it would not take.
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

/// Whether a step in a container can have a variable of this name.
fn check(name: &str) -> Result<(), String> {
    let refused = |why| Err(format!("{} is no variable in a container: {why}", Quoted(name)));
    let letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    if !name.starts_with(letter) || !name.chars().all(|c| letter(c) || c.is_ascii_digit()) {
        return refused("letters, digits and _ are expected, no digit at the beginning");
    }
    match OWN.contains(&name) {
        true => refused("its shell keeps that for itself"),
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
            let mut command = Command::new(SHELL);
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
            assert!(error.starts_with(&format!("{} is no variable", Quoted(name))), "{error}");
        }
    }
}

//! An interactive shell: commands share its variables and working directory.

use crate::support::{Home, PATIENCE};
use rustix::process::{Pid, Signal, kill_process_group};
use std::{
    env, fs,
    io::{Read as _, Write as _},
    os::unix::{fs::symlink, process::CommandExt as _},
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
};
use tempfile::TempDir;

/// Marks the end of a command's output; no command prints it.
const END: &str = "\u{1}end ";

/// `sh` in a folder with the files of a checkout's top, and with a separate home for devnets.
pub struct Shell {
    child: Child,
    stdin: ChildStdin,
    output: Receiver<Vec<u8>>,
    seen: Vec<u8>,
    /// The folder of its devnets.
    devnets: String,
    /// The user's folder, and below it the one where commands are typed.
    folder: TempDir,
}

impl Shell {
    /// Opens a shell with the devnets of `home`.
    pub fn open(top: &Path, home: &Home) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let work = folder.path().join("cowboy");
        fs::create_dir(&work).unwrap();
        for name in ["examples", "docs", "README.md"] {
            symlink(top.join(name), work.join(name)).unwrap();
        }
        let bin = folder.path().join("bin");
        fs::create_dir(&bin).unwrap();
        symlink(env!("CARGO_BIN_EXE_cowboyctl"), bin.join("cowboyctl")).unwrap();
        let path = env::join_paths(
            [bin].into_iter().chain(env::split_paths(&env::var_os("PATH").unwrap_or_default())),
        )
        .unwrap();

        let devnets = home.path("").display().to_string().trim_end_matches('/').to_owned();
        let mut command = Command::new("sh");
        let python = env::var_os("COWBOYCTL_PYTHON");
        for (name, _) in env::vars().filter(|(name, _)| name.starts_with("COWBOYCTL_")) {
            command.env_remove(name);
        }
        if let Some(python) = python {
            command.env("COWBOYCTL_PYTHON", python);
        }
        let mut child = command
            .env("PATH", path)
            .env("HOME", folder.path())
            .env("COWBOYCTL_HOME", &devnets)
            .env("COWBOYCTL_PVM", home.machines())
            // Pages assume blocks of a second; their output holds for faster ones, too.
            .env("COWBOYCTL_BLOCK_TIME", "100ms")
            .env("NO_COLOR", "1")
            .env_remove("XDG_STATE_HOME")
            .env_remove("XDG_CONFIG_HOME")
            .current_dir(work)
            // Background processes of commands end with the shell.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let mut stdout = child.stdout.take().unwrap();
        let (sender, output) = channel();
        thread::spawn(move || {
            let mut buffer = [0; 8_192];
            while let Ok(read @ 1..) = stdout.read(&mut buffer) {
                if sender.send(buffer[..read].to_vec()).is_err() {
                    break;
                }
            }
        });
        let stdin = child.stdin.take().unwrap();
        Self { child, stdin, output, seen: Vec::new(), devnets, folder }
    }

    /// Saves a file in the folder where commands are typed.
    pub fn save(&self, name: &str, text: &str) {
        fs::write(self.folder.path().join("cowboy").join(name), text).unwrap();
    }

    /// Runs a command to its end; returns the output of both streams, as on a terminal, and the
    /// exit code.
    pub fn run(&mut self, command: &str) -> (String, i32) {
        let typed = format!("{{ {command}\n}} </dev/null 2>&1\nprintf '\\n\\001end %d\\n' $?\n");
        self.stdin.write_all(typed.as_bytes()).unwrap();
        loop {
            let text = String::from_utf8_lossy(&self.seen).into_owned();
            if let Some((printed, end)) = text.split_once(END)
                && let Some((code, _)) = end.split_once('\n')
            {
                self.seen.clear();
                let printed = printed.strip_suffix('\n').unwrap_or(printed);
                return (self.of_a_reader(printed), code.parse().unwrap());
            }
            match self.output.recv_timeout(PATIENCE) {
                Ok(bytes) => self.seen.extend(bytes),
                Err(error) => panic!("`{command}` did not end ({error}): {text}"),
            }
        }
    }

    /// Replaces this run's paths by a reader's.
    fn of_a_reader(&self, printed: &str) -> String {
        printed
            .replace(&self.devnets, "~/.local/state/cowboyctl")
            .replace(&self.folder.path().display().to_string(), "~")
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ended = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ended = self.child.wait();
    }
}

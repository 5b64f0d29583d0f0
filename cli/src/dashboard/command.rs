//! Runs the palette's commands: processes of this program, with bounded output, that can be
//! stopped.

use super::{
    output::{EndedCommand, Heard},
    palette::Completion,
};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    env,
    ffi::OsString,
    process::{ExitStatus, Stdio},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    process::{Child, Command},
    sync::{mpsc, oneshot},
    time::timeout,
};

const TIMEOUT: Duration = Duration::from_secs(300);

/// Time for a command to end before it is killed.
const GRACE: Duration = Duration::from_secs(2);

const SOON: Duration = Duration::from_secs(2);

const CANDIDATES: usize = 500;

/// The longest line that is kept, in bytes.
const LINE: usize = 4_096;

/// Maximum number of lines queued for the picture; beyond it the command waits.
pub const QUEUE: usize = 256;

/// The context that a command inherits.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    pub devnet: Option<String>,
    pub node: Option<String>,
}

/// A running command. Dropping it kills the process.
#[derive(Debug)]
pub struct Running {
    end: Option<oneshot::Sender<()>>,
}

impl Running {
    /// Asks it to end; kills it if it does not.
    pub fn end(&mut self) {
        if let Some(end) = self.end.take() {
            // It may have ended by itself.
            let _ended = end.send(());
        }
    }
}

/// Starts a command, the `run`th, whose output goes to `heard`.
pub fn start(
    run: u64,
    args: Vec<String>,
    surroundings: &Surroundings,
    heard: mpsc::Sender<(u64, Heard)>,
) -> Running {
    let (end, ended) = oneshot::channel();
    let surroundings = surroundings.clone();
    tokio::spawn(async move {
        let outcome = to_end(run, args, surroundings, ended, &heard).await;
        // The receiver is gone once the dashboard ends.
        let _gone = heard.send((run, Heard::Ended(outcome))).await;
    });
    Running { end: Some(end) }
}

async fn to_end(
    run: u64,
    args: Vec<String>,
    surroundings: Surroundings,
    ended: oneshot::Receiver<()>,
    heard: &mpsc::Sender<(u64, Heard)>,
) -> EndedCommand {
    let mut child = match command(args, &surroundings).and_then(|mut command| command.spawn()) {
        Ok(child) => child,
        Err(error) => return EndedCommand::Not(format!("it did not start: {error}")),
    };
    let pipes = (child.stdout.take(), child.stderr.take());
    let read = async {
        tokio::join!(lines(run, pipes.0, heard), lines(run, pipes.1, heard));
    };
    tokio::pin!(read);
    let by_itself = async {
        // Other processes that inherited the pipes may hold them after this one has ended.
        tokio::select! {
            () = &mut read => child.wait().await,
            status = child.wait() => {
                let _late = timeout(Duration::from_millis(200), &mut read).await;
                status
            }
        }
    };
    // The sender lives as long as the command is shown; dropping it stops the command, too.
    let outcome = tokio::select! {
        status = timeout(TIMEOUT, by_itself) => status.map_err(|_| "it took too long"),
        _ = ended => Err("ended"),
    };
    match outcome {
        Ok(Ok(status)) => EndedCommand::Code(code(status)),
        Ok(Err(error)) => EndedCommand::Not(format!("lost: {error}")),
        Err(why) => {
            stop(&mut child).await;
            EndedCommand::Not(why.to_owned())
        }
    }
}

fn code(status: ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt as _;
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

fn command(args: Vec<String>, surroundings: &Surroundings) -> std::io::Result<Command> {
    let mut command = Command::new(env::current_exe()?);
    command
        .args(args.into_iter().map(OsString::from))
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    for (name, value) in
        [("COWBOYCTL_DEVNET", &surroundings.devnet), ("COWBOYCTL_NODE", &surroundings.node)]
    {
        if let Some(value) = value {
            command.env(name, value);
        }
    }
    Ok(command)
}

/// The shell's completion candidates for the word after these: subcommands, flags, and names known
/// to the devnet. Empty if that fails or takes too long.
pub async fn offered(words: Vec<String>, surroundings: &Surroundings) -> Vec<Completion> {
    let program = ["--", "cowboyctl"].map(str::to_owned).into_iter();
    let args = program.chain(words).chain([String::new()]).collect();
    let Ok(mut command) = command(args, surroundings) else { return Vec::new() };
    // In fish's format: a candidate per line, with its description after a tab.
    let asked = command.env("COMPLETE", "fish").output();
    match timeout(SOON, asked).await {
        Ok(Ok(output)) => candidates(&output.stdout),
        _ => Vec::new(),
    }
}

fn candidates(printed: &[u8]) -> Vec<Completion> {
    let candidate = |line: &[u8]| {
        let mut parts = line.splitn(2, |byte| *byte == b'\t').map(plain);
        let path = parts.next().filter(|path| !path.is_empty())?;
        Some(Completion { path, about: parts.next().unwrap_or_default() })
    };
    printed.split(|byte| *byte == b'\n').filter_map(candidate).take(CANDIDATES).collect()
}

async fn stop(child: &mut Child) {
    let pid = child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
    if let Some(pid) = pid {
        // It may be gone already.
        let _gone = kill_process(pid, Signal::TERM);
    }
    if timeout(GRACE, child.wait()).await.is_err() {
        let _gone = child.kill().await;
    }
}

/// Forwards output line by line; splits a line that is too long.
async fn lines(run: u64, pipe: Option<impl AsyncRead + Unpin>, heard: &mpsc::Sender<(u64, Heard)>) {
    let Some(mut pipe) = pipe else { return };
    let mut line = Vec::new();
    let mut chunk = vec![0; LINE];
    while let Ok(count @ 1..) = pipe.read(&mut chunk).await {
        for byte in &chunk[..count] {
            if *byte == b'\n' || line.len() == LINE {
                let text = plain(&std::mem::take(&mut line));
                if heard.send((run, Heard::Line(text))).await.is_err() {
                    return;
                }
            }
            if *byte != b'\n' {
                line.push(*byte);
            }
        }
    }
    if !line.is_empty() {
        // The last line may have no line feed.
        let _gone = heard.send((run, Heard::Line(plain(&line)))).await;
    }
}

/// Text without control characters.
fn plain(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes).replace('\t', "    ");
    text.chars().filter(|c| !c.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_are_read_line_by_line() {
        let found = candidates(b"--job\tThe job\n0xab\n\nlatest\tthe\tnewest\x1b[1m\n");
        let expected = [("--job", "The job"), ("0xab", ""), ("latest", "the    newest[1m")];
        let expected = expected
            .map(|(path, about)| Completion { path: path.to_owned(), about: about.to_owned() });
        assert_eq!(found, expected);
    }
}

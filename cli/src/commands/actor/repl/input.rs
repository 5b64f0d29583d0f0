//! The lines of the prompt: from a terminal with an editor, or from any other input as they are.

use super::editor::{self, Editor, Read};
use cowboy_engine::actor::typed::MAX_TYPED_BYTES;
use std::{
    env,
    io::{self, BufRead, IsTerminal as _, Read as _},
    sync::mpsc as blocking,
    thread,
};
use tokio::sync::mpsc;

/// A question for a line.
struct Ask {
    prompt: String,
    words: Vec<String>,
}

/// Reads lines on its own thread, each when it is asked for.
#[derive(Debug)]
pub struct PromptInput {
    asks: blocking::Sender<Ask>,
    lines: mpsc::Receiver<Read>,
    is_terminal: bool,
}

/// Whether a person types: both streams are a terminal that moves its cursor.
pub fn is_typed() -> bool {
    let moves = env::var_os("TERM").is_none_or(|term| term != "dumb");
    io::stdin().is_terminal() && io::stdout().is_terminal() && moves
}

impl PromptInput {
    pub fn start(is_terminal: bool) -> Self {
        let (asks, asked) = blocking::channel::<Ask>();
        let (sender, lines) = mpsc::channel(1);
        // The thread ends with the process, because nothing ends a read.
        thread::spawn(move || {
            let mut editor = Editor::default();
            for Ask { prompt, words } in asked {
                let read = match is_terminal {
                    true => editor.read(&prompt, &words),
                    false => plain(&mut io::stdin().lock()),
                };
                if sender.blocking_send(read.unwrap_or_else(Read::Failed)).is_err() {
                    return;
                }
            }
        });
        Self { asks, lines, is_terminal }
    }

    pub async fn line(&mut self, prompt: &str, words: Vec<String>) -> Read {
        let ask = Ask { prompt: prompt.to_owned(), words };
        match self.asks.send(ask) {
            Ok(()) => self.lines.recv().await.unwrap_or(Read::End),
            Err(_) => Read::End,
        }
    }
}

impl Drop for PromptInput {
    fn drop(&mut self) {
        if self.is_terminal {
            editor::leave();
        }
    }
}

/// Reads a line of at most [`MAX_TYPED_BYTES`]; of a longer one, nothing is kept.
fn plain(input: &mut impl BufRead) -> io::Result<Read> {
    let mut line = Vec::new();
    let limit = MAX_TYPED_BYTES as u64 + 1;
    input.by_ref().take(limit).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(Read::End);
    }
    if !line.ends_with(b"\n") && line.len() > MAX_TYPED_BYTES {
        skip_line(input)?;
        return Ok(Read::Refused(format!("a line has at most {MAX_TYPED_BYTES} bytes")));
    }
    Ok(match String::from_utf8(line) {
        Ok(line) => {
            let line = line.strip_suffix('\n').unwrap_or(&line);
            Read::Line(line.strip_suffix('\r').unwrap_or(line).to_owned())
        }
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            Read::Refused(format!("the line is not UTF-8 at byte {at}"))
        }
    })
}

fn skip_line(input: &mut impl BufRead) -> io::Result<()> {
    loop {
        let read = input.fill_buf()?;
        let (length, feed) = (read.len(), read.iter().position(|byte| *byte == b'\n'));
        input.consume(feed.map_or(length, |at| at + 1));
        if feed.is_some() || length == 0 {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_to_the_end_of_the_input() {
        let long = "x".repeat(3 * MAX_TYPED_BYTES);
        let text = [b"a\nb\r\n\n".as_slice(), long.as_bytes(), b"\n\xff\nlast"].concat();
        let mut input = text.as_slice();
        let mut read = || match plain(&mut input).unwrap() {
            Read::Line(line) => format!("={line}"),
            other => format!("{other:?}"),
        };
        assert_eq!([read(), read(), read()], ["=a", "=b", "="]);
        assert_eq!(read(), "Refused(\"a line has at most 8192 bytes\")");
        assert_eq!(read(), "Refused(\"the line is not UTF-8 at byte 0\")");
        assert_eq!([read(), read(), read()], ["=last", "End", "End"]);
    }
}

//! A parser for event streams (WHATWG HTML §9.2), limited to the fields that the API and language
//! models use: `id`, `event`, `data`, comments. Bytes in, whole messages out; no I/O.
//!
//! The crate `sse-stream`, which the SDK for MCP brings, has no limit on the length of a line or a
//! message, and a peer may send one without end.

/// One message of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SseMessage {
    /// The `event` field; empty when absent.
    pub event: String,
    /// The `data` lines, joined by line feeds.
    pub data: String,
}

/// A message or line exceeds the parser's limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLong;

/// Cuts a byte stream into messages.
///
/// [`Parser::feed`] takes bytes as they arrive and returns the messages they complete. A message
/// cut off by the end of the stream is dropped with the parser.
#[derive(Debug)]
pub struct Parser {
    line: Vec<u8>,
    message: SseMessage,
    has_data: bool,
    limit: usize,
}

impl Parser {
    /// A parser for messages of at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self { line: Vec::new(), message: SseMessage::default(), has_data: false, limit }
    }

    pub fn feed(&mut self, bytes: &[u8]) -> Result<Vec<SseMessage>, TooLong> {
        let mut messages = Vec::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.line.len() + self.message.data.len() + piece.len() > self.limit {
                return Err(TooLong);
            }
            self.line.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                messages.extend(self.take_line(&String::from_utf8_lossy(&line)));
            }
        }
        Ok(messages)
    }

    fn take_line(&mut self, line: &str) -> Option<SseMessage> {
        let line = line.trim_end_matches(['\n', '\r']);
        if line.is_empty() {
            let message = std::mem::take(&mut self.message);
            return std::mem::take(&mut self.has_data).then_some(message);
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.message.event),
            "data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.message.data.push('\n');
                }
                self.message.data.push_str(value);
            }
            // The API's `id` repeats the height in the data; an empty field is a comment.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(event: &str, data: &str) -> SseMessage {
        SseMessage { event: event.to_owned(), data: data.to_owned() }
    }

    #[test]
    fn messages_do_not_depend_on_how_bytes_arrive() {
        let stream = b": hello\n\nid: 7\nevent: block\ndata: {\"a\":\ndata: 1}\r\n\r\n\
                       :\nevent: x\n\ndata:two\n\ndata: cut";
        let expected = [message("block", "{\"a\":\n1}"), message("", "two")];
        for size in 1..stream.len() {
            let mut parser = Parser::new(1_000);
            let mut messages = Vec::new();
            for chunk in stream.chunks(size) {
                messages.extend(parser.feed(chunk).unwrap());
            }
            assert_eq!(messages, expected, "chunks of {size}");
        }
    }

    #[test]
    fn a_message_is_bounded() {
        let mut parser = Parser::new(10);
        assert_eq!(parser.feed(b"data: 123"), Ok(vec![]));
        assert_eq!(parser.feed(b"45"), Err(TooLong));
        let mut parser = Parser::new(20);
        assert_eq!(parser.feed(b"data: 123456\n"), Ok(vec![]));
        assert_eq!(parser.feed(b"data: 123456789\n"), Err(TooLong));
    }
}

//! HQ's end of a data connection.

use super::{UNEXPECTED, error};
use crate::rules::quoted;
use crate::{Decoder, Dialect, Message, MessageId, Rule, Stream, Violation};

/// HQ's end of a data connection.
#[derive(Debug)]
pub struct Data {
    decoder: Decoder,
    run: Option<u8>,
    closed: bool,
}

/// The result of handling received bytes on a data connection.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DataOutput {
    /// The bytes to send.
    pub transmit: Vec<u8>,
    /// Whether to close the connection afterwards.
    pub close: bool,
    /// The rules that the agent broke.
    pub violations: Vec<Violation>,
}

impl Default for Data {
    fn default() -> Self {
        Self::new()
    }
}

impl Data {
    /// Creates the state machine of an accepted connection.
    pub fn new() -> Self {
        Self { decoder: Decoder::new(Stream::data_from_agent(None)), run: None, closed: false }
    }

    /// Returns the run that the connection belongs to; `None` before data hello.
    pub fn run(&self) -> Option<u8> {
        self.run
    }

    /// Handles bytes that the agent sent. `dialect` maps a run to the dialect of its agent (`None` if there is no
    /// such run); `take` receives every message after data hello, with its offset.
    #[inline]
    pub fn handle_bytes(
        &mut self,
        bytes: &[u8],
        dialect: impl Fn(u8) -> Option<Dialect>,
        mut take: impl FnMut(u64, Message<'_>),
    ) -> DataOutput {
        let mut output = DataOutput::default();
        if self.closed {
            return output;
        }
        let (mut run, mut early) = (self.run, None);
        let read = self.decoder.feed(bytes, |offset, message| {
            if output.close {
                return None;
            }
            match message {
                Message::DataHello { run: named } if run.is_none() => {
                    let found = dialect(named);
                    if found.is_some() {
                        run = Some(named);
                        output.transmit.push(MessageId::DATA_HELLO_REPLY.0);
                    } else {
                        output.reject(Rule::UnknownRun, format!("run {named}"), offset, UNKNOWN_RUN);
                    }
                    found
                }
                Message::DataHello { run } => {
                    output.reject(Rule::SecondHello, format!("run {run}"), offset, UNEXPECTED);
                    None
                }
                Message::Error { text } => {
                    output.violations.push(Violation::new(Rule::AgentError, quoted(text), Some(offset)));
                    output.close = true;
                    None
                }
                message => {
                    // Messages that arrive together with hello were sent without waiting for the reply.
                    if !output.transmit.is_empty() && early.is_none() {
                        early = Some((message.id(), offset));
                    }
                    take(offset, message);
                    None
                }
            }
        });
        self.run = run;
        if let Some((id, offset)) = early {
            output.violations.push(Violation::new(Rule::BeforeReply, id.to_string(), Some(offset)));
        }
        if let Err(error) = read
            && !output.close
        {
            let rule = if run.is_some() { Rule::Undecodable } else { Rule::BeforeHello };
            output.reject(rule, error.to_string(), error.offset, UNEXPECTED);
        }
        self.closed |= output.close;
        output
    }

    /// Handles the end of the connection. Returns a violation if the last message is incomplete.
    pub fn handle_close(&mut self) -> Option<Violation> {
        let leftover = self.decoder.leftover();
        let truncated = leftover > 0 && !self.closed;
        self.closed = true;
        let at = Some(self.decoder.offset());
        truncated.then(|| Violation::new(Rule::CutMessage, format!("{leftover} bytes of a message"), at))
    }
}

/// The error text of the original HQs.
const UNKNOWN_RUN: &str = "Data connection timed out waiting for a valid trace";

impl DataOutput {
    fn reject(&mut self, rule: Rule, detail: impl Into<String>, offset: u64, why: &str) {
        self.violations.push(Violation::new(rule, detail, Some(offset)));
        self.transmit.extend(error(why));
        self.close = true;
    }
}

//! HQ's side of a data connection.

use super::{UNEXPECTED, error};
use crate::rules::quoted;
use crate::{Decoder, Dialect, Message, MessageId, Rule, Stream, Violation};

/// A data connection.
#[derive(Debug)]
pub struct Data {
    decoder: Decoder,
    run: Option<u8>,
    closed: bool,
}

/// What follows from what has come on a data connection.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DataOutput {
    /// What to write.
    pub transmit: Vec<u8>,
    /// Whether to close the connection after that.
    pub close: bool,
    /// The rules that were broken.
    pub violations: Vec<Violation>,
}

impl Default for Data {
    fn default() -> Self {
        Self::new()
    }
}

impl Data {
    /// A connection that was accepted.
    pub fn new() -> Self {
        Self { decoder: Decoder::new(Stream::data_from_agent(None)), run: None, closed: false }
    }

    /// The run that it belongs to, once it has said so.
    pub fn run(&self) -> Option<u8> {
        self.run
    }

    /// Takes what the agent has sent. `dialect` says which one the agent of a run speaks (`None`: there is no such run);
    /// `take` gets every message after data hello, with its offset.
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
                        output.refuse(Rule::UnknownRun, format!("run {named}"), offset, UNKNOWN_RUN);
                    }
                    found
                }
                Message::DataHello { run } => {
                    output.refuse(Rule::SecondHello, format!("run {run}"), offset, UNEXPECTED);
                    None
                }
                Message::Error { text } => {
                    output.violations.push(Violation::new(Rule::AgentError, quoted(text), Some(offset)));
                    output.close = true;
                    None
                }
                message => {
                    // What comes together with hello was sent without waiting.
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
            output.refuse(rule, error.to_string(), error.offset, UNEXPECTED);
        }
        self.closed |= output.close;
        output
    }

    /// The connection has ended: whether in the middle of a message.
    pub fn handle_close(&mut self) -> Option<Violation> {
        let leftover = self.decoder.leftover();
        let cut = leftover > 0 && !self.closed;
        self.closed = true;
        let at = Some(self.decoder.offset());
        cut.then(|| Violation::new(Rule::CutMessage, format!("{leftover} bytes of one"), at))
    }
}

/// What the original HQs say.
const UNKNOWN_RUN: &str = "Data connection timed out waiting for a valid trace";

impl DataOutput {
    fn refuse(&mut self, rule: Rule, detail: impl Into<String>, offset: u64, why: &str) {
        self.violations.push(Violation::new(rule, detail, Some(offset)));
        self.transmit.extend(error(why));
        self.close = true;
    }
}

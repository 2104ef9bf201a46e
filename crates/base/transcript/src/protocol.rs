//! The trait of protocols that can be recorded.

use serde_json::Value;

use crate::{Close, Field, Frame, Header, Open};

/// A direction of a connection, named after the sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the side that sends requests.
    FromClient,
    /// From the side that replies to them.
    FromServer,
}

impl Direction {
    /// Returns the name of this direction, of a protocol's [`Protocol::DIRECTIONS`].
    pub(crate) fn name_in(self, [client, server]: [&'static str; 2]) -> &'static str {
        match self {
            Self::FromClient => client,
            Self::FromServer => server,
        }
    }
}

/// A protocol whose connections can be recorded and shown.
///
/// A [`Journal`](crate::Journal) writes its transcripts and an [`Inspector`](crate::Inspector) shows them.
pub trait Protocol {
    /// The value of `protocol` in the header of a transcript.
    const NAME: &'static str;

    /// The values of `dir` in a transcript: [`Direction::FromClient`], then [`Direction::FromServer`].
    const DIRECTIONS: [&'static str; 2];

    /// The state that decoding the messages of one connection needs.
    type Connection: Default;

    /// Returns the value of `dir` for a direction.
    fn name(direction: Direction) -> &'static str {
        direction.name_in(Self::DIRECTIONS)
    }

    /// Returns the direction for a value of `dir`; `None` if the protocol has no such direction.
    fn direction(name: &str) -> Option<Direction> {
        [Direction::FromClient, Direction::FromServer].into_iter().find(|it| Self::name(*it) == name)
    }

    /// Returns whether a transcript with this header is of this protocol.
    fn is_of(header: &Header) -> bool {
        header.more.get("protocol").is_some_and(|name| name == Self::NAME)
    }

    /// Decodes the bytes of a frame: returns all messages that are complete with it.
    fn decode(&self, connection: &mut Self::Connection, from: Direction, frame: &Frame) -> Vec<Decoded>;

    /// Returns the incomplete message that remained when one side stopped sending.
    fn end(&self, _connection: &mut Self::Connection, _from: Direction) -> Vec<Decoded> {
        Vec::new()
    }

    /// Summarizes a header in one line.
    fn summarize_header(_header: &Header) -> String {
        String::new()
    }

    /// Summarizes in one line which connection was opened.
    fn summarize_open(_open: &Open) -> String {
        String::new()
    }

    /// Summarizes in one line how a connection was closed.
    fn summarize_close(_close: &Close) -> String {
        String::new()
    }

    /// Masks values in the fields of a header that may be secrets.
    fn mask_header(&self, _fields: &mut Fields) {}
}

/// Names and values, in the order in which they are shown.
pub type Fields = Vec<(String, Value)>;

/// A decoded message, or bytes that are not a message.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Decoded {
    /// The kind in terms of the protocol, such as `frame`, `request`, `stream` or `part`.
    pub kind: String,
    /// The number of the message in its protocol.
    pub id: Option<i64>,
    /// The name of the message in its protocol.
    pub name: Option<String>,
    /// The number of bytes.
    pub bytes: Option<u64>,
    /// The decoded parts; `None` if there are too many to list, or none.
    pub fields: Option<Vec<Field>>,
    /// The most important content, in one line.
    pub summary: String,
    /// All content, one part per line.
    pub details: Vec<String>,
    /// The reason why the message could not be decoded.
    pub error: Option<String>,
    /// Whether some of the bytes could not be decoded.
    pub is_undecoded: bool,
}

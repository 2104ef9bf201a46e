//! A recording as a conversation: connections and decoded messages, for display.

use std::collections::HashSet;

use runtap_bytefrog::hq::Connection;
use runtap_bytefrog_proto::render::{self, fields};
use runtap_bytefrog_proto::{Decoder, Dialect, Side, Stream as Direction};
use runtap_transcript::{
    Close, Decoded, Direction as From, Entry, Field, Frame, Header, Inspector, Located, Open, Protocol, Row,
    seconds,
};
use serde_json::{Map, Value};

use crate::recording::error::Error;
use crate::recording::find::RecordedAgent;
use crate::recording::merged_streams::{MergedStreams, StreamChunk};
use crate::recording::replay::{Damage, detect_dialect};
use crate::recording::stream::Stream;

/// Bytefrog as a protocol of recorded conversations. The name of a connection is that of its files: `agent0.ctl`.
#[derive(Debug)]
struct Bytefrog {
    /// The dialect of the agent.
    dialect: Dialect,
}

/// The decoders of both directions of a connection.
#[derive(Debug, Default)]
struct Decoders {
    from_agent: Option<Decoder>,
    from_hq: Option<Decoder>,
}

impl Protocol for Bytefrog {
    const NAME: &'static str = "bytefrog";
    const DIRECTIONS: [&'static str; 2] = ["a2h", "h2a"];
    type Connection = Decoders;

    fn decode(&self, connection: &mut Decoders, from: From, frame: &Frame) -> Vec<Decoded> {
        let (decoder, side) = match from {
            From::FromClient => (&mut connection.from_agent, Side::Agent),
            From::FromServer => (&mut connection.from_hq, Side::Hq),
        };
        let decoder = decoder.get_or_insert_with(|| self.decoder(&frame.conn, side));
        messages(decoder, frame.hex.as_deref().unwrap_or_default())
    }

    fn end(&self, connection: &mut Decoders, from: From) -> Vec<Decoded> {
        let decoder = match from {
            From::FromClient => &connection.from_agent,
            From::FromServer => &connection.from_hq,
        };
        let left = decoder.as_ref().map_or(0, Decoder::leftover);
        let incomplete = || undecoded(left, "the connection ends within a message");
        (left > 0).then(incomplete).into_iter().collect()
    }
}

impl Bytefrog {
    fn decoder(&self, conn: &str, side: Side) -> Decoder {
        let is_control = conn.rsplit('.').next() == Some("ctl");
        Decoder::new(match (is_control, side) {
            (true, Side::Agent) => Direction::control_from_agent(),
            (true, Side::Hq) => Direction::control_from_hq(self.dialect),
            (false, Side::Agent) => Direction::data_from_agent(Some(self.dialect)),
            (false, Side::Hq) => Direction::data_from_hq(self.dialect),
        })
    }
}

/// Decodes the messages that `bytes` complete. Nothing can be decoded after an error.
fn messages(decoder: &mut Decoder, bytes: &[u8]) -> Vec<Decoded> {
    let mut messages: Vec<(u64, Decoded)> = Vec::new();
    let result = decoder.feed(bytes, |offset, message| {
        let fields = fields(&message).into_iter().map(|field| (field.name.to_owned(), json(field.value)));
        let decoded = Decoded {
            kind: "message".to_owned(),
            id: Some(message.id().0.into()),
            name: message.id().name().map(str::to_owned),
            fields: Field::numbered(fields),
            ..Decoded::default()
        };
        messages.push((offset, decoded));
        None
    });
    let mut end = decoder.offset();
    for (offset, decoded) in messages.iter_mut().rev() {
        decoded.bytes = Some(end - *offset);
        end = *offset;
    }
    let is_empty = messages.is_empty();
    let mut decoded: Vec<Decoded> = messages.into_iter().map(|(_, decoded)| decoded).collect();
    match result {
        Err(error) => decoded.push(undecoded(bytes.len(), &error.to_string())),
        Ok(()) if is_empty && !bytes.is_empty() => decoded.push(Decoded {
            kind: "part".to_owned(),
            bytes: Some(bytes.len() as u64),
            ..Decoded::default()
        }),
        Ok(()) => {}
    }
    decoded
}

fn undecoded(bytes: usize, why: &str) -> Decoded {
    Decoded {
        kind: "other".to_owned(),
        bytes: Some(bytes as u64),
        fields: Field::numbered([("error".to_owned(), why.into())]),
        is_undecoded: true,
        ..Decoded::default()
    }
}

fn json(value: render::Value) -> Value {
    let object = |row: Vec<render::Field>| {
        let members = row.into_iter().map(|field| (field.name.to_owned(), json(field.value)));
        Value::Object(members.collect())
    };
    match value {
        render::Value::Number(number) => number.into(),
        render::Value::Text(text) => text.into(),
        render::Value::Rows(rows) => rows.into_iter().map(object).collect(),
        coded @ (render::Value::Coded(..) | render::Value::Bytes(_)) => coded.to_string().into(),
    }
}

/// What a conversation contains.
#[derive(Debug, Default)]
pub struct ConversationTotals {
    /// The number of connections.
    pub connections: u64,
    /// The number of rows whose bytes could not be decoded.
    pub undecoded: u64,
    /// The damage of the files.
    pub damage: Vec<Damage>,
}

/// Decodes the connections and messages of a recording, one agent after the other, each in the order of time. Memory is
/// bounded by the longest message.
#[derive(Debug)]
pub struct Conversation<'a> {
    header: Option<Header>,
    agents: std::slice::Iter<'a, RecordedAgent>,
    current: Option<AgentReader>,
    line: u64,
    totals: ConversationTotals,
}

/// The state of an agent that is read.
#[derive(Debug)]
struct AgentReader {
    streams: MergedStreams,
    inspector: Inspector<Bytefrog>,
    open: HashSet<Connection>,
}

impl<'a> Conversation<'a> {
    /// Creates the conversation of these agents.
    pub fn new(agents: &'a [RecordedAgent]) -> Self {
        let mut more = Map::new();
        more.insert("protocol".to_owned(), Bytefrog::NAME.into());
        more.insert("agents".to_owned(), agents.iter().map(|agent| agent.agent.clone()).collect());
        Self {
            header: Some(Header { role: Some("hq".to_owned()), more, ..Header::default() }),
            agents: agents.iter(),
            current: None,
            line: 0,
            totals: ConversationTotals::default(),
        }
    }

    /// Returns the next rows. `None` at the end.
    ///
    /// # Errors
    /// Fails if a file cannot be read, or if an agent's control connection does not start with hello.
    pub fn next_rows(&mut self) -> Result<Option<Vec<Row>>, Error> {
        loop {
            let current = match &mut self.current {
                Some(current) => current,
                None => match self.agents.next() {
                    Some(agent) => self.current.insert(AgentReader::open(agent)?),
                    None => return Ok(None),
                },
            };
            let header = self.header.take().map(Entry::Header);
            let entries = current.next_entries()?;
            let is_over = entries.is_empty();
            let entries = header.into_iter().chain(entries);
            let rows: Vec<Row> = entries
                .flat_map(|entry| {
                    self.line += 1;
                    current.inspector.rows(Located { line: self.line, bytes: 0, entry })
                })
                .collect();
            if is_over && let Some(AgentReader { streams, inspector, .. }) = self.current.take() {
                self.totals.connections += inspector.connections();
                self.totals.undecoded += inspector.undecoded();
                self.totals.damage.extend(streams.streams().iter().filter_map(Stream::damage));
            }
            if !rows.is_empty() {
                return Ok(Some(rows));
            }
        }
    }

    /// Returns the totals of the agents that have been read.
    pub fn into_totals(self) -> ConversationTotals {
        self.totals
    }
}

impl AgentReader {
    fn open(agent: &RecordedAgent) -> Result<Self, Error> {
        let streams = MergedStreams::open(agent)?;
        let dialect = detect_dialect(agent, streams.streams())?;
        Ok(Self { streams, inspector: Inspector::new(Bytefrog { dialect }), open: HashSet::new() })
    }

    /// Returns the next piece of a stream as entries of a transcript; none at the end.
    fn next_entries(&mut self) -> Result<Vec<Entry>, Error> {
        let Some(StreamChunk { name, at, bytes, .. }) = self.streams.next()? else { return Ok(Vec::new()) };
        let (t, conn) = (seconds(at), format!("{}.{}", name.agent, name.connection));
        let mut entries = Vec::new();
        if self.open.insert(name.connection) {
            entries.push(Entry::Open(Open { t, conn: conn.clone(), ..Open::default() }));
        }
        let from = if name.side == Side::Agent { From::FromClient } else { From::FromServer };
        let dir = Bytefrog::name(from).to_owned();
        entries.push(match bytes {
            Some(bytes) => {
                Entry::Frame(Frame { t, conn, dir, hex: Some(bytes.to_vec()), ..Frame::default() })
            }
            None => Entry::Close(Close { t, conn, side: Some(dir), ..Close::default() }),
        });
        Ok(entries)
    }
}

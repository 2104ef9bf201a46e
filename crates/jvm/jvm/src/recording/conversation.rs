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
use crate::recording::names::StreamName;
use crate::recording::replay::{Damage, detect_dialect, earliest};
use crate::recording::stream::{Next, READ_SIZE, Stream};

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
            what: "message".to_owned(),
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
            what: "part".to_owned(),
            bytes: Some(bytes.len() as u64),
            ..Decoded::default()
        }),
        Ok(()) => {}
    }
    decoded
}

fn undecoded(bytes: usize, why: &str) -> Decoded {
    Decoded {
        what: "other".to_owned(),
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
#[derive(Debug)]
pub struct ConversationTotals {
    /// The number of connections.
    pub connections: u64,
    /// The number of rows whose bytes could not be decoded.
    pub undecoded: u64,
    /// The damage of the files.
    pub damage: Vec<Damage>,
}

/// Passes the connections and messages of a recording to `take`, one agent after the other, each in the order of time.
/// Memory is bounded by the longest message.
///
/// # Errors
/// Fails with the errors of `take`, and with a converted [`Error`] if a file cannot be read or if an agent's control
/// connection does not start with hello.
pub fn inspect<E>(
    agents: &[RecordedAgent],
    mut take: impl FnMut(Row) -> Result<(), E>,
    convert: fn(Error) -> E,
) -> Result<ConversationTotals, E> {
    let mut more = Map::new();
    more.insert("protocol".to_owned(), Bytefrog::NAME.into());
    more.insert("agents".to_owned(), agents.iter().map(|agent| agent.agent.clone()).collect());
    let header = Header { role: Some("hq".to_owned()), more, ..Header::default() };
    let mut header = Some(Entry::Header(header));
    let mut totals = ConversationTotals { connections: 0, undecoded: 0, damage: Vec::new() };
    let mut line = 0;
    for agent in agents {
        let mut streams: Vec<Stream> =
            agent.streams.iter().map(Stream::open).collect::<Result<_, _>>().map_err(convert)?;
        let dialect = detect_dialect(agent, &streams).map_err(convert)?;
        let mut inspector = Inspector::new(Bytefrog { dialect });
        let mut show = |entry: Entry| {
            line += 1;
            inspector.rows(Located { line, bytes: 0, entry }).into_iter().try_for_each(&mut take)
        };
        header.take().map_or(Ok(()), &mut show)?;
        each_entry(&mut streams, &mut show, convert)?;
        totals.connections += inspector.connections();
        totals.undecoded += inspector.undecoded();
        totals.damage.extend(streams.into_iter().filter_map(Stream::into_damage));
    }
    Ok(totals)
}

/// Passes the parts of an agent's streams to `take`, in the order of time.
fn each_entry<E>(
    streams: &mut [Stream],
    take: &mut dyn FnMut(Entry) -> Result<(), E>,
    convert: fn(Error) -> E,
) -> Result<(), E> {
    let mut open: HashSet<Connection> = HashSet::new();
    let mut buffer = vec![0; READ_SIZE];
    let mut has_said_hello = false;
    while let Some((index, at)) = earliest(streams, has_said_hello) {
        let Some(stream) = streams.get_mut(index) else { break };
        let StreamName { agent, connection, side } = stream.files.name.clone();
        has_said_hello |= (connection, side) == (Connection::Control, Side::Agent);
        let (t, conn) = (seconds(at), format!("{agent}.{connection}"));
        if open.insert(connection) {
            take(Entry::Open(Open { t, conn: conn.clone(), ..Open::default() }))?;
        }
        let dir = Bytefrog::name(if side == Side::Agent { From::FromClient } else { From::FromServer });
        if let Next::End(_) = stream.next() {
            stream.stop();
            take(Entry::Close(Close { t, conn, side: Some(dir.to_owned()), ..Close::default() }))?;
            continue;
        }
        let path = stream.files.bytes.clone();
        let bytes = stream.read(&mut buffer).map_err(|error| convert(Error::Read { path, error }))?;
        let hex = Some(bytes.to_vec());
        take(Entry::Frame(Frame { t, conn, dir: dir.to_owned(), hex, ..Frame::default() }))?;
    }
    Ok(())
}

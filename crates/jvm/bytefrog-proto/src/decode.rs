//! Decoding of messages: a single one ([`decode`]), or a stream in chunks of any size ([`Decoder`](crate::Decoder)).
//!
//! Messages have neither delimiters nor lengths: nothing can be decoded after an unknown message.

use runtap_wire::{DecodeError, DecodeErrorKind, Reader};

use crate::f1::{Batch, CountRows, Drop, DropReason, HitRows, MAX_ROWS, Process, Rows};
use crate::{
    Channel, ClassOutcome, Command, Dialect, Exit, Framing, JavaStr, Location, Message, MessageId, ModeByte,
    Side, Stamp, Stream,
};

/// Limits on what is accepted from the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The longest configuration, in bytes. The original implementations have no limit; 186 KB has been seen in
    /// practice.
    pub configuration: u32,
}

impl Default for Limits {
    /// Returns limits of 16 MiB for a configuration.
    fn default() -> Self {
        Self { configuration: 16 << 20 }
    }
}

/// A reader of the big-endian fields of a message.
struct Fields<'a>(Reader<'a>);

impl<'a> Fields<'a> {
    #[inline]
    fn u8(&mut self, what: &'static str) -> Result<u8, DecodeError> {
        self.0.u8(what)
    }

    #[inline]
    fn u16(&mut self, what: &'static str) -> Result<u16, DecodeError> {
        Ok(u16::from_be_bytes(self.0.array(what)?))
    }

    #[inline]
    fn u32(&mut self, what: &'static str) -> Result<u32, DecodeError> {
        Ok(u32::from_be_bytes(self.0.array(what)?))
    }

    #[inline]
    fn u64(&mut self, what: &'static str) -> Result<u64, DecodeError> {
        Ok(u64::from_be_bytes(self.0.array(what)?))
    }

    fn text(&mut self, what: &'static str) -> Result<JavaStr<'a>, DecodeError> {
        let start = self.0.clone();
        let length = self.u16(what)?;
        match self.0.bytes(length.into(), what) {
            Ok(bytes) => Ok(JavaStr::from_bytes(bytes)),
            Err(error) => {
                self.0 = start;
                Err(error)
            }
        }
    }

    fn rows<const N: usize>(&mut self, what: &'static str) -> Result<Rows<'a, N>, DecodeError> {
        let start = self.0.clone();
        let count = self.u32(what)?;
        if count > MAX_ROWS {
            let kind = DecodeErrorKind::TooLarge { value: count.into(), limit: MAX_ROWS.into() };
            return Err(start.error(what, kind));
        }
        let size = usize::try_from(count).unwrap_or(usize::MAX).saturating_mul(N);
        let (rows, _) = self.0.bytes(size, what)?.as_chunks::<N>();
        Ok(Rows(rows))
    }

    /// Reads time, sequence and method: the order of versions 1 to 4, where the thread comes last.
    #[inline]
    fn stamp(&mut self) -> Result<(Stamp, u32), DecodeError> {
        let time = self.u32("timestamp")?.into();
        let sequence = self.u32("sequence")?.into();
        Ok((Stamp { time, sequence, thread: 0 }, self.u32("method id")?))
    }

    #[inline]
    fn thread(&mut self) -> Result<u32, DecodeError> {
        Ok(self.u16("thread id")?.into())
    }

    /// Reads thread, sequence and time: the order of F1.
    fn stamp_f1(&mut self) -> Result<Stamp, DecodeError> {
        let thread = self.u32("thread id")?;
        let sequence = self.u64("sequence")?;
        Ok(Stamp { time: self.u64("timestamp")?, sequence, thread })
    }
}

/// Decodes the message at the beginning of `bytes`, which are at `offset` of the stream. Returns it with its length
/// in bytes.
///
/// # Errors
/// Fails for an ID that is unknown or not allowed on this stream, and for a length above the limits. For an
/// incomplete message, [`DecodeError::is_incomplete`] returns true.
#[inline]
pub fn decode(
    bytes: &[u8],
    offset: u64,
    stream: Stream,
    limits: Limits,
) -> Result<(Message<'_>, usize), DecodeError> {
    match decode_frequent(bytes, stream) {
        Some(found) => Ok(found),
        None => decode_any(bytes, offset, stream, limits),
    }
}

/// Decodes complete entries and exits of versions 1 to 4, which nearly all messages are, and nothing else.
#[inline(always)]
#[expect(clippy::inline_always, reason = "the message has to stay in registers: three times as fast")]
pub(crate) fn decode_frequent(bytes: &[u8], stream: Stream) -> Option<(Message<'_>, usize)> {
    let Stream { channel: Channel::Data, from: Side::Agent, dialect: Some(dialect) } = stream else {
        return None;
    };
    match (bytes.first()?, dialect) {
        (_, Dialect::F1) => None,
        (0x14, _) => {
            let [_, t0, t1, t2, t3, s0, s1, s2, s3, m0, m1, m2, m3, h0, h1] = *bytes.first_chunk::<15>()?;
            let at = stamp([t0, t1, t2, t3], [s0, s1, s2, s3], [h0, h1]);
            Some((Message::Entry { at, method: u32::from_be_bytes([m0, m1, m2, m3]) }, 15))
        }
        (0x15, Dialect::V1) => {
            let [_, t0, t1, t2, t3, s0, s1, s2, s3, m0, m1, m2, m3, l0, l1, h0, h1] =
                *bytes.first_chunk::<17>()?;
            let at = stamp([t0, t1, t2, t3], [s0, s1, s2, s3], [h0, h1]);
            let exit = Exit::Line(u16::from_be_bytes([l0, l1]));
            Some((Message::Exit { at, method: u32::from_be_bytes([m0, m1, m2, m3]), exit }, 17))
        }
        (0x15, _) => {
            let [_, t0, t1, t2, t3, s0, s1, s2, s3, m0, m1, m2, m3, flag, h0, h1] =
                *bytes.first_chunk::<16>()?;
            let at = stamp([t0, t1, t2, t3], [s0, s1, s2, s3], [h0, h1]);
            let exit = Exit::Thrown(flag);
            Some((Message::Exit { at, method: u32::from_be_bytes([m0, m1, m2, m3]), exit }, 16))
        }
        _ => None,
    }
}

#[inline]
fn stamp(time: [u8; 4], sequence: [u8; 4], thread: [u8; 2]) -> Stamp {
    Stamp {
        time: u32::from_be_bytes(time).into(),
        sequence: u32::from_be_bytes(sequence).into(),
        thread: u16::from_be_bytes(thread).into(),
    }
}

#[inline(never)]
fn decode_any(
    bytes: &[u8],
    offset: u64,
    stream: Stream,
    limits: Limits,
) -> Result<(Message<'_>, usize), DecodeError> {
    let mut fields = Fields(Reader::at(bytes, offset));
    let start = fields.0.clone();
    let id = MessageId(fields.u8("message id")?);
    let wrong = |expected| {
        Err(start.error("message id", DecodeErrorKind::Unexpected { value: id.0.into(), expected }))
    };
    if id.name().is_none() {
        return wrong("a known message");
    }
    if !id.belongs(stream.channel, stream.from) {
        return wrong("a message of this connection and direction");
    }
    let Some(dialect) = stream.dialect else {
        return match decode_greeting(id, &mut fields)? {
            Some(message) => Ok((message, bytes.len() - fields.0.remaining())),
            None => wrong("hello"),
        };
    };
    if !id.is_in(dialect) {
        return wrong("a message of the version that the agent speaks");
    }
    let message = match decode_greeting(id, &mut fields)? {
        Some(message) => message,
        None if dialect == Dialect::F1 => decode_f1(id, &mut fields, limits)?,
        None => decode_v1_to_v4(id, &mut fields, dialect, limits)?,
    };
    Ok((message, bytes.len() - fields.0.remaining()))
}

/// Decodes the messages that can be read before the version is known.
fn decode_greeting<'a>(id: MessageId, fields: &mut Fields<'a>) -> Result<Option<Message<'a>>, DecodeError> {
    Ok(Some(match id {
        MessageId::HELLO => Message::Hello { version: fields.u8("protocol version")? },
        MessageId::PROJECT_HELLO => Message::ProjectHello {
            version: fields.u8("protocol version")?,
            project: fields.u32("project id")?,
        },
        MessageId::DATA_HELLO => Message::DataHello { run: fields.u8("run id")? },
        MessageId::ERROR => Message::Error { text: fields.text("error message")? },
        _ => return Ok(None),
    }))
}

/// Decodes the messages of versions 1 to 4.
fn decode_v1_to_v4<'a>(
    id: MessageId,
    fields: &mut Fields<'a>,
    dialect: Dialect,
    limits: Limits,
) -> Result<Message<'a>, DecodeError> {
    Ok(match id {
        MessageId::METHOD_ENTRY => {
            let (at, method) = fields.stamp()?;
            Message::Entry { at: Stamp { thread: fields.thread()?, ..at }, method }
        }
        MessageId::METHOD_EXIT => {
            let (at, method) = fields.stamp()?;
            let exit = match dialect {
                Dialect::V1 => Exit::Line(fields.u16("line number")?),
                _ => Exit::Thrown(fields.u8("exception thrown")?),
            };
            Message::Exit { at: Stamp { thread: fields.thread()?, ..at }, method, exit }
        }
        MessageId::EXCEPTION => {
            let (at, method) = fields.stamp()?;
            let exception = fields.u32("exception id")?;
            let line = fields.u16("line number")?;
            Message::Exception { at: Stamp { thread: fields.thread()?, ..at }, method, exception, line }
        }
        MessageId::EXCEPTION_BUBBLE => {
            let (at, method) = fields.stamp()?;
            let exception = fields.u32("exception id")?;
            Message::Bubble { at: Stamp { thread: fields.thread()?, ..at }, method, exception }
        }
        MessageId::METHOD_VISIT => {
            let (at, method) = fields.stamp()?;
            let location = fields.u32("location id")?;
            Message::Visit { at: Stamp { thread: fields.thread()?, ..at }, method, location }
        }
        MessageId::MARKER => {
            let (time, sequence) = (fields.u32("timestamp")?.into(), fields.u32("sequence")?.into());
            let (key, value) = (fields.text("key")?, fields.text("value")?);
            Message::Marker { time, sequence, thread: None, key, value }
        }
        MessageId::MAP_THREAD_NAME => {
            let thread = fields.thread()?;
            let time = fields.u32("timestamp")?.into();
            Message::MapThreadName { thread, time, name: fields.text("thread name")? }
        }
        MessageId::SOURCE_LOCATION_COUNT => {
            Message::LocationCount { method: fields.u32("method id")?, count: fields.u32("count")? }
        }
        MessageId::DATA_BREAK => Message::DataBreak { sequence: fields.u32("sequence")? },
        _ => return decode_common(id, fields, dialect, limits),
    })
}

/// Decodes the messages that are identical in all versions.
fn decode_common<'a>(
    id: MessageId,
    fields: &mut Fields<'a>,
    dialect: Dialect,
    limits: Limits,
) -> Result<Message<'a>, DecodeError> {
    let class =
        |outcome, fields: &mut Fields<'a>| Ok(Message::Class { outcome, name: fields.text("class name")? });
    Ok(match id {
        MessageId::CONFIGURATION => {
            let start = fields.0.clone();
            let length = match dialect.framing() {
                Framing::Java | Framing::Json32 => fields.u32("configuration length")?,
                Framing::Json16 => fields.u16("configuration length")?.into(),
            };
            if length > limits.configuration {
                let kind =
                    DecodeErrorKind::TooLarge { value: length.into(), limit: limits.configuration.into() };
                return Err(start.error("configuration length", kind));
            }
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            Message::Configuration { payload: fields.0.bytes(length, "configuration")? }
        }
        MessageId::HEARTBEAT => Message::Heartbeat {
            mode: ModeByte(fields.u8("mode of operation")?),
            queue: fields.u16("send buffer size")?,
        },
        MessageId::MAP_METHOD_SIGNATURE => {
            Message::MapMethod { method: fields.u32("method id")?, signature: fields.text("signature")? }
        }
        MessageId::MAP_EXCEPTION => Message::MapException {
            exception: fields.u32("exception id")?,
            name: fields.text("exception name")?,
        },
        MessageId::MAP_SOURCE_LOCATION => Message::MapLocation(Location {
            location: fields.u32("location id")?,
            method: fields.u32("method id")?,
            start_line: fields.u32("start line")?,
            end_line: fields.u32("end line")?,
            start_char: fields.u16("start character")?,
            end_char: fields.u16("end character")?,
        }),
        MessageId::CLASS_TRANSFORMED => return class(ClassOutcome::Transformed, fields),
        MessageId::CLASS_IGNORED => return class(ClassOutcome::Ignored, fields),
        MessageId::CLASS_TRANSFORM_FAILED => return class(ClassOutcome::Failed, fields),
        MessageId::DATA_HELLO_REPLY => Message::DataHelloReply,
        MessageId(raw) => match Command::ALL.into_iter().find(|command| command.id() == raw) {
            Some(command) => Message::Command(command),
            // Unreachable: `is_in` accepts no other ID.
            None => return Err(fields.0.error("message id", DecodeErrorKind::Invalid("has no layout"))),
        },
    })
}

/// Decodes the messages of F1.
fn decode_f1<'a>(id: MessageId, fields: &mut Fields<'a>, limits: Limits) -> Result<Message<'a>, DecodeError> {
    Ok(match id {
        MessageId::BATCH => {
            let Stamp { time: base, sequence, thread } = fields.stamp_f1()?;
            Message::Batch(Batch { thread, sequence, base, rows: fields.rows("events")? })
        }
        MessageId::EXCEPTION => {
            let at = fields.stamp_f1()?;
            let (method, exception) = (fields.u32("method id")?, fields.u32("exception id")?);
            Message::Exception { at, method, exception, line: fields.u16("line number")? }
        }
        MessageId::EXCEPTION_BUBBLE => {
            let at = fields.stamp_f1()?;
            let (method, exception) = (fields.u32("method id")?, fields.u32("exception id")?);
            Message::Bubble { at, method, exception }
        }
        MessageId::MARKER => {
            let Stamp { time, sequence, thread } = fields.stamp_f1()?;
            let (key, value) = (fields.text("key")?, fields.text("value")?);
            Message::Marker { time, sequence, thread: Some(thread), key, value }
        }
        MessageId::MAP_THREAD_NAME => {
            let (thread, time) = (fields.u32("thread id")?, fields.u64("timestamp")?);
            Message::MapThreadName { thread, time, name: fields.text("thread name")? }
        }
        MessageId::THREAD_END => {
            Message::ThreadEnd { thread: fields.u32("thread id")?, time: fields.u64("timestamp")? }
        }
        MessageId::DROP => {
            let Stamp { time, sequence, thread } = fields.stamp_f1()?;
            let count = fields.u64("count")?;
            Message::Drop(Drop { thread, sequence, time, count, reason: DropReason(fields.u8("reason")?) })
        }
        MessageId::COUNTS => {
            let (snapshot, time) = (fields.u32("snapshot")?, fields.u64("timestamp")?);
            let flags = flags(fields, 3)?;
            let rows = fields.rows("counts")?;
            Message::Counts(CountRows { snapshot, time, last: flags & 1 != 0, reset: flags & 2 != 0, rows })
        }
        MessageId::COVERAGE => {
            Message::Coverage(HitRows { time: fields.u64("timestamp")?, rows: fields.rows("hits")? })
        }
        MessageId::PROCESS => Message::Process(Process {
            pid: fields.u32("process id")?,
            wall: fields.u64("wall clock")?,
            resolution: fields.u32("resolution")?,
            jvm: fields.text("JVM version")?,
            main: fields.text("main class")?,
        }),
        MessageId::SNAPSHOT => Message::Snapshot { reset: flags(fields, 1)? != 0 },
        _ => return decode_common(id, fields, Dialect::F1, limits),
    })
}

/// Reads a byte of flags. Unknown flags are rejected: a later version that defines them has another hello.
fn flags(fields: &mut Fields<'_>, known: u8) -> Result<u8, DecodeError> {
    let start = fields.0.clone();
    let flags = fields.u8("flags")?;
    if flags & !known != 0 {
        let kind = DecodeErrorKind::Unexpected { value: flags.into(), expected: "known flags only" };
        return Err(start.error("flags", kind));
    }
    Ok(flags)
}

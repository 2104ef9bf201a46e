//! Encoding of messages.

use crate::f1::{MAX_ROWS, Rows};
use crate::{Dialect, EncodeError, Exit, Framing, JavaStr, Message, MessageId, Stamp};

/// Appends a message in the layout of `dialect`. Nothing is appended in case of an error.
///
/// # Errors
/// Fails for a message that the dialect does not have, and for a number or text that does not fit.
pub fn encode(message: &Message<'_>, dialect: Dialect, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let before = out.len();
    let written = write(message, &mut Out { bytes: out, dialect, message: message.id() });
    if written.is_err() {
        out.truncate(before);
    }
    written
}

/// Returns the encoded bytes of a message.
///
/// # Errors
/// Fails as [`encode`] does.
pub fn to_bytes(message: &Message<'_>, dialect: Dialect) -> Result<Vec<u8>, EncodeError> {
    let mut bytes = Vec::new();
    encode(message, dialect, &mut bytes)?;
    Ok(bytes)
}

struct Out<'a> {
    bytes: &'a mut Vec<u8>,
    dialect: Dialect,
    message: MessageId,
}

impl Out<'_> {
    fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    fn u16(&mut self, value: u16) {
        self.bytes.extend(value.to_be_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.bytes.extend(value.to_be_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.bytes.extend(value.to_be_bytes());
    }

    fn is_f1(&self) -> bool {
        self.dialect == Dialect::F1
    }

    fn narrow(&self, what: &'static str, value: u64, limit: u64) -> Result<u64, EncodeError> {
        if value <= limit {
            return Ok(value);
        }
        Err(EncodeError::OutOfRange { what, value, limit, dialect: self.dialect })
    }

    /// Writes a time or sequence: 64 bits in F1, otherwise 32.
    fn wide(&mut self, what: &'static str, value: u64) -> Result<(), EncodeError> {
        if self.is_f1() {
            self.u64(value);
        } else {
            let value = self.narrow(what, value, u32::MAX.into())?;
            self.bytes.extend(value.to_be_bytes().iter().skip(4));
        }
        Ok(())
    }

    /// Writes a thread: 32 bits in F1, otherwise 16.
    fn thread(&mut self, thread: u32) -> Result<(), EncodeError> {
        if self.is_f1() {
            self.u32(thread);
        } else {
            let thread = self.narrow("thread id", thread.into(), u16::MAX.into())?;
            self.bytes.extend(thread.to_be_bytes().iter().skip(6));
        }
        Ok(())
    }

    fn text(&mut self, what: &'static str, text: JavaStr<'_>) -> Result<(), EncodeError> {
        let bytes = text.as_bytes();
        let limit = u64::from(u16::MAX);
        let Ok(length) = u16::try_from(bytes.len()) else {
            return Err(EncodeError::TooLong { what, length: bytes.len() as u64, limit });
        };
        self.u16(length);
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn rows<const N: usize>(&mut self, what: &'static str, rows: &Rows<'_, N>) -> Result<(), EncodeError> {
        match u32::try_from(rows.len()) {
            Ok(count) if count <= MAX_ROWS => self.u32(count),
            _ => {
                let (length, limit) = (rows.len() as u64, MAX_ROWS.into());
                return Err(EncodeError::TooLong { what, length, limit });
            }
        }
        self.bytes.extend_from_slice(rows.as_bytes());
        Ok(())
    }

    /// Writes an event. `middle` writes the fields between the method and the thread, or after the method in F1.
    fn event(
        &mut self,
        at: &Stamp,
        method: u32,
        middle: impl FnOnce(&mut Self) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        if self.is_f1() {
            self.stamp_f1(at);
            self.u32(method);
            return middle(self);
        }
        self.wide("timestamp", at.time)?;
        self.wide("sequence", at.sequence)?;
        self.u32(method);
        middle(self)?;
        self.thread(at.thread)
    }

    fn stamp_f1(&mut self, at: &Stamp) {
        self.u32(at.thread);
        self.u64(at.sequence);
        self.u64(at.time);
    }

    fn not_in_dialect(&self) -> Result<(), EncodeError> {
        Err(EncodeError::NotInDialect { message: self.message, dialect: self.dialect })
    }
}

fn write(message: &Message<'_>, out: &mut Out<'_>) -> Result<(), EncodeError> {
    if !message.id().is_in(out.dialect) {
        return out.not_in_dialect();
    }
    out.u8(message.id().0);
    match *message {
        Message::Command(_) | Message::DataHelloReply => {}
        Message::Hello { version } | Message::DataHello { run: version } => out.u8(version),
        Message::ProjectHello { version, project } => {
            out.u8(version);
            out.u32(project);
        }
        Message::Configuration { payload } => return configuration(payload, out),
        Message::Heartbeat { mode, queue } => {
            out.u8(mode.0);
            out.u16(queue);
        }
        Message::DataBreak { sequence } => out.u32(sequence),
        Message::MapThreadName { thread, time, name } => {
            out.thread(thread)?;
            out.wide("timestamp", time)?;
            return out.text("thread name", name);
        }
        Message::MapMethod { method, signature } => {
            out.u32(method);
            return out.text("signature", signature);
        }
        Message::MapException { exception, name } => {
            out.u32(exception);
            return out.text("exception name", name);
        }
        Message::MapLocation(place) => {
            for number in [place.location, place.method, place.start_line, place.end_line] {
                out.u32(number);
            }
            out.u16(place.start_char);
            out.u16(place.end_char);
        }
        Message::LocationCount { method, count } => {
            out.u32(method);
            out.u32(count);
        }
        Message::Entry { at, method } => return out.event(&at, method, |_| Ok(())),
        Message::Exit { at, method, exit } => {
            return out.event(&at, method, |out| {
                match (exit, out.dialect) {
                    (Exit::Line(line), Dialect::V1) => out.u16(line),
                    (Exit::Thrown(flag), Dialect::V1CodePulse | Dialect::V2 | Dialect::V3 | Dialect::V4) => {
                        out.u8(flag);
                    }
                    _ => return out.not_in_dialect(),
                }
                Ok(())
            });
        }
        Message::Exception { at, method, exception, line } => {
            return out.event(&at, method, |out| {
                out.u32(exception);
                out.u16(line);
                Ok(())
            });
        }
        Message::Bubble { at, method, exception: number }
        | Message::Visit { at, method, location: number } => {
            return out.event(&at, method, |out| {
                out.u32(number);
                Ok(())
            });
        }
        Message::Marker { time, sequence, thread, key, value } => {
            match (thread, out.is_f1()) {
                (Some(thread), true) => out.stamp_f1(&Stamp { time, sequence, thread }),
                (None, false) => {
                    out.wide("timestamp", time)?;
                    out.wide("sequence", sequence)?;
                }
                _ => return out.not_in_dialect(),
            }
            out.text("key", key)?;
            return out.text("value", value);
        }
        Message::Class { name, .. } => return out.text("class name", name),
        Message::Error { text } => return out.text("error message", text),
        Message::Batch(batch) => {
            out.stamp_f1(&Stamp { time: batch.base, sequence: batch.sequence, thread: batch.thread });
            return out.rows("events", &batch.rows);
        }
        Message::ThreadEnd { thread, time } => {
            out.u32(thread);
            out.u64(time);
        }
        Message::Drop(drop) => {
            out.stamp_f1(&Stamp { time: drop.time, sequence: drop.sequence, thread: drop.thread });
            out.u64(drop.count);
            out.u8(drop.reason.0);
        }
        Message::Counts(counts) => {
            out.u32(counts.snapshot);
            out.u64(counts.time);
            out.u8(u8::from(counts.last) | u8::from(counts.reset) << 1);
            return out.rows("counts", &counts.rows);
        }
        Message::Coverage(hits) => {
            out.u64(hits.time);
            return out.rows("hits", &hits.rows);
        }
        Message::Process(process) => {
            out.u32(process.pid);
            out.u64(process.wall);
            out.u32(process.resolution);
            out.text("JVM version", process.jvm)?;
            return out.text("main class", process.main);
        }
        Message::Snapshot { reset } => out.u8(reset.into()),
    }
    Ok(())
}

fn configuration(payload: &[u8], out: &mut Out<'_>) -> Result<(), EncodeError> {
    let length = payload.len() as u64;
    let limit = match out.dialect.framing() {
        Framing::Json16 => u64::from(u16::MAX),
        Framing::Java | Framing::Json32 => u64::from(u32::MAX),
    };
    if length > limit {
        return Err(EncodeError::TooLong { what: "configuration", length, limit });
    }
    let skipped = if out.dialect.framing() == Framing::Json16 { 6 } else { 4 };
    out.bytes.extend(length.to_be_bytes().iter().skip(skipped));
    out.bytes.extend_from_slice(payload);
    Ok(())
}

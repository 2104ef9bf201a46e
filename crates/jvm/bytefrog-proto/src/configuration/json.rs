//! The configuration of versions 2 to 4 and F1, as JSON in modified UTF-8.
//!
//! Contains a writer whose keys are in the order of the original HQ, and a reader that accepts any order and skips
//! unknown keys. Both work on UTF-16 units, as Java does: a pattern may contain a lone surrogate.

use runtap_wire::{DecodeError, DecodeErrorKind};

use super::{Configuration, Extension, RecordMode, WhenSlow};
use crate::{JavaStr, JavaString};

/// The deepest nesting of arrays and objects in a key that is skipped.
const MAX_DEPTH: usize = 32;

pub(super) fn write(configuration: &Configuration, extension: Option<&Extension>) -> Vec<u8> {
    let mut out = Vec::new();
    let mut separator = b'{';
    let mut key = |out: &mut Vec<u8>, name: &str| {
        out.push(std::mem::replace(&mut separator, b','));
        out.extend(format!("\"{name}\":").into_bytes());
    };
    let number = |out: &mut Vec<u8>, value: i64| out.extend(value.to_string().into_bytes());
    key(&mut out, "bufferMemoryBudget");
    number(&mut out, configuration.buffer_memory_budget.into());
    key(&mut out, "exclusions");
    list(&mut out, &configuration.exclusions);
    key(&mut out, "heartbeatInterval");
    number(&mut out, configuration.heartbeat_interval.into());
    key(&mut out, "inclusions");
    list(&mut out, &configuration.inclusions);
    key(&mut out, "numDataSenders");
    number(&mut out, configuration.data_senders.into());
    key(&mut out, "queueRetryCount");
    number(&mut out, configuration.queue_retry_count.into());
    key(&mut out, "runId");
    number(&mut out, configuration.run.cast_signed().into());
    if let Some(extension) = extension {
        key(&mut out, "record");
        out.extend(match extension.record {
            RecordMode::Full => &b"\"full\""[..],
            RecordMode::Counts => b"\"counts\"",
            RecordMode::Coverage => b"\"coverage\"",
        });
        key(&mut out, "clock");
        out.extend(if extension.coarse_clock { b"\"ms\"" } else { b"\"ns\"" });
        key(&mut out, "whenSlow");
        out.extend(match extension.when_slow {
            WhenSlow::Block => &b"\"block\""[..],
            WhenSlow::Drop => b"\"drop\"",
            WhenSlow::Counts => b"\"counts\"",
        });
        key(&mut out, "snapshotInterval");
        number(&mut out, extension.snapshot_interval.into());
    }
    out.push(b'}');
    out
}

fn list(out: &mut Vec<u8>, patterns: &[JavaString]) {
    out.push(b'[');
    for (i, pattern) in patterns.iter().enumerate() {
        out.extend((i > 0).then_some(b','));
        out.push(b'"');
        // All bytes of multi-byte characters are above 0x7f; NUL is the two bytes 0xc0 0x80.
        let mut nul = false;
        for byte in pattern.as_java_str().as_bytes() {
            match byte {
                b'"' | b'\\' => out.extend([b'\\', *byte]),
                b'\n' => out.extend(b"\\n"),
                b'\r' => out.extend(b"\\r"),
                b'\t' => out.extend(b"\\t"),
                0..=0x1f => out.extend(format!("\\u{byte:04x}").into_bytes()),
                0x80 if nul => {
                    out.pop();
                    out.extend(b"\\u0000");
                }
                _ => out.push(*byte),
            }
            nul = *byte == 0xc0;
        }
        out.push(b'"');
    }
    out.push(b']');
}

pub(super) fn read(payload: &[u8]) -> Result<Configuration, DecodeError> {
    let mut json = Json { bytes: payload, at: 0 };
    let mut configuration = Configuration::default();
    let mut seen_run = false;
    json.expect(b'{', "configuration")?;
    if !json.take(b'}') {
        loop {
            let name = json.string()?.to_string();
            json.expect(b':', "value")?;
            seen_run |= name == "runId";
            read_value(&mut configuration, &name, &mut json)?;
            if json.take(b'}') {
                break;
            }
            json.expect(b',', "comma")?;
        }
    }
    json.space();
    if json.at < payload.len() {
        return json.wrong("end of the configuration", "is followed by more data");
    }
    if !seen_run {
        return json.wrong("runId", "is missing");
    }
    Ok(configuration)
}

fn read_value(configuration: &mut Configuration, name: &str, json: &mut Json<'_>) -> Result<(), DecodeError> {
    match name {
        "runId" => {
            let start = json.at;
            let run = json.integer("runId")?;
            // Java writes a signed byte; other writers may write an unsigned one.
            let [.., low] = run.to_be_bytes();
            if !(-128..=255).contains(&run) {
                json.at = start;
                return json.wrong("runId", "is not a byte");
            }
            configuration.run = low;
        }
        "heartbeatInterval" => configuration.heartbeat_interval = json.int("heartbeatInterval")?,
        "bufferMemoryBudget" => configuration.buffer_memory_budget = json.int("bufferMemoryBudget")?,
        "queueRetryCount" => configuration.queue_retry_count = json.int("queueRetryCount")?,
        "numDataSenders" => configuration.data_senders = json.int("numDataSenders")?,
        "exclusions" => configuration.exclusions = json.strings()?,
        "inclusions" => configuration.inclusions = json.strings()?,
        "record" => {
            let words = [
                ("full", RecordMode::Full),
                ("counts", RecordMode::Counts),
                ("coverage", RecordMode::Coverage),
            ];
            configuration.extension.record = json.word("record", &words)?;
        }
        "clock" => {
            configuration.extension.coarse_clock = json.word("clock", &[("ms", true), ("ns", false)])?;
        }
        "whenSlow" => {
            let words = [("block", WhenSlow::Block), ("drop", WhenSlow::Drop), ("counts", WhenSlow::Counts)];
            configuration.extension.when_slow = json.word("whenSlow", &words)?;
        }
        "snapshotInterval" => {
            let start = json.at;
            let interval = json.integer("snapshotInterval")?;
            let Ok(interval) = u32::try_from(interval) else {
                json.at = start;
                return json.wrong("snapshotInterval", "is not a 32-bit number");
            };
            configuration.extension.snapshot_interval = interval;
        }
        _ => json.skip(MAX_DEPTH)?,
    }
    Ok(())
}

/// A JSON text and the position of the reader in it.
struct Json<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Json<'_> {
    fn wrong<T>(&self, what: &'static str, why: &'static str) -> Result<T, DecodeError> {
        Err(DecodeError::new(self.at as u64, what, DecodeErrorKind::Invalid(why)))
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    /// Consumes `byte`, and any white space before it; returns whether `byte` was found.
    fn take(&mut self, byte: u8) -> bool {
        self.space();
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8, what: &'static str) -> Result<(), DecodeError> {
        if self.take(byte) { Ok(()) } else { self.wrong(what, "is not where JSON requires it") }
    }

    fn int(&mut self, what: &'static str) -> Result<i32, DecodeError> {
        let start = self.at;
        let Ok(number) = i32::try_from(self.integer(what)?) else {
            self.at = start;
            return self.wrong(what, "is not a 32-bit number");
        };
        Ok(number)
    }

    fn integer(&mut self, what: &'static str) -> Result<i64, DecodeError> {
        self.space();
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let digits = rest.iter().take_while(|byte| matches!(byte, b'-' | b'0'..=b'9')).count();
        let text = rest.get(..digits).and_then(|digits| str::from_utf8(digits).ok()).unwrap_or_default();
        let Ok(number) = text.parse() else { return self.wrong(what, "is not an integer") };
        self.at += digits;
        if matches!(self.peek(), Some(b'.' | b'e' | b'E')) {
            return self.wrong(what, "is not an integer");
        }
        Ok(number)
    }

    fn strings(&mut self) -> Result<Vec<JavaString>, DecodeError> {
        self.expect(b'[', "list of patterns")?;
        let mut strings = Vec::new();
        if self.take(b']') {
            return Ok(strings);
        }
        loop {
            strings.push(self.string()?);
            if self.take(b']') {
                return Ok(strings);
            }
            self.expect(b',', "comma")?;
        }
    }

    fn word<T: Copy>(&mut self, what: &'static str, words: &[(&str, T)]) -> Result<T, DecodeError> {
        self.space();
        let start = self.at;
        let word = self.string()?.to_string();
        if let Some((_, value)) = words.iter().find(|(known, _)| *known == word) {
            return Ok(*value);
        }
        self.at = start;
        self.wrong(what, "has an unknown value")
    }

    fn string(&mut self) -> Result<JavaString, DecodeError> {
        self.expect(b'"', "string")?;
        let mut units = Vec::new();
        loop {
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            let plain = rest.iter().take_while(|byte| !matches!(byte, b'"' | b'\\' | 0..=0x1f)).count();
            units.extend(JavaStr::from_bytes(rest.get(..plain).unwrap_or_default()).units());
            self.at += plain;
            match rest.get(plain..).unwrap_or_default() {
                [b'"', ..] => {
                    self.at += 1;
                    return Ok(JavaString::from_units(units));
                }
                [b'\\', b'u', a, b, c, d, ..] => {
                    let digits = [*a, *b, *c, *d];
                    let text = str::from_utf8(&digits).unwrap_or_default();
                    let Ok(unit) = u16::from_str_radix(text, 16) else {
                        return self.wrong("string", "has an invalid escape sequence");
                    };
                    units.push(unit);
                    self.at += 6;
                }
                [b'\\', escape, ..] => {
                    units.push(match escape {
                        b'"' | b'\\' | b'/' => u16::from(*escape),
                        b'b' => 8,
                        b'f' => 12,
                        b'n' => 10,
                        b'r' => 13,
                        b't' => 9,
                        _ => return self.wrong("string", "has an invalid escape sequence"),
                    });
                    self.at += 2;
                }
                _ => return self.wrong("string", "is not terminated"),
            }
        }
    }

    /// Skips a value of any type.
    fn skip(&mut self, depth: usize) -> Result<(), DecodeError> {
        let Some(depth) = depth.checked_sub(1) else { return self.wrong("value", "is nested too deeply") };
        self.space();
        match self.peek() {
            Some(b'"') => self.string().map(drop),
            Some(open @ (b'{' | b'[')) => {
                self.at += 1;
                let close = if open == b'{' { b'}' } else { b']' };
                if self.take(close) {
                    return Ok(());
                }
                loop {
                    if open == b'{' {
                        self.string()?;
                        self.expect(b':', "value")?;
                    }
                    self.skip(depth)?;
                    if self.take(close) {
                        return Ok(());
                    }
                    self.expect(b',', "comma")?;
                }
            }
            _ => {
                let rest = self.bytes.get(self.at..).unwrap_or_default();
                let word = |byte: &&u8| matches!(byte, b'-' | b'+' | b'.' | b'0'..=b'9' | b'a'..=b'z' | b'E');
                let length = rest.iter().take_while(word).count();
                if length == 0 {
                    return self.wrong("value", "is missing or invalid");
                }
                self.at += length;
                Ok(())
            }
        }
    }
}

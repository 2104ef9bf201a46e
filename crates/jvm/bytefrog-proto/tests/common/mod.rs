//! Arbitrary messages of any dialect.
#![allow(dead_code, reason = "each test file uses a part of it")]

use proptest::{collection::vec, prelude::*};
use runtap_bytefrog_proto::f1::{
    Batch, BatchEvent, BatchKind, Count, CountRows, Drop, DropReason, Hit, HitRows, Process, Rows,
};
use runtap_bytefrog_proto::{
    ClassOutcome, Command, Dialect, Exit, JavaString, Location, Message, ModeByte, Stamp,
};

/// The buffers that a message borrows from, and numbers for its fields.
#[derive(Debug, Clone)]
pub(crate) struct Seed {
    pub(crate) kind: u8,
    pub(crate) numbers: [u32; 6],
    pub(crate) wide: [u64; 3],
    pub(crate) texts: [JavaString; 2],
    pub(crate) payload: Vec<u8>,
    pub(crate) events: Vec<[u8; 8]>,
    pub(crate) counts: Vec<[u8; 28]>,
}

/// The number of kinds of messages.
pub(crate) const KINDS: u8 = 36;

pub(crate) fn text() -> impl Strategy<Value = JavaString> {
    prop_oneof![
        "[ -~]{0,12}".prop_map(|text| JavaString::from(text.as_str())),
        vec(any::<u16>(), 0..6).prop_map(JavaString::from_units),
    ]
}

pub(crate) fn seed() -> impl Strategy<Value = Seed> {
    let event = (0..4u8, 0..(1u32 << 30), any::<u32>()).prop_map(|(kind, method, delta)| {
        let kind = match kind {
            0 => BatchKind::Entry,
            1 => BatchKind::Exit,
            raw => BatchKind::Reserved(raw),
        };
        let event = BatchEvent { kind, method, delta };
        assert_eq!(BatchEvent::from_bytes(event.to_bytes()), event);
        event.to_bytes()
    });
    let count = any::<(u32, u64, u64, u64)>().prop_map(|(method, calls, thrown, nanoseconds)| {
        Count { method, calls, thrown, nanoseconds }.to_bytes()
    });
    (
        0..KINDS,
        any::<[u32; 6]>(),
        any::<[u64; 3]>(),
        [text(), text()],
        vec(any::<u8>(), 0..40),
        vec(event, 0..6),
        vec(count, 0..3),
    )
        .prop_map(|(kind, numbers, wide, texts, payload, events, counts)| Seed {
            kind,
            numbers,
            wide,
            texts,
            payload,
            events,
            counts,
        })
}

impl Seed {
    /// Returns a message whose numbers are in the dialect's range. The dialect may not have the message at all.
    pub(crate) fn message(&self, dialect: Dialect) -> Message<'_> {
        let ours = dialect == Dialect::F1;
        let [a, b, c, d, end_line, flags] = self.numbers;
        let [low, ..] = c.to_be_bytes();
        let wide = |n: usize| if ours { self.wide[n] } else { self.wide[n] & 0xffff_ffff };
        let thread = if ours { b } else { b & 0xffff };
        let at = Stamp { time: wide(0), sequence: wide(1), thread };
        let [first, second] = [self.texts[0].as_java_str(), self.texts[1].as_java_str()];
        let [_, _, line_high, line_low] = d.to_be_bytes();
        let line = u16::from_be_bytes([line_high, line_low]);
        match self.kind {
            0 => Message::Hello { version: low },
            1 => Message::ProjectHello { version: low, project: a },
            2 => Message::Configuration { payload: &self.payload },
            3..=8 => Message::Command(Command::ALL[usize::from(self.kind - 3)]),
            9 => Message::Heartbeat { mode: ModeByte(low), queue: line },
            10 => Message::DataBreak { sequence: a },
            11 => Message::MapThreadName { thread, time: wide(0), name: first },
            12 => Message::MapMethod { method: a, signature: first },
            13 => Message::MapException { exception: a, name: first },
            14 => Message::MapLocation(Location {
                location: a,
                method: b,
                start_line: c,
                end_line,
                start_char: line,
                end_char: u16::from(low),
            }),
            15 => Message::LocationCount { method: a, count: c },
            16 => Message::Entry { at, method: a },
            17 => Message::Exit { at, method: a, exit: Exit::Line(line) },
            18 => Message::Exit { at, method: a, exit: Exit::Thrown(low) },
            19 => Message::Exception { at, method: a, exception: c, line },
            20 => Message::Bubble { at, method: a, exception: c },
            21 => Message::Visit { at, method: a, location: c },
            22 => Message::Marker {
                time: wide(0),
                sequence: wide(1),
                thread: ours.then_some(b),
                key: first,
                value: second,
            },
            23 => Message::DataHello { run: low },
            24 => Message::DataHelloReply,
            25 => Message::Class { outcome: ClassOutcome::Transformed, name: first },
            26 => Message::Class { outcome: ClassOutcome::Ignored, name: first },
            27 => Message::Class { outcome: ClassOutcome::Failed, name: first },
            28 => Message::Error { text: first },
            29 => Message::Batch(Batch {
                thread: b,
                sequence: wide(1),
                base: wide(0),
                rows: Rows::new(&self.events),
            }),
            30 => Message::ThreadEnd { thread: b, time: wide(0) },
            31 => Message::Drop(Drop {
                thread: b,
                sequence: wide(1),
                time: wide(0),
                count: wide(2),
                reason: DropReason(low),
            }),
            32 => Message::Counts(CountRows {
                snapshot: a,
                time: wide(0),
                last: flags & 1 != 0,
                reset: flags & 2 != 0,
                rows: Rows::new(&self.counts),
            }),
            33 => {
                let hits = HitRows { time: wide(0), rows: Rows::new(&self.events) };
                let again: Vec<_> = hits.hits().map(Hit::to_bytes).collect();
                assert_eq!(again, self.events);
                Message::Coverage(hits)
            }
            34 => {
                Message::Process(Process { pid: a, wall: wide(0), resolution: b, jvm: first, main: second })
            }
            _ => Message::Snapshot { reset: flags & 1 != 0 },
        }
    }
}

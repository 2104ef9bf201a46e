//! Everything that was read can be written again, in each supported version, and the copy yields equal events.

use std::collections::HashMap;

use proptest::prelude::*;
use runtap_nettrace::{
    Event, EventToWrite, Label, Reader, StreamItem, TraceHeader, Version, WriteError, Writer,
};

use crate::seen::{More, Reading, Seen, SeenEvent, seen};
use crate::{common, golden, laws, netperf, v6};

/// A copy of a stream, and its expected contents.
pub(crate) struct Copy {
    pub(crate) stream: Vec<u8>,
    pub(crate) events: Vec<SeenEvent>,
    pub(crate) lost: u64,
}

/// Writes a stream again. Data that the version does not support is an error.
pub(crate) fn rewrite(stream: &[u8], version: Version) -> Result<Copy, WriteError> {
    let mut reader = Reader::new();
    reader.feed(stream);
    reader.finish();
    let mut writer = Writer::with_version(&TraceHeader::new(0, 0, 1), version);
    let mut copy = Copier { version, ids: HashMap::new(), sequences: HashMap::new(), events: Vec::new() };
    loop {
        match reader.next() {
            Ok(Some(StreamItem::Header(header))) => writer = Writer::with_version(header, version),
            Ok(Some(StreamItem::Metadata(metadata))) => {
                copy.ids.insert(metadata.id, writer.define_event(metadata)?);
            }
            Ok(Some(StreamItem::Event(event))) => copy.event(&event, &mut writer)?,
            Ok(Some(StreamItem::SequencePoint(point))) => {
                for (thread, sequence) in point.threads.iter() {
                    let last = copy.sequences.entry(thread).or_insert(0);
                    writer.drop_events(thread, sequence.saturating_sub(*last));
                    *last = sequence.max(*last);
                }
                writer.sequence_point(point.timestamp);
            }
            Ok(Some(_)) | Err(_) => {}
            Ok(None) => break,
        }
    }
    Ok(Copy { stream: writer.finish(), events: copy.events, lost: reader.lost() })
}

struct Copier {
    version: Version,
    ids: HashMap<u32, u32>,
    sequences: HashMap<u64, u32>,
    events: Vec<SeenEvent>,
}

impl Copier {
    fn event(&mut self, event: &Event<'_>, writer: &mut Writer) -> Result<(), WriteError> {
        // An event without a definition cannot be written, nor one that is older than the last one.
        let Some(metadata_id) = self.ids.get(&event.metadata_id).copied() else { return Ok(()) };
        let stack: Vec<u64> = event.stack.ips().collect();
        let is_activity =
            |label: &Label<'_>| matches!(label, Label::ActivityId(_) | Label::RelatedActivityId(_));
        let labels: Vec<_> = event.labels.iter().filter(|label| !is_activity(label)).collect();
        for thread in [event.thread, event.capture_thread].into_iter().flatten() {
            if self.version == Version::Nettrace6 {
                match writer.define_thread(thread) {
                    Ok(()) | Err(WriteError::ThreadKnown { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        // In version 6 events refer to threads by their indexes.
        let key = |thread: Option<&runtap_nettrace::Thread>, id| match self.version {
            Version::Nettrace6 => thread.map_or(id, |thread| thread.index),
            _ => id,
        };
        let written = EventToWrite {
            metadata_id,
            thread_id: key(event.thread, event.thread_id),
            capture_thread_id: key(event.capture_thread, event.capture_thread_id),
            // NetPerf has no sequence numbers.
            sequence: (event.processor != u32::MAX || event.sequence != 0).then_some(event.sequence),
            processor: event.processor,
            stack: &stack,
            timestamp: event.timestamp,
            activity_id: event.activity_id,
            related_activity_id: event.related_activity_id,
            labels: &labels,
            payload: event.payload,
        };
        writer.event(&written)?;
        self.sequences.insert(written.capture_thread_id, event.sequence);
        let Seen::Event(mut expected) = seen(StreamItem::Event(*event)) else { unreachable!() };
        expected.metadata_id = metadata_id;
        self.events.push(expected);
        Ok(())
    }
}

/// Compares the copy with the original.
fn check(stream: &[u8], version: Version, what: &str) -> usize {
    let copy = rewrite(stream, version).unwrap_or_else(|error| panic!("{what}: {error}"));
    let reading = Reading::of(&copy.stream, 1 << 20);
    assert!(reading.complete && reading.partial.is_none(), "{what}");
    // In version 6 a thread's first event is known to have the number 1.
    let of_version_6 = copy.stream.get(8..12) == Some(&[0; 4][..]);
    // The removal of a thread is not copied; this stream has one.
    let removed = u64::from(stream == v6::whole());
    let (lost, of_original) = (reading.lost, copy.lost - removed);
    assert!(lost == of_original || of_version_6 && lost > of_original, "{what}: {lost} and {of_original}");
    assert_eq!(reading.events().len(), copy.events.len(), "{what}");
    for (copied, original) in reading.events().into_iter().zip(&copy.events) {
        // A recording may start a run in the middle of a run of the copy, but not the reverse; and NetPerf
        // starts one with every event, without numbers.
        let mut expected = original.clone();
        expected.sorted = copied.sorted && original.sorted;
        if original.sequence == 0 {
            expected.sequence = copied.sequence;
        }
        // Version 6 describes every thread, perhaps by its id alone, in the process of the header.
        if let (Version::Nettrace6, None) =
            (version, original.more.as_deref().and_then(|more| more.thread.as_ref()))
        {
            let thread = copied.more.as_ref().and_then(|more| more.thread.clone());
            assert_eq!(
                thread.as_ref().and_then(|thread| thread.thread_id),
                Some(original.thread_id),
                "{what}"
            );
            let labels = activities(original);
            expected.more = Some(Box::new(More { thread, labels }));
        }
        assert_eq!(*copied, expected, "{what}");
    }
    copy.events.len()
}

/// Returns the labels for activities.
fn activities(event: &SeenEvent) -> Vec<String> {
    let ids =
        [event.activity_id.map(Label::ActivityId), event.related_activity_id.map(Label::RelatedActivityId)];
    ids.iter().flatten().map(|label| format!("{label:?}")).collect()
}

#[test]
fn recordings_survive_a_rewrite_in_version_4() {
    for recording in common::recordings() {
        if recording.version() < 6 {
            check(&recording.bytes, Version::Nettrace4, &recording.path.display().to_string());
        }
    }
}

#[test]
fn recordings_survive_a_rewrite_in_version_6() {
    for recording in common::recordings() {
        check(&recording.bytes, Version::Nettrace6, &recording.path.display().to_string());
    }
}

#[test]
fn hand_made_streams_survive_a_rewrite() {
    for stream in [netperf::bare(1), netperf::bare(2), netperf::version_3()] {
        for version in [Version::Nettrace4, Version::Nettrace6] {
            check(&stream, version, "a hand-made stream");
        }
    }
    assert!(check(&v6::whole(), Version::Nettrace6, "version 6") >= 5);
    let refused = rewrite(&golden::whole(), Version::Nettrace6).err();
    assert!(matches!(refused, Some(WriteError::TimeGoesBack { .. })), "{refused:?}");
    let refused = rewrite(&v6::whole(), Version::Nettrace4).err();
    assert!(matches!(refused, Some(WriteError::FieldType { code: 20 })), "{refused:?}");
}

proptest! {
    #[test]
    fn streams_survive_a_rewrite(stream in laws::any_version()) {
        for version in [Version::Nettrace4, Version::Nettrace6] {
            let copy = rewrite(&stream, version);
            if copy.is_ok() {
                check(&stream, version, "a stream");
            }
        }
    }

    /// Everything that can be read of a damaged stream is written, or rejected.
    #[test]
    fn damaged_streams_are_written_or_rejected(stream in laws::any_version(), at: prop::sample::Index, bit in 0..8u8) {
        let mut damaged = stream;
        let at = at.index(damaged.len());
        damaged[at] ^= 1 << bit;
        for version in [Version::Nettrace4, Version::Nettrace6] {
            if let Ok(copy) = rewrite(&damaged, version) {
                let reading = Reading::of(&copy.stream, 100);
                prop_assert!(reading.complete && reading.partial.is_none());
                prop_assert_eq!(reading.events().len(), copy.events.len());
            }
        }
    }
}

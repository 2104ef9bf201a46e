//! Any bytes, read and written again in one of the two versions (first byte): items that the writer accepts are read
//! from its stream unchanged.
#![no_main]

use std::collections::HashMap;

use runtap_nettrace::{Event, EventToWrite, Label, Reader, StreamItem, Version, Writer};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some((version, stream)) = input.split_first() else { return };
    let version = if version & 1 == 0 { Version::Nettrace4 } else { Version::Nettrace6 };
    let mut written = Vec::new();
    let mut writer = None;
    let mut ids = HashMap::new();
    each(stream, |item| match (item, &mut writer) {
        (StreamItem::Header(header), _) => writer = Some(Writer::with_version(header, version)),
        (StreamItem::Metadata(metadata), Some(writer)) => {
            if let Ok(id) = writer.define_event(metadata) {
                ids.insert(metadata.id, id);
            }
        }
        (StreamItem::Event(event), Some(writer)) => {
            if let Some(id) = ids.get(&event.metadata_id) {
                write(&event, *id, writer, &mut written);
            }
        }
        (StreamItem::SequencePoint(point), Some(writer)) => writer.sequence_point(point.timestamp),
        _ => {}
    });
    let Some(writer) = writer else { return };
    let mut read = Vec::new();
    let whole = each(&writer.finish(), |item| {
        if let StreamItem::Event(event) = item {
            read.push(describe(&event));
        }
    });
    assert!(whole);
    assert_eq!(read, written);
});

/// Formats the properties of an event that both versions can express.
fn describe(event: &Event<'_>) -> String {
    let named = event.metadata.map(|metadata| (&metadata.provider, metadata.event_id, &metadata.name));
    let Event { timestamp, processor, .. } = event;
    let stack: Vec<u64> = event.stack.ips().collect();
    let is_activity = |label: &Label<'_>| matches!(label, Label::ActivityId(_) | Label::RelatedActivityId(_));
    let labels: Vec<_> = event.labels.iter().filter(|label| !is_activity(label)).collect();
    let (activity, related) = (event.activity_id, event.related_activity_id);
    format!(
        "{named:?} {timestamp} {processor} {stack:x?} {activity:?} {related:?} {labels:?} {:?}",
        event.payload
    )
}

fn write(event: &Event<'_>, metadata_id: u32, writer: &mut Writer, written: &mut Vec<String>) {
    let stack: Vec<u64> = event.stack.ips().collect();
    let is_activity = |label: &Label<'_>| matches!(label, Label::ActivityId(_) | Label::RelatedActivityId(_));
    let labels: Vec<_> = event.labels.iter().filter(|label| !is_activity(label)).collect();
    let event_to_write = EventToWrite {
        metadata_id,
        thread_id: event.thread_id,
        capture_thread_id: event.capture_thread_id,
        processor: event.processor,
        stack: &stack,
        timestamp: event.timestamp,
        activity_id: event.activity_id,
        related_activity_id: event.related_activity_id,
        labels: &labels,
        payload: event.payload,
        ..EventToWrite::default()
    };
    if writer.event(&event_to_write).is_ok() {
        written.push(describe(event));
    }
}

/// Visits all items; returns whether the stream is complete.
fn each(stream: &[u8], mut visit: impl FnMut(StreamItem<'_>)) -> bool {
    let mut reader = Reader::new();
    let mut items = reader.items(stream);
    while items.for_each(&mut visit).is_err() {}
    drop(items);
    reader.finish();
    let mut items = reader.items(&[]);
    while items.for_each(&mut visit).is_err() {}
    drop(items);
    reader.is_complete() && reader.partial().is_none()
}

//! Copies of a recording in versions of which there are no recordings, or few: `NetPerf` 1 and 2, and Nettrace 6.

use std::collections::HashMap;

use runtap_nettrace::{
    Event, EventToWrite, Metadata, Reader, StreamItem, Thread, TraceHeader, Uuid, Version, Writer,
};
use runtap_wire::Writer as Bytes;

/// The runtime's provider. Version 1 has no names of providers.
const RUNTIME: Uuid = Uuid::from_u128(0xe13c_0d23_ccbc_4e12_931b_d9cc_2eee_27e4);

fn each(bytes: &[u8], mut visit: impl FnMut(&StreamItem<'_>)) {
    let mut reader = Reader::new();
    for part in [bytes, &[]] {
        if part.is_empty() {
            reader.finish();
        }
        reader.items(part).for_each(|item| visit(&item)).unwrap();
    }
}

/// In Nettrace 6, with a thread for each of its threads.
pub(crate) fn in_nettrace_6(bytes: &[u8]) -> Vec<u8> {
    let mut writer = None;
    let mut ids = HashMap::new();
    each(bytes, |item| match (item, &mut writer) {
        (StreamItem::Header(header), _) => writer = Some(Writer::with_version(header, Version::Nettrace6)),
        (StreamItem::Metadata(metadata), Some(writer)) => {
            ids.extend(writer.define_event(metadata).ok().map(|id| (metadata.id, id)));
        }
        (StreamItem::Event(event), Some(writer)) => {
            let Some(metadata_id) = ids.get(&event.metadata_id) else { return };
            for index in [event.thread_id, event.capture_thread_id] {
                let mut thread = Thread::new(index);
                thread.thread_id = Some(index);
                // Each is new once.
                let _ = writer.define_thread(&thread);
            }
            let stack: Vec<u64> = event.stack.ips().collect();
            let copy = EventToWrite {
                metadata_id: *metadata_id,
                thread_id: event.thread_id,
                capture_thread_id: event.capture_thread_id,
                processor: event.processor,
                stack: &stack,
                timestamp: event.timestamp,
                activity_id: event.activity_id,
                related_activity_id: event.related_activity_id,
                payload: event.payload,
                ..EventToWrite::default()
            };
            // Fails for an event that is older than the last sequence point.
            let _ = writer.event(&copy);
        }
        (StreamItem::SequencePoint(point), Some(writer)) => writer.sequence_point(point.timestamp),
        _ => {}
    });
    writer.map(Writer::finish).unwrap_or_default()
}

/// In `NetPerf` 1 or 2: events and definitions one behind the other, without blocks.
pub(crate) fn in_netperf(bytes: &[u8], version: u8) -> Vec<u8> {
    let mut stream = Vec::new();
    let mut ids = HashMap::new();
    each(bytes, |item| match item {
        StreamItem::Header(header) => stream = start(header, version),
        StreamItem::Metadata(metadata) => {
            let id = u32::try_from(stream.len()).unwrap();
            frame(&mut stream, 0, 0, 0, [Uuid::nil(); 2], &definition(metadata, version), &[]);
            ids.insert(metadata.id, id);
        }
        StreamItem::Event(event) => copy_event(event, &ids, &mut stream),
        _ => {}
    });
    let end = u32::try_from(stream.len()).unwrap();
    let mut w = Bytes::new();
    w.u8(6).u32(1).u32(end).u32(end + 1).u32(end + 9);
    stream.extend(w.into_bytes());
    stream
}

fn start(header: &TraceHeader, version: u8) -> Vec<u8> {
    let mut w = Bytes::new();
    w.bytes(b"\x14\0\0\0!FastSerialization.1\x04\x04\x01").bytes(&[version, 0, 0, 0, 0, 0, 0, 0]);
    w.u32(38).bytes(b"Microsoft.DotNet.Runtime.EventPipeFile\x06").u32(0);
    for part in header.sync_systemtime {
        w.u16(part);
    }
    w.i64(header.sync_qpc).i64(header.qpc_frequency);
    w.into_bytes()
}

fn definition(metadata: &Metadata, version: u8) -> Vec<u8> {
    let mut common = Bytes::new();
    common.u32(metadata.event_id).utf16z(&metadata.name).u64(metadata.keywords);
    common.u32(metadata.version).u32(metadata.level).u32(0);
    let mut w = Bytes::new();
    if version == 1 {
        w.guid(RUNTIME);
    } else {
        w.utf16z(&metadata.provider);
    }
    w.u32(metadata.event_id).u32(metadata.version);
    w.u32(u32::try_from(common.len()).unwrap()).bytes(common.as_bytes());
    w.into_bytes()
}

fn copy_event(event: &Event<'_>, ids: &HashMap<u32, u32>, stream: &mut Vec<u8>) {
    let Some(id) = ids.get(&event.metadata_id) else { return };
    let activities = [event.activity_id, event.related_activity_id].map(|id| id.unwrap_or(Uuid::nil()));
    let stack: Vec<u8> = event.stack.ips().flat_map(u64::to_le_bytes).collect();
    let thread = u32::try_from(event.thread_id & u64::from(u32::MAX)).unwrap();
    frame(stream, *id, thread, event.timestamp, activities, event.payload, &stack);
}

fn frame(
    stream: &mut Vec<u8>,
    id: u32,
    thread: u32,
    timestamp: u64,
    [activity, related]: [Uuid; 2],
    payload: &[u8],
    stack: &[u8],
) {
    let mut w = Bytes::new();
    w.u32(u32::try_from(56 + payload.len() + stack.len()).unwrap()).u32(id).u32(thread).u64(timestamp);
    w.guid(activity).guid(related);
    w.u32(u32::try_from(payload.len()).unwrap()).bytes(payload);
    w.u32(u32::try_from(stack.len()).unwrap()).bytes(stack);
    stream.extend(w.into_bytes());
}

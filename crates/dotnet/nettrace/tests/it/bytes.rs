//! Streams built byte by byte, independently of the crate's writer. Every function is one line of the format.

use runtap_wire::Writer;

/// The header that [`trace`] encodes.
pub(crate) const PROCESS_ID: u32 = 77;

/// Returns the first bytes of a stream and its Trace object.
pub(crate) fn start(pointer_size: u32) -> Vec<u8> {
    let mut w = Writer::new();
    w.bytes(b"Nettrace\x14\0\0\0!FastSerialization.1");
    w.bytes(&[5, 5, 1, 4, 0, 0, 0, 4, 0, 0, 0, 5, 0, 0, 0]).bytes(b"Trace").u8(6);
    trace(&mut w, pointer_size);
    w.u8(6);
    w.into_bytes()
}

fn trace(w: &mut Writer, pointer_size: u32) {
    for part in [2019, 6, 4, 20, 11, 43, 39, 754] {
        w.u16(part);
    }
    w.i64(1000).i64(10_000_000).u32(pointer_size).u32(PROCESS_ID).u32(4).u32(1_000_000);
}

/// Appends an object with a size, padded for its position.
pub(crate) fn object(stream: &mut Vec<u8>, name: &str, payload: &[u8]) {
    object_for(stream, name, 2, payload);
}

/// Appends an object for readers of at least the given version.
pub(crate) fn object_for(stream: &mut Vec<u8>, name: &str, min_reader: u8, payload: &[u8]) {
    object_in(stream, 5, name, min_reader, payload);
}

/// Appends an object with the tag of `NetPerf` (4) or Nettrace (5).
pub(crate) fn object_in(stream: &mut Vec<u8>, tag: u8, name: &str, min_reader: u8, payload: &[u8]) {
    stream.extend([tag, tag, 1, 2, 0, 0, 0, min_reader, 0, 0, 0]);
    stream.extend(u32::try_from(name.len()).unwrap().to_le_bytes());
    stream.extend(name.as_bytes());
    stream.push(6);
    stream.extend(u32::try_from(payload.len()).unwrap().to_le_bytes());
    while !stream.len().is_multiple_of(4) {
        stream.push(0);
    }
    stream.extend(payload);
    stream.push(6);
}

/// Returns the payload of an event or metadata block with the usual header.
pub(crate) fn blobs(compressed: bool, blobs: &[u8]) -> Vec<u8> {
    let mut w = Writer::new();
    w.u16(20).u16(u16::from(compressed)).i64(0).i64(0).bytes(blobs);
    w.into_bytes()
}

/// Returns a metadata record in a compressed blob, as the runtime writes it.
pub(crate) fn definition(record: &[u8]) -> Vec<u8> {
    let mut w = Writer::new();
    w.u8(0xc6).varu32(u32::MAX).varu64(0).varu32(u32::MAX).varu64(9).varu64(5);
    w.varu32(u32::try_from(record.len()).unwrap()).bytes(record);
    w.into_bytes()
}

/// Returns the first bytes and a definition with the id 1.
pub(crate) fn start_with_definition() -> Vec<u8> {
    let mut stream = start(8);
    object(&mut stream, "MetadataBlock", &blobs(true, &definition(record(1, "Demo", 7, "Tick").as_bytes())));
    stream
}

/// Returns the part of a metadata record up to the level.
pub(crate) fn record(id: u32, provider: &str, event_id: u32, name: &str) -> Writer {
    let mut w = Writer::new();
    w.u32(id).utf16z(provider).u32(event_id).utf16z(name).u64(0xf0).u32(2).u32(4);
    w
}

/// Returns the payload of a stack block.
pub(crate) fn stacks(first: u32, stacks: &[&[u8]]) -> Vec<u8> {
    let mut w = Writer::new();
    w.u32(first).u32(u32::try_from(stacks.len()).unwrap());
    for stack in stacks {
        w.u32(u32::try_from(stack.len()).unwrap()).bytes(stack);
    }
    w.into_bytes()
}

/// Returns the payload of a sequence point.
pub(crate) fn point(timestamp: u64, threads: &[(u64, u32)]) -> Vec<u8> {
    let mut w = Writer::new();
    w.u64(timestamp).u32(u32::try_from(threads.len()).unwrap());
    for (thread, sequence) in threads {
        w.u64(*thread).u32(*sequence);
    }
    w.into_bytes()
}

/// Returns the names and payloads of the objects of a complete stream.
pub(crate) fn objects(stream: &[u8]) -> Vec<(String, &[u8])> {
    let u32_at = |at: usize| u32::from_le_bytes(stream[at..at + 4].try_into().unwrap()) as usize;
    let mut objects = Vec::new();
    let mut at = start(8).len();
    while stream[at] == 5 {
        let name = at + 15..at + 15 + u32_at(at + 11);
        let size = u32_at(name.end + 1);
        let payload = (name.end + 5).next_multiple_of(4);
        objects.push((String::from_utf8(stream[name].to_vec()).unwrap(), &stream[payload..payload + size]));
        at = payload + size + 1;
    }
    assert_eq!((stream[at], at + 1), (1, stream.len()));
    objects
}

//! A synthetic recording like those of the runtime's sampler, which is deterministic for a given length.

use anyhow::Result;
use runtap_nettrace::{EventToWrite, Metadata, TraceHeader, Writer};

const THREADS: u64 = 8;
const METHODS: u64 = 2_000;
const DEPTH: u64 = 24;
const CODE: u64 = 0x7f00_0000_0000;
const CODE_SIZE: u64 = 0x100;
const MILLISECOND: u64 = 1_000_000;

/// Makes `samples` samples of 8 busy threads with stacks of 24 frames, then the names of 2,000 methods.
pub(crate) fn make(samples: u64) -> Result<Vec<u8>> {
    let mut writer = Writer::new(&TraceHeader::new(1_700_000_000_000_000_000, 0, 1_000_000_000));
    let sample = writer.define_event(&Metadata::new("Microsoft-DotNETCore-SampleProfiler", 0, ""))?;
    let method = writer.define_event(&Metadata::new("Microsoft-Windows-DotNETRuntimeRundown", 144, ""))?;
    let mut bytes = Vec::new();
    let mut random = 1_u64;
    for number in 0..samples {
        let thread_id = 100 + number % THREADS;
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let stack = stack(thread_id, random >> 33);
        writer.event(&EventToWrite {
            metadata_id: sample,
            thread_id,
            capture_thread_id: 99,
            timestamp: number / THREADS * MILLISECOND,
            stack: &stack,
            payload: &2_u32.to_le_bytes(),
            ..EventToWrite::default()
        })?;
        if writer.needs_sequence_point() {
            writer.sequence_point(number / THREADS * MILLISECOND);
        }
        bytes.append(&mut writer.take_output());
    }
    for number in 0..METHODS {
        writer.event(&EventToWrite {
            metadata_id: method,
            thread_id: 99,
            capture_thread_id: 99,
            timestamp: samples / THREADS * MILLISECOND,
            payload: &method_payload(number),
            ..EventToWrite::default()
        })?;
    }
    bytes.append(&mut writer.finish());
    Ok(bytes)
}

/// Returns a stack from the leaf to the root. The upper half depends on the thread, the lower half is one of 2^8 paths:
/// stacks repeat, as in real programs.
fn stack(thread: u64, path: u64) -> Vec<u64> {
    let frame = |level: u64| {
        let branch = if level < DEPTH / 2 { thread } else { thread + (path & ((1 << (level % 9)) - 1)) };
        let method = (branch * 31 + level * 7) % METHODS;
        CODE + method * CODE_SIZE + 0x40
    };
    (0..DEPTH).rev().map(frame).collect()
}

/// Encodes `MethodDCEndVerbose` version 2.
fn method_payload(number: u64) -> Vec<u8> {
    let mut payload = Vec::new();
    for value in [CODE - number, 1, CODE + number * CODE_SIZE] {
        payload.extend_from_slice(&value.to_le_bytes());
    }
    for value in [u32::try_from(CODE_SIZE).unwrap_or_default(), 0, 8] {
        payload.extend_from_slice(&value.to_le_bytes());
    }
    for text in
        ["Some.Name.Space.Type", &format!("Method{number}"), "instance void  (int32,class System.String)"]
    {
        payload.extend(text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes));
    }
    payload.extend_from_slice(&[0; 10]);
    payload
}

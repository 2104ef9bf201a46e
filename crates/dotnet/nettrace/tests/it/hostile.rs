//! Limits apply to memory, not to received bytes: streams that define much in few bytes are truncated and reported.

use runtap_nettrace::{Limits, PartialReason, Reader, StreamItem};
use runtap_testkit::hostile::Growth;

use crate::common;

#[test]
fn definitions_that_need_much_memory_are_truncated() {
    const STREAM: u64 = 6 << 20;
    for (growth, limit) in [
        (Growth::Fields, 8 << 20),
        (Growth::EmptyStacks, 2 << 20),
        (Growth::ThreadRows, 8 << 20),
        (Growth::Attributes, 8 << 20),
        (Growth::Labels, 8 << 20),
    ] {
        let mut stream = Vec::new();
        growth.write(STREAM, &mut stream).unwrap();
        let mut limits = Limits::default();
        limits.max_metadata_bytes = limit;
        limits.max_stack_bytes = limit;
        limits.max_thread_bytes = limit;
        limits.max_label_bytes = limit;
        for (limits, cut) in [(limits, true), (Limits::default(), false)] {
            let mut reader = Reader::with_limits(limits);
            let mut errors = 0;
            common::read(&mut reader, &stream, 1 << 16, |item| errors += u64::from(item.is_err()));
            let reason = reader.partial().map(|partial| partial.reason.clone());
            let told = matches!(reason, Some(PartialReason::Damaged(_)));
            if cut {
                assert!(told && errors > 0, "{growth:?}: {reason:?}");
            } else if growth != Growth::ThreadRows && growth != Growth::Attributes && growth != Growth::Labels
            {
                assert_eq!(errors, 0, "{growth:?}: {reason:?}");
            }
        }
    }
}

/// Labels of an event are found by name without walking over its list, which would take minutes here.
#[test]
fn a_long_label_list_is_read_once() {
    let mut stream = Vec::new();
    Growth::LongList.write(6 << 20, &mut stream).unwrap();
    let mut events = 0_u32;
    common::read(&mut Reader::default(), &stream, 1 << 16, |item| {
        if let Ok(StreamItem::Event(event)) = item {
            assert_eq!((event.activity_id, event.labels.trace_id(), event.opcode()), (None, None, None));
            assert_eq!((event.level(), event.version(), event.labels.is_empty()), (Some(0), Some(0), false));
            events += 1;
        }
    });
    assert!(events > 400_000, "{events}");
}

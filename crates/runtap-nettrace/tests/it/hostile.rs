//! Limits count what is held in memory, not what was sent: streams that define much in few bytes are cut, and that is told.

use runtap_nettrace::{Limits, PartialReason, Reader};
use runtap_testkit::hostile::Growth;

use crate::common;

#[test]
fn what_takes_more_memory_than_bytes_is_cut() {
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

//! Any bytes as a recording of the `dotnet test` pipe: no panic, every line is shown, and equally many frames are
//! checked and shown.
#![no_main]

use runtap_mtp::transcript::{Linter, Replay, TestPipe};
use runtap_transcript::{Inspector, Reader};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let (mut inspector, mut linter, mut replay) = (Inspector::new(TestPipe), Linter::new(), Replay::new());
    for located in Reader::new(input).map_while(Result::ok) {
        let rows = inspector.rows(located.clone());
        assert!(!rows.is_empty() && rows.iter().all(|row| row.line == located.line));
        linter.take(located.clone());
        // Messages beyond the limits are rejected.
        let _ = replay.take(located);
    }
    let (summary, findings) = linter.finish();
    assert_eq!((summary.frames, summary.connections), (inspector.frames(), inspector.connections()));
    assert!(findings.len() as u64 <= summary.errors + summary.warnings);
    replay.mode();
});

//! Any bytes as a recording of the `dotnet test` pipe: no panic, every line is shown, and as many frames are checked as are
//! shown.
#![no_main]

use runtap_mtp_tap::{Inspector, Linter, Reader, Replay};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let (mut inspector, mut linter, mut replay) = (Inspector::new(), Linter::new(), Replay::new());
    for located in Reader::new(input).map_while(Result::ok) {
        let row = inspector.row(&located);
        assert_eq!(row.line, located.line);
        linter.take(located.clone());
        // What is beyond its limits is not taken.
        let _ = replay.take(located);
    }
    let (summary, findings) = linter.finish();
    assert_eq!((summary.frames, summary.connections), (inspector.frames(), inspector.connections()));
    assert!(findings.len() as u64 <= summary.errors + summary.warnings);
    replay.mode();
});

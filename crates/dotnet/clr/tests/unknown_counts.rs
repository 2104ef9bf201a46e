//! Numbers that are missing in some recordings, on synthetic streams as runtimes write them.

use runtap_clr::clr::{RUNDOWN, RUNTIME};
use runtap_clr::report::{Collect, Exceptions, ExceptionsReport, Jit, JitReport};
use runtap_nettrace::{EventToWrite, Metadata, Reader, TraceHeader, Writer};

/// The provider, the id of an event and the payload.
type Told = (&'static str, u32, Vec<u8>);

fn report<C: Collect>(told: &[Told]) -> C::Report {
    let mut writer = Writer::new(&TraceHeader::new(0, 0, 1_000_000_000));
    for (at, (provider, id, payload)) in (1..).zip(told) {
        let metadata_id = writer.define_event(&Metadata::new(*provider, *id, "")).unwrap();
        let event = EventToWrite { metadata_id, timestamp: at, payload, ..Default::default() };
        writer.event(&event).unwrap();
    }
    let stream = writer.finish();
    let mut reader = Reader::new();
    reader.feed(&stream);
    reader.finish();
    let mut collect = C::default();
    while let Some(item) = reader.next().unwrap() {
        collect.item(&item);
    }
    collect.finish()
}

fn bytes(write: impl FnOnce(&mut runtap_wire::Writer)) -> Vec<u8> {
    let mut writer = runtap_wire::Writer::new();
    write(&mut writer);
    writer.as_bytes().to_vec()
}

fn started(provider: &'static str, sku: u16, major: u16) -> Told {
    let payload = bytes(|w| {
        w.u16(0).u16(sku).u16(major).u16(0).u16(0).u16(0).u16(major).u16(0).u16(0).u16(0);
        w.u32(0).u8(0).utf16z("").bytes(&[0; 16]).utf16z("");
    });
    (provider, 187, payload)
}

fn thrown(flags: u16) -> Told {
    let payload = bytes(|w| {
        w.utf16z("N.E").utf16z("no").u64(1).u32(0x8013_1500).u16(flags).u16(0);
    });
    (RUNTIME, 80, payload)
}

#[test]
fn rethrown_exceptions_are_unknown_if_the_runtime_does_not_report_them() {
    const RETHROWN: u16 = 4;
    let counts = |told: &[Told]| {
        let report: ExceptionsReport = report::<Exceptions>(told);
        assert_eq!(report.types[0].rethrown_count, report.rethrown_count);
        (report.thrown_count, report.rethrown_count)
    };
    for provider in [RUNTIME, RUNDOWN] {
        assert_eq!(counts(&[thrown(0), started(provider, 2, 8)]), (1, Some(0)));
        for major in [9, 10] {
            assert_eq!(counts(&[thrown(0), started(provider, 2, major)]), (1, None));
        }
    }
    assert_eq!(counts(&[thrown(0)]), (1, None), "the version is unknown");
    assert_eq!(counts(&[started(RUNTIME, 4, 8), thrown(0)]), (1, None), "Native AOT");
    let two = [started(RUNTIME, 2, 8), thrown(0), started(RUNTIME, 2, 9), thrown(0)];
    assert_eq!(counts(&two), (2, None), "two recordings in one");
    // With the exception handling of .NET 8.
    assert_eq!(counts(&[started(RUNTIME, 2, 9), thrown(0), thrown(RETHROWN)]), (1, Some(1)));
    // The start of a runtime is not an exception.
    assert!(runtap_clr::report::Report::is_empty(&report::<Exceptions>(&[started(RUNTIME, 2, 8)])));
}

#[test]
fn precompiled_methods_are_counted_once_each_or_unknown() {
    const JITTED: u32 = 8;
    let loaded = |method: u64, flags: u32| {
        let payload = bytes(|w| {
            w.u64(method).u64(7).u64(0x1000 * method).u32(16).u32(0).u32(flags);
            w.utf16z("N.T").utf16z("x").utf16z("void ()").u16(0).u64(0);
        });
        (RUNTIME, 143, payload)
    };
    let looked_up = |method: u64, entry_point: u64| {
        let payload = bytes(|w| {
            w.u64(method).utf16z("N.T").utf16z("x").utf16z("void ()").u64(entry_point).u16(0);
        });
        (RUNTIME, 159, payload)
    };
    let counts = |told: &[Told]| {
        let report: JitReport = report::<Jit>(told);
        (report.compiled_count, report.precompiled_count)
    };
    assert_eq!(counts(&[loaded(1, JITTED)]), (1, None));
    // The runtime found no code for the second one.
    assert_eq!(counts(&[loaded(2, JITTED), looked_up(2, 0)]), (1, Some(0)));
    let twice = [looked_up(1, 0x1000), looked_up(3, 0x3000), looked_up(1, 0x1000), loaded(1, 0)];
    assert_eq!(counts(&twice), (0, Some(2)));
    assert_eq!(counts(&[loaded(1, 0), loaded(2, 0)]), (0, Some(2)));
}

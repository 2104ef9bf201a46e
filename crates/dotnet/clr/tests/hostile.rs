//! Reports and profiles of damaged streams terminate without a panic.

use runtap_clr::report::{Collect, Counters, Exceptions, Gc, Http, Jit, Locks, Logs, Loss, ThreadPool};
use runtap_clr::{DotnetTraceBuilder, ProfileBuilder, ProfileOptions};
use runtap_model::View;
use runtap_nettrace::{EventToWrite, Metadata, Observe, Reader, StreamItem, TraceHeader, Writer};
use runtap_testkit::{recordings, require};

/// Deterministic pseudo-random numbers.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % n
    }
}

/// Reads what is readable, also after damage.
fn read(bytes: &[u8], mut visit: impl FnMut(&StreamItem<'_>)) {
    let mut reader = Reader::new();
    reader.feed(bytes);
    reader.finish();
    let mut errors = 0;
    loop {
        match reader.next() {
            Ok(Some(item)) => visit(&item),
            Ok(None) => return,
            Err(_) if errors > 1000 => return,
            Err(_) => errors += 1,
        }
    }
}

fn everything(bytes: &[u8]) {
    macro_rules! report {
        ($($kind:ident),+) => {$({
            let mut collector = $kind::default();
            read(bytes, |item| collector.item(item));
            let _ = collector.finish();
        })+};
    }
    report!(Gc, Exceptions, Locks, Jit, ThreadPool, Http, Counters, Logs);
    let mut loss = Loss::default();
    read(bytes, |item| loss.item(item));
    let _ = loss.report(0);
    for view in View::ALL.into_iter().filter(|view| *view != View::ThreadTime) {
        let mut builder = ProfileBuilder::of(view);
        read(bytes, |item| builder.item(item));
        let _ = builder.finish(&ProfileOptions::default());
    }
    let mut builder = DotnetTraceBuilder::new();
    read(bytes, |item| builder.item(item));
    builder.cut_off();
    let _ = builder.finish(&ProfileOptions::default());
}

#[test]
fn flipped_bits() {
    let mut dice = Dice(1);
    let mut read = 0;
    for recording in require!(recordings()).iter().filter(|it| it.bytes.len() < 60_000) {
        for _ in 0..6 {
            let mut bytes = recording.bytes.clone();
            for _ in 0..8 {
                let at = 64 + dice.below(bytes.len() - 64);
                bytes[at] ^= 1 << dice.below(8);
            }
            everything(&bytes);
        }
        read += 1;
    }
    assert!(read >= 8, "only {read} recordings");
}

/// Events of all relevant kinds, with arbitrary payloads and times.
#[test]
fn arbitrary_payloads() {
    let kinds = [
        (
            "Microsoft-Windows-DotNETRuntime",
            &[
                1, 2, 3, 4, 9, 10, 13, 20, 32, 35, 50, 51, 54, 55, 57, 59, 61, 62, 63, 64, 65, 80, 81, 91,
                141, 142, 143, 144, 145, 151, 152, 303,
            ][..],
        ),
        ("Microsoft-Windows-DotNETRuntimeRundown", &[141, 142, 143, 144, 151, 152, 153, 154]),
        ("Microsoft-DotNETCore-SampleProfiler", &[0]),
        ("System.Threading.Tasks.TplEventSource", &[7, 8, 9, 10, 11, 12, 14, 15, 17]),
    ];
    let mut dice = Dice(2);
    for _ in 0..20 {
        let mut writer = Writer::new(&TraceHeader::new(0, 0, 3_124_099));
        let mut ids = Vec::new();
        for (provider, events) in kinds {
            for event in events {
                ids.push(writer.define_event(&Metadata::new(provider, *event, "")).unwrap());
            }
        }
        let mut timestamp = 0;
        for n in 0..3_000 {
            let small = |dice: &mut Dice| u64::try_from(dice.below(40)).unwrap();
            let payload: Vec<u8> = (0..dice.below(120))
                .map(|_| if dice.below(3) == 0 { u8::try_from(dice.below(256)).unwrap() } else { 0 })
                .collect();
            let stack: Vec<u64> = (0..dice.below(6)).map(|_| small(&mut dice) << dice.below(60)).collect();
            // The writer rejects times that decrease, so large jumps come last.
            let leap = small(&mut dice) << dice.below(if n > 2_950 { 58 } else { 24 });
            timestamp = u64::saturating_add(timestamp, leap);
            let event = EventToWrite {
                metadata_id: ids[dice.below(ids.len())],
                thread_id: small(&mut dice) % 4,
                capture_thread_id: 1,
                timestamp,
                stack: &stack,
                payload: &payload,
                ..Default::default()
            };
            writer.event(&event).unwrap();
        }
        everything(&writer.finish());
    }
}

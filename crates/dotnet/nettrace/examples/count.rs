//! Counts the events of nettrace files and measures the speed of the reader.
//!
//! `cargo run --release -p runtap-nettrace --example count -- [--repeat N] FILE…`: reads each file N times, best time.

#![expect(clippy::print_stdout, reason = "a program, not a library")]
#![expect(clippy::disallowed_methods, reason = "measures time and reads files")]

use std::time::Instant;

use runtap_nettrace::{Error, Reader, StreamItem};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut repeat = 10u32;
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        if arg == "--repeat" {
            repeat = args.next().ok_or("--repeat needs a number")?.parse()?;
            continue;
        }
        let bytes = std::fs::read(&arg)?;
        let mut best = f64::MAX;
        let mut counted = Counted::default();
        for _ in 0..repeat.max(1) {
            let start = Instant::now();
            counted = count(&bytes)?;
            best = best.min(start.elapsed().as_secs_f64());
        }
        let Counted { events, payload, times } = counted;
        #[expect(clippy::cast_precision_loss, reason = "a rate")]
        let (rate, speed, ns) =
            (events as f64 / best / 1e6, bytes.len() as f64 / best / 1e6, best * 1e9 / events as f64);
        println!(
            "{arg}: {events} events, {payload} bytes of payload ({times:x}): {rate:.1} M events/s, {ns:.1} ns/event, {speed:.0} MB/s"
        );
    }
    Ok(())
}

#[derive(Default)]
struct Counted {
    events: u64,
    payload: usize,
    times: u64,
}

fn count(bytes: &[u8]) -> Result<Counted, Error> {
    let mut reader = Reader::new();
    let mut counted = Counted::default();
    let mut take = |item: StreamItem<'_>| {
        if let StreamItem::Event(event) = item {
            counted.events += u64::from(event.metadata.is_some());
            counted.payload += event.payload.len();
            counted.times = counted.times.wrapping_add(event.timestamp);
        }
    };
    reader.items(bytes).for_each(&mut take)?;
    reader.finish();
    reader.items(&[]).for_each(&mut take)?;
    Ok(counted)
}

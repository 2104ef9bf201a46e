//! What reading a recording costs: the programs whose instructions `cargo xtask bench` counts.
//!
//! Owns: a made-up recording of a CPU profile, and one way of reading it per stage. Refuses to: measure. Whoever runs
//! it under a counting tool does; the difference between two lengths leaves the start of the program out.
#![expect(clippy::print_stdout, reason = "the result is printed so that the work cannot be left out")]

mod recording;

use std::fs;

use anyhow::{Context as _, Result, bail};
use runtap_ingest::{EventCounts, ProfileBuilder, ProfileOptions};
use runtap_model::View;
use runtap_nettrace::{Item, Reader};
use runtap_sinks::{Options, speedscope};

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["make", file, samples] => {
            let samples = samples.parse().context("the number of samples is no number")?;
            Ok(fs::write(file, recording::make(samples)?)?)
        }
        ["decode", file] => decode(&fs::read(file)?),
        ["count", file] => count(&fs::read(file)?),
        ["profile", file] => profile(&fs::read(file)?),
        _ => bail!("usage: runtap-benches make FILE SAMPLES | decode FILE | count FILE | profile FILE"),
    }
}

/// Bytes as they come from a socket.
const CHUNK: usize = 64 << 10;

fn read(bytes: &[u8], mut take: impl FnMut(&Item<'_>)) -> Result<()> {
    let mut reader = Reader::new();
    for chunk in bytes.chunks(CHUNK) {
        reader.feed(chunk);
        while let Some(item) = reader.next()? {
            take(&item);
        }
    }
    reader.finish();
    while let Some(item) = reader.next()? {
        take(&item);
    }
    if !reader.is_complete() {
        bail!("the recording is cut");
    }
    Ok(())
}

/// The reader alone.
fn decode(bytes: &[u8]) -> Result<()> {
    let mut sum = 0_u64;
    read(bytes, |item| {
        if let Item::Event(event) = item {
            sum = sum.wrapping_add(event.timestamp).wrapping_add(event.stack.ips().count() as u64);
        }
    })?;
    println!("{sum}");
    Ok(())
}

/// `runtap events --count`.
fn count(bytes: &[u8]) -> Result<()> {
    let mut counts = EventCounts::new();
    read(bytes, |item| {
        if let Item::Event(event) = item {
            counts.add(event);
        }
    })?;
    println!("{}", counts.total());
    Ok(())
}

/// `runtap convert --to speedscope`.
fn profile(bytes: &[u8]) -> Result<()> {
    let mut builder = ProfileBuilder::new();
    read(bytes, |item| builder.item(item))?;
    let trace = builder.finish(&ProfileOptions::default());
    let mut file = Vec::new();
    speedscope::write(&trace, &mut file, &Options::new(View::ThreadTime))?;
    println!("{}", file.len());
    Ok(())
}

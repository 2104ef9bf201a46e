//! Stages of reading a recording, which share the reader.

use anyhow::{Result, bail};
use runtap_clr::{EventCounts, ProfileBuilder, ProfileOptions};
use runtap_model::View;
use runtap_nettrace::{Observe, Reader, StreamItem};
use runtap_sinks::{Options, speedscope};

use crate::nettrace::{Fields, Stacks, on_one};

/// A stage: takes the bytes of a recording and returns a number that depends on all of them.
pub(crate) type Stage = fn(&[u8]) -> Result<u64>;

/// All stages, by name.
pub(crate) const ALL: [(&str, Stage); 5] =
    [("decode", decode), ("count", count), ("fields", fields), ("stacks", stacks), ("profile", profile)];

/// Passes all items of a complete recording to `take`; returns the number of lost events.
pub(crate) fn read(bytes: &[u8], mut take: impl FnMut(&StreamItem<'_>)) -> Result<u64> {
    let mut reader = Reader::new();
    reader.items(bytes).for_each(|item| take(&item))?;
    if !reader.is_complete() {
        bail!("the recording is cut");
    }
    Ok(reader.lost())
}

/// Runs only the reader.
fn decode(bytes: &[u8]) -> Result<u64> {
    let mut sum = 0_u64;
    read(bytes, |item| {
        if let StreamItem::Event(event) = item {
            sum = sum.wrapping_add(event.timestamp).wrapping_add(event.stack.ips().count() as u64);
        }
    })?;
    Ok(sum)
}

/// Does the work of `runtap events --count`.
fn count(bytes: &[u8]) -> Result<u64> {
    let mut counts = EventCounts::new();
    read(bytes, |item| {
        if let StreamItem::Event(event) = item {
            counts.add(event);
        }
    })?;
    Ok(counts.total())
}

/// Reads every field of every event.
fn fields(bytes: &[u8]) -> Result<u64> {
    let parts = on_one(bytes, Fields::default)?;
    Ok(Fields::sum(&parts).1)
}

/// Resolves the names of every stack.
fn stacks(bytes: &[u8]) -> Result<u64> {
    let (events, sums) = Stacks::sum(on_one(bytes, Stacks::default)?)?;
    Ok(sums.into_iter().fold(events, u64::wrapping_add))
}

/// Does the work of `runtap convert --to speedscope`.
fn profile(bytes: &[u8]) -> Result<u64> {
    let mut builder = ProfileBuilder::new();
    read(bytes, |item| builder.item(item))?;
    let trace = builder.finish(&ProfileOptions::default());
    let mut file = Vec::new();
    speedscope::write(&trace, &mut file, &Options::new(View::ThreadTime))?;
    Ok(file.len() as u64)
}

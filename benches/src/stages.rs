//! The ways of reading a recording, which have the reading itself in common.

use anyhow::{Result, bail};
use runtap_clr::{EventCounts, ProfileBuilder, ProfileOptions};
use runtap_model::View;
use runtap_nettrace::{Item, Observe, Reader};
use runtap_sinks::{Options, speedscope};

use crate::nettrace::{Fields, Stacks, on_one};

/// A stage: bytes of a recording in, a number that depends on all of them out.
pub(crate) type Stage = fn(&[u8]) -> Result<u64>;

/// All of them, by name.
pub(crate) const ALL: [(&str, Stage); 5] =
    [("decode", decode), ("count", count), ("fields", fields), ("stacks", stacks), ("profile", profile)];

/// Hands all items of a whole recording to `take`; gives the number of events that were lost.
pub(crate) fn read(bytes: &[u8], mut take: impl FnMut(&Item<'_>)) -> Result<u64> {
    let mut reader = Reader::new();
    reader.items(bytes).for_each(|item| take(&item))?;
    if !reader.is_complete() {
        bail!("the recording is cut");
    }
    Ok(reader.lost())
}

/// The reader alone.
fn decode(bytes: &[u8]) -> Result<u64> {
    let mut sum = 0_u64;
    read(bytes, |item| {
        if let Item::Event(event) = item {
            sum = sum.wrapping_add(event.timestamp).wrapping_add(event.stack.ips().count() as u64);
        }
    })?;
    Ok(sum)
}

/// `runtap events --count`.
fn count(bytes: &[u8]) -> Result<u64> {
    let mut counts = EventCounts::new();
    read(bytes, |item| {
        if let Item::Event(event) = item {
            counts.add(event);
        }
    })?;
    Ok(counts.total())
}

/// Every field of every event.
fn fields(bytes: &[u8]) -> Result<u64> {
    let parts = on_one(bytes, Fields::default)?;
    Ok(Fields::sum(&parts).1)
}

/// Every stack with its names.
fn stacks(bytes: &[u8]) -> Result<u64> {
    let (events, sums) = Stacks::sum(on_one(bytes, Stacks::default)?)?;
    Ok(sums.into_iter().fold(events, u64::wrapping_add))
}

/// `runtap convert --to speedscope`.
fn profile(bytes: &[u8]) -> Result<u64> {
    let mut builder = ProfileBuilder::new();
    read(bytes, |item| builder.item(item))?;
    let trace = builder.finish(&ProfileOptions::default());
    let mut file = Vec::new();
    speedscope::write(&trace, &mut file, &Options::new(View::ThreadTime))?;
    Ok(file.len() as u64)
}

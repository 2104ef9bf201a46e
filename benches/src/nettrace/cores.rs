//! Reads a recording in memory, on one thread or on several: the library alone, without a file.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Result, bail};
use runtap_nettrace::{Reader, Scan, StreamItem};

/// A visitor of the items of a recording, or of a part of it.
pub(crate) trait Visitor: Send {
    /// Called before the first item: passes a part the state of its reader.
    fn begin(&mut self, _reader: &Reader) {}

    /// Called for each item.
    fn visit(&mut self, item: &StreamItem<'_>);
}

/// Reads a complete recording from start to end.
pub(crate) fn on_one<T: Visitor>(bytes: &[u8], new: impl Fn() -> T) -> Result<Vec<T>> {
    let (mut reader, mut sees) = (Reader::new(), new());
    sees.begin(&reader);
    reader.items(bytes).for_each(|item| sees.visit(&item))?;
    if !reader.is_complete() || reader.lost() > 0 {
        bail!("the recording is not whole");
    }
    Ok(vec![sees])
}

/// Reads a recording in parts; returns the visitors in order of the parts.
pub(super) fn on_all<T: Visitor>(cores: usize, bytes: &[u8], new: impl Fn() -> T + Sync) -> Result<Vec<T>> {
    let parts = Scan::of(bytes, bytes.len() as u64 / (cores as u64 * 8));
    let next = AtomicUsize::new(0);
    let work = || -> Result<Vec<(usize, T)>> {
        let mut seen = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(part) = parts.get(index) else { return Ok(seen) };
            let (mut reader, mut sees) = (part.reader(), new());
            sees.begin(&reader);
            for range in part.feed_ranges() {
                reader.seek(range.start);
                let (start, end) = (usize::try_from(range.start)?, usize::try_from(range.end)?);
                reader.items(bytes.get(start..end).unwrap_or_default()).for_each(|item| sees.visit(&item))?;
            }
            seen.push((index, sees));
        }
    };
    let mut seen = thread::scope(|scope| -> Result<_> {
        let others: Vec<_> = (1..cores).map(|_| scope.spawn(work)).collect();
        let mut seen = work()?;
        for other in others {
            seen.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
        }
        Ok(seen)
    })?;
    seen.sort_by_key(|(index, _)| *index);
    Ok(seen.into_iter().map(|(_, sees)| sees).collect())
}

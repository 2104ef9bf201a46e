//! A recording on disk, read by several threads at once: each takes one part after the other, and what a part gave is
//! put to the whole in the order of the file. Refuses what is not a finished file of several parts; that is read from
//! start to end.
//!
//! Parts are read into small buffers that stay in the processor's cache, not mapped: no page faults, no signal when
//! somebody cuts the file meanwhile, and memory does not grow with the file.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use runtap_nettrace::{Item, Join, Part, Reader, Scan};

use crate::source::budget::Exceeded;

/// Bytes that a thread reads at a time.
const PIECE: usize = 1 << 20;
/// The smallest part that is worth a thread.
const LEAST_PART: u64 = 2 << 20;
/// The largest one: what parts give waits in memory until it is their turn.
const MOST_PART: u64 = 16 << 20;
/// Parts for each thread, so that they end at about the same time.
const PARTS_PER_THREAD: u64 = 8;
/// How many parts for each thread may wait for those before them.
const WAITING_PER_THREAD: usize = 2;

/// What was read of a file.
pub(crate) struct Read {
    /// It has seen all of that.
    pub(crate) reader: Reader,
    /// Where the reading ended before the end of the file, and why.
    pub(crate) too_much: Option<(u64, Exceeded)>,
}

/// Reads a file into `whole`, by so many threads, each part into what `part` makes, as long as `is_too_much` says nothing.
/// `None`, and nothing done, if the file is not worth the trouble.
pub(crate) fn read<T: Join + Send>(
    file: &File,
    threads: usize,
    whole: &mut T,
    part: impl Fn() -> T + Sync,
    is_too_much: impl Fn() -> Option<Exceeded> + Sync,
) -> io::Result<Option<Read>> {
    let length = file.metadata().map_or(0, |meta| if meta.is_file() { meta.len() } else { 0 });
    if threads < 2 || length < 2 * LEAST_PART {
        return Ok(None);
    }
    let size = (length / (threads as u64 * PARTS_PER_THREAD)).clamp(LEAST_PART, MOST_PART);
    let parts = scan(file, length, size)?;
    if parts.len() < 2 {
        return Ok(None);
    }

    let next = AtomicUsize::new(0);
    let line = Line {
        state: Mutex::new(State {
            whole,
            reader: None,
            joined: 0,
            waiting: BTreeMap::new(),
            over: false,
            too_much: None,
        }),
        moved: Condvar::new(),
        longest: threads * WAITING_PER_THREAD,
    };
    let work = || -> io::Result<()> {
        let worker = Worker { line: &line, is_done: Cell::new(false) };
        let mut buffer = vec![0; PIECE];
        while let Some((index, range)) = take(&parts, &next).filter(|(index, _)| line.may_begin(*index)) {
            if let Some(exceeded) = is_too_much() {
                line.stop(exceeded);
                break;
            }
            let mut part = part();
            let reader = read_part(file, range, &mut buffer, |item| part.item(item))?;
            line.put(index, part, reader);
        }
        worker.is_done.set(true);
        Ok(())
    };
    thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut result = work();
        for other in others {
            let joined = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            result = result.and(joined);
        }
        result
    })?;

    let State { whole, mut reader, joined, mut too_much, .. } =
        line.state.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut buffer = vec![0; PIECE];
    let mut end = 0;
    for (index, part) in parts.iter().enumerate() {
        end = part.range().start;
        if index < joined {
            continue;
        }
        // At least one, for a reader that knows the header.
        too_much = too_much.or_else(&is_too_much).filter(|_| index > 0);
        if too_much.is_some() {
            break;
        }
        join(&mut reader, read_part(file, part, &mut buffer, |item| whole.item(item))?);
    }
    Ok(reader.map(|reader| Read { reader, too_much: too_much.map(|exceeded| (end, exceeded)) }))
}

/// Parts on their way to the whole.
struct Line<'a, T> {
    state: Mutex<State<'a, T>>,
    /// A part was joined, or it is over.
    moved: Condvar,
    /// How far ahead of the last one that was joined a part may be begun.
    longest: usize,
}

struct State<'a, T> {
    whole: &'a mut T,
    reader: Option<Reader>,
    /// How many parts are in the whole.
    joined: usize,
    /// Parts that wait for one before them.
    waiting: BTreeMap<usize, (T, Reader)>,
    /// Whether the rest is read from start to end, or not at all.
    over: bool,
    /// Why nothing more is read.
    too_much: Option<Exceeded>,
}

impl<T: Join + Send> Line<'_, T> {
    /// Waits until there is room for a part; `false` if it is not wanted any more.
    fn may_begin(&self, index: usize) -> bool {
        let mut state = self.lock();
        while !state.over && index >= state.joined + self.longest {
            state = self.moved.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        !state.over
    }

    /// Puts a part, and those that have waited for it, to the whole.
    fn put(&self, index: usize, part: T, reader: Reader) {
        let mut state = self.lock();
        state.waiting.insert(index, (part, reader));
        while !state.over {
            let next = state.joined;
            let Some((part, reader)) = state.waiting.remove(&next) else { break };
            if state.whole.join(part) {
                join(&mut state.reader, reader);
                state.joined += 1;
            } else {
                state.over = true;
            }
        }
        drop(state);
        self.moved.notify_all();
    }
}

impl<'a, T> Line<'a, T> {
    /// No further part is begun.
    fn stop(&self, exceeded: Exceeded) {
        let mut state = self.lock();
        state.over = true;
        state.too_much.get_or_insert(exceeded);
        drop(state);
        self.moved.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State<'a, T>> {
        // A thread that panics takes the others down with it when they are joined.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Nobody waits for the part of a thread that has failed.
struct Worker<'a, 'b, T> {
    line: &'a Line<'b, T>,
    is_done: Cell<bool>,
}

impl<T> Drop for Worker<'_, '_, T> {
    fn drop(&mut self) {
        if !self.is_done.get() {
            self.line.lock().over = true;
            self.line.moved.notify_all();
        }
    }
}

fn join(whole: &mut Option<Reader>, next: Reader) {
    match whole {
        None => *whole = Some(next),
        Some(whole) => whole.join(next),
    }
}

/// The next part that nobody has taken.
fn take<'a>(parts: &'a [Part], next: &AtomicUsize) -> Option<(usize, &'a Part)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    Some((index, parts.get(index)?))
}

fn scan(file: &File, length: u64, size: u64) -> io::Result<Vec<Part>> {
    let mut scan = Scan::new(length, size);
    let mut buffer = Vec::new();
    while let Some(range) = scan.next_range() {
        buffer.resize(usize::try_from(range.end - range.start).unwrap_or(usize::MAX), 0);
        let n = read_at(file, &mut buffer, range.start)?;
        scan.handle(buffer.get(..n).unwrap_or_default());
    }
    Ok(scan.finish())
}

fn read_part(
    file: &File,
    part: &Part,
    buffer: &mut [u8],
    mut visit: impl FnMut(&Item<'_>),
) -> io::Result<Reader> {
    let mut reader = part.reader();
    for piece in part.pieces() {
        reader.seek(piece.start);
        let Range { mut start, end } = piece;
        while start < end {
            let left = usize::try_from(end - start).unwrap_or(usize::MAX);
            let most = buffer.len().min(left);
            let n = read_at(file, buffer.get_mut(..most).unwrap_or_default(), start)?;
            if n == 0 {
                break;
            }
            let mut items = reader.items(buffer.get(..n).unwrap_or_default());
            // The reader goes on behind damage, and remembers it.
            while items.for_each(|item| visit(&item)).is_err() {}
            start += n as u64;
        }
    }
    reader.finish();
    let mut rest = reader.items(&[]);
    while rest.for_each(|item| visit(&item)).is_err() {}
    drop(rest);
    Ok(reader)
}

/// Fills the buffer from an offset on, as far as the file goes.
fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    #[cfg(unix)]
    let read_once = std::os::unix::fs::FileExt::read_at;
    #[cfg(windows)]
    let read_once = std::os::windows::fs::FileExt::seek_read;
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match read_once(file, rest, offset + filled as u64) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use runtap_nettrace::{EventToWrite, Metadata, Observe, TraceHeader, Writer};

    use super::*;

    /// The times of all events.
    #[derive(Debug, Default)]
    struct Seen {
        times: Vec<u64>,
        joined: usize,
        /// After so many parts none is taken any more.
        most: usize,
    }

    impl Observe for Seen {
        fn item(&mut self, item: &Item<'_>) {
            if let Item::Event(event) = item {
                self.times.push(event.timestamp);
            }
        }
    }

    impl Join for Seen {
        fn join(&mut self, next: Self) -> bool {
            let takes = self.joined < self.most;
            if takes {
                self.joined += 1;
                self.times.extend(next.times);
            }
            takes
        }
    }

    /// A file of several parts, with so many events.
    fn recording() -> (File, u64) {
        let mut writer = Writer::new(&TraceHeader::new(0, 0, 1_000_000_000));
        let metadata_id = writer.define_event(&Metadata::new("Made-Up", 1, "")).unwrap();
        let mut file = tempfile::tempfile().unwrap();
        let events = 12_000;
        for timestamp in 0..events {
            let payload = &[7; 1000];
            let event =
                EventToWrite { metadata_id, timestamp, payload, thread_id: 1, ..EventToWrite::default() };
            writer.event(&event).unwrap();
            file.write_all(&writer.take_output()).unwrap();
        }
        file.write_all(&writer.finish()).unwrap();
        (file, events)
    }

    #[test]
    fn parts_come_in_the_order_of_the_file_and_what_is_refused_is_read_again() {
        let (file, events) = recording();
        for most in [usize::MAX, 0, 1, 3] {
            let made = AtomicUsize::new(0);
            let mut whole = Seen { most, ..Seen::default() };
            let part = || {
                made.fetch_add(1, Ordering::Relaxed);
                Seen::default()
            };
            let Read { reader, .. } = read(&file, 2, &mut whole, part, || None).unwrap().unwrap();
            assert!(reader.is_complete() && reader.lost() == 0);
            assert_eq!(whole.times, (0..events).collect::<Vec<_>>());
            assert_eq!(whole.joined, made.load(Ordering::Relaxed).min(most));
            assert!(whole.joined > 3 || whole.joined == most);
        }
    }

    #[test]
    fn reading_ends_where_it_takes_too_much() {
        let (file, events) = recording();
        let mut whole = Seen { most: usize::MAX, ..Seen::default() };
        let asked = AtomicUsize::new(0);
        let is_too_much = || (asked.fetch_add(1, Ordering::Relaxed) >= 3).then_some(Exceeded { most: 1 });
        let read = read(&file, 2, &mut whole, Seen::default, is_too_much).unwrap().unwrap();
        let (offset, _) = read.too_much.unwrap();
        let seen = whole.times.len() as u64;
        assert!(seen > 0 && seen < events, "{seen} of {events}");
        assert_eq!(whole.times, (0..seen).collect::<Vec<_>>(), "the beginning of the file");
        assert!(offset > 0 && offset < file.metadata().unwrap().len());
    }

    #[test]
    fn a_thread_that_fails_takes_the_others_down() {
        let (file, _) = recording();
        let made = AtomicUsize::new(0);
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut whole = Seen { most: usize::MAX, ..Seen::default() };
            let part = || {
                assert_ne!(
                    made.fetch_add(1, Ordering::Relaxed),
                    0,
                    "the first part is never put to the whole"
                );
                Seen::default()
            };
            read(&file, 2, &mut whole, part, || None).map(drop)
        }));
        assert!(result.is_err());
    }
}

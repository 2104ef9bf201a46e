//! A recording on disk, read by several threads at once: each takes one part after the other. Refuses what is not a
//! finished file of several parts; that is read from start to end.
//!
//! Parts are read into small buffers that stay in the processor's cache, not mapped: no page faults, no signal when
//! somebody cuts the file meanwhile, and memory does not grow with the file.

use std::fs::File;
use std::io;
use std::num::NonZero;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use runtap_nettrace::{Item, Part, Reader, Scan};

/// Bytes that a thread reads at a time.
const PIECE: usize = 1 << 20;
/// The smallest part that is worth a thread.
const LEAST_PART: u64 = 2 << 20;
/// Parts for each thread, so that they end at about the same time.
const PARTS_PER_THREAD: u64 = 8;

/// Lets `visit` see all items of a file. Each part has a state of its own, which `new` makes; they come back in the
/// order of the file, with a reader that has seen all of it. `None` if the file is not worth the trouble.
pub(crate) fn read<T: Send>(
    file: &File,
    new: impl Fn() -> T + Sync,
    visit: impl Fn(&mut T, &Item<'_>) + Sync,
) -> io::Result<Option<(Vec<T>, Reader)>> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let length = file.metadata().map_or(0, |meta| if meta.is_file() { meta.len() } else { 0 });
    if threads < 2 || length < 2 * LEAST_PART {
        return Ok(None);
    }
    let size = (length / (threads as u64 * PARTS_PER_THREAD)).max(LEAST_PART);
    let parts = scan(file, length, size)?;
    if parts.len() < 2 {
        return Ok(None);
    }

    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    let work = || -> io::Result<()> {
        let mut buffer = vec![0; PIECE];
        while let Some((index, part)) = take(&parts, &next) {
            let mut state = new();
            let reader = read_part(file, part, &mut buffer, |item| visit(&mut state, item))?;
            done.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((index, state, reader));
        }
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

    let mut done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    done.sort_by_key(|(index, ..)| *index);
    let mut states = Vec::new();
    let mut whole: Option<Reader> = None;
    for (_, state, reader) in done {
        states.push(state);
        match &mut whole {
            None => whole = Some(reader),
            Some(whole) => whole.join(reader),
        }
    }
    Ok(whole.map(|whole| (states, whole)))
}

/// The next part that nobody has taken.
fn take<'a>(parts: &'a [Part], next: &AtomicUsize) -> Option<(usize, &'a Part)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    Some((index, parts.get(index)?))
}

fn scan(file: &File, length: u64, size: u64) -> io::Result<Vec<Part>> {
    let mut scan = Scan::new(length, size);
    let mut buffer = Vec::new();
    while let Some(range) = scan.wants() {
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
        reader.go_to(piece.start);
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

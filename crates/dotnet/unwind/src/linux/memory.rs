//! Reading this process's own memory without trusting an address, and the processor time of its threads: system calls
//! for which the libraries in use have no safe wrapper.
//!
//! Memory is read by `process_vm_readv`. Where this call is forbidden (by Docker on kernels before 4.8) or missing (in
//! qemu-user), memory is read from `/proc/self/mem`, which [`choose_way`] opens.
//! Source: `process_vm_readv(2)`, `proc(5)`.

#![expect(unsafe_code, reason = "system calls on raw addresses and on clocks that libc does not name")]

use std::fs::File;
use std::io;
use std::os::fd::IntoRawFd;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

/// The page size at which a copy is split. Larger page sizes are multiples of it.
const PAGE: usize = 4096;
/// The most pieces of one call.
const PIECES: usize = 32;

/// The descriptor of `/proc/self/mem`, if needed. Never closed, because a handler may use it at any time.
static FILE: AtomicI32 = AtomicI32::new(NONE);
const NONE: libc::c_int = -1;

/// Determines how memory can be read. Must not be called by two threads at once.
///
/// # Errors
/// If memory cannot be read at all: the error of the system call.
pub(super) fn choose_way() -> io::Result<()> {
    if reads(Way::Call) || reads(Way::of_now()) {
        return Ok(());
    }
    let why = io::Error::last_os_error();
    let Ok(file) = File::open("/proc/self/mem") else { return Err(why) };
    let descriptor = file.into_raw_fd();
    if !reads(Way::File(descriptor)) {
        return Err(why);
    }
    // A descriptor from before a fork refers to the memory of the parent process.
    FILE.store(descriptor, Ordering::Relaxed);
    Ok(())
}

#[derive(Debug, Clone, Copy)]
enum Way {
    Call,
    File(libc::c_int),
}

impl Way {
    fn of_now() -> Self {
        match FILE.load(Ordering::Relaxed) {
            NONE => Self::Call,
            descriptor => Self::File(descriptor),
        }
    }
}

/// Returns whether this way reads memory, and the memory is that of this process.
fn reads(way: Way) -> bool {
    // The parent of a fork may have its own value at this address.
    let value = std::process::id().to_ne_bytes();
    let mut copy = [0; 4];
    copy_by(way, value.as_ptr() as u64, copy.as_mut_ptr(), copy.len()) == copy.len() && copy == value
}

/// Copies memory from `address` to `to` and returns the number of bytes that could be read: fewer at the end of a
/// mapping, 0 at an invalid address. Usable in a signal handler: no allocation, no lock.
pub(super) fn copy_words(address: u64, to: &[AtomicU64]) -> usize {
    copy(address, to.as_ptr().cast_mut().cast(), size_of_val(to))
}

/// Like [`copy_words`], for bytes.
pub(super) fn copy_bytes(address: u64, to: &mut [u8]) -> usize {
    copy(address, to.as_mut_ptr(), to.len())
}

/// Copies memory. `to` must be writable for `length` bytes: both callers pass a slice.
fn copy(address: u64, to: *mut u8, length: usize) -> usize {
    copy_by(Way::of_now(), address, to, length)
}

/// Copies memory in one of two ways. The requirement for `to` is that of [`copy`].
fn copy_by(way: Way, address: u64, to: *mut u8, length: usize) -> usize {
    match way {
        Way::Call => copy_by_call(address, to, length),
        Way::File(descriptor) => copy_from_file(descriptor, address, to, length),
    }
}

/// Copies memory from `/proc/self/mem`. The requirement for `to` is that of [`copy`].
fn copy_from_file(descriptor: libc::c_int, address: u64, to: *mut u8, length: usize) -> usize {
    let Ok(from) = libc::off_t::try_from(address) else { return 0 };
    let mut done = 0;
    while done < length {
        let Some(at) = libc::off_t::try_from(done).ok().and_then(|done| from.checked_add(done)) else {
            break;
        };
        // SAFETY: the kernel writes at most `length - done` bytes after `done`, which are in the caller's slice; `address`
        // is only a file offset for it.
        let read = unsafe { libc::pread(descriptor, to.wrapping_add(done).cast(), length - done, at) };
        match usize::try_from(read) {
            Ok(read @ 1..) => done += read,
            _ => break,
        }
    }
    done
}

/// Copies memory with `process_vm_readv`. The requirement for `to` is that of [`copy`].
fn copy_by_call(address: u64, to: *mut u8, length: usize) -> usize {
    let Ok(from) = usize::try_from(address) else { return 0 };
    let mut done = 0;
    while done < length {
        // A call stops at the first piece that cannot be read completely, so each piece ends at a page boundary.
        let mut pieces = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; PIECES];
        let mut wanted = 0;
        let mut used = 0;
        for piece in &mut pieces {
            let Some(at) = from.checked_add(done + wanted) else { break };
            let size = (PAGE - at % PAGE).min(length - done - wanted);
            if size == 0 {
                break;
            }
            *piece = libc::iovec { iov_base: at as *mut libc::c_void, iov_len: size };
            wanted += size;
            used += 1;
        }
        if wanted == 0 {
            break;
        }
        let local = libc::iovec { iov_base: to.wrapping_add(done).cast(), iov_len: wanted };
        // SAFETY: the kernel writes at most `wanted` bytes to `local`, which are in the caller's slice because
        // `done + wanted <= length`; it checks the addresses in `pieces` itself. getpid cannot fail.
        let read =
            unsafe { libc::process_vm_readv(libc::getpid(), &raw const local, 1, pieces.as_ptr(), used, 0) };
        let Ok(read) = usize::try_from(read) else { break };
        done += read;
        if read < wanted {
            break;
        }
    }
    done
}

/// Returns the processor time of a thread of this process in nanoseconds. `None` if the thread does not exist.
pub(super) fn processor_time(thread: libc::pid_t) -> Option<u64> {
    /// The clock of a single thread, as counted by the scheduler.
    const THREAD_CLOCK: libc::clockid_t = 4 | 2;
    let clock = (!thread << 3) | THREAD_CLOCK;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec to a valid timespec, and rejects an invalid clock.
    let failed = unsafe { libc::clock_gettime(clock, &raw mut time) } != 0;
    let seconds = u64::try_from(time.tv_sec).ok()?;
    let nanoseconds = u64::try_from(time.tv_nsec).ok()?;
    (!failed).then(|| seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds))
}

/// Returns the id of the calling thread.
pub(super) fn current_thread() -> libc::pid_t {
    // SAFETY: gettid has no arguments and cannot fail.
    unsafe { libc::gettid() }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn memory_is_read_to_the_end_of_its_mapping() {
        let bytes: Vec<u8> = (0..=255).cycle().take(200_000).collect();
        let file = File::open("/proc/self/mem").unwrap();
        for way in [Way::Call, Way::File(file.as_raw_fd())] {
            let mut copy = vec![0; bytes.len()];
            let mut read = |address, length| copy_by(way, address, copy.as_mut_ptr(), length);
            assert_eq!(read(bytes.as_ptr() as u64, bytes.len()), bytes.len());
            assert_eq!(read(16, 8), 0, "{way:?}");
            assert_eq!(read(u64::MAX - 3, 8), 0, "{way:?}");
            assert_eq!(copy, bytes, "{way:?}");
            assert!(reads(way), "{way:?}");
        }
    }

    #[test]
    fn reading_stops_at_a_hole() {
        let file = File::open("/proc/self/mem").unwrap();
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let range = |line: &str| -> Option<(u64, u64)> {
            let (start, end) = line.split(' ').next()?.split_once('-')?;
            Some((u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?))
        };
        let readable = |line: &&str| line.split(' ').nth(1).is_some_and(|rights| rights.starts_with('r'));
        // A mapping of this program's own file that is followed by a hole, and that is not modified.
        let ranges: Vec<(u64, u64)> = maps.lines().filter_map(range).collect();
        let ends = |end: u64| ranges.iter().all(|(start, _)| *start != end);
        let (_, end) = maps
            .lines()
            .filter(readable)
            .filter_map(range)
            .find(|(_, end)| ends(*end))
            .expect("a mapping that is followed by a hole");
        for way in [Way::Call, Way::File(file.as_raw_fd())] {
            let mut copy = [0; 64];
            assert_eq!(copy_by(way, end - 24, copy.as_mut_ptr(), copy.len()), 24, "{way:?}");
        }
    }

    #[test]
    fn a_missing_thread_has_no_clock() {
        assert!(processor_time(current_thread()).is_some());
        // Above the kernel's greatest thread id.
        assert_eq!(processor_time(5_000_000), None);
    }
}

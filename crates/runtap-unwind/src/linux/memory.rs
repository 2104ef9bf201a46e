//! Reading this process's own memory without trusting an address, and the processor time of its threads: system calls
//! that the libraries in use have no safe form of. Half of the unsafe code of this crate; `signal` is the other.

#![expect(unsafe_code, reason = "system calls on raw addresses and on clocks that libc does not name")]

use std::sync::atomic::AtomicU64;

/// The page size that a copy is split by. Larger ones are multiples of it.
const PAGE: usize = 4096;
/// Pieces for one call.
const PIECES: usize = 32;

/// Copies memory from `address` on to `to` and returns the number of bytes that could be read: less at the end of a
/// mapping, none at a wrong address. Usable in a signal handler: no allocation, no lock.
pub(super) fn copy_words(address: u64, to: &[AtomicU64]) -> usize {
    copy(address, to.as_ptr().cast_mut().cast(), size_of_val(to))
}

/// As [`copy_words`].
pub(super) fn copy_bytes(address: u64, to: &mut [u8]) -> usize {
    copy(address, to.as_mut_ptr(), to.len())
}

/// `to` must be writable for `length` bytes: the two callers have it from a slice.
fn copy(address: u64, to: *mut u8, length: usize) -> usize {
    let Ok(from) = usize::try_from(address) else { return 0 };
    let mut done = 0;
    while done < length {
        // A call stops at the first piece that can't be read whole: so each ends with a page.
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
        // SAFETY: the kernel writes at most `wanted` bytes to `local`, which lie in the caller's slice as
        // `done + wanted <= length`; it checks the addresses in `pieces` itself. Getpid can't fail.
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

/// Nanoseconds of processor time that a thread of this process has used; `None` if there is no such thread.
pub(super) fn processor_time(thread: libc::pid_t) -> Option<u64> {
    /// Of one thread, as the scheduler counts it.
    const THREAD_CLOCK: libc::clockid_t = 4 | 2;
    let clock = (!thread << 3) | THREAD_CLOCK;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec to a place for one, and refuses a wrong clock.
    let failed = unsafe { libc::clock_gettime(clock, &raw mut time) } != 0;
    let seconds = u64::try_from(time.tv_sec).ok()?;
    let nanoseconds = u64::try_from(time.tv_nsec).ok()?;
    (!failed).then(|| seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds))
}

/// The calling thread.
pub(super) fn current_thread() -> libc::pid_t {
    // SAFETY: it has no arguments and can't fail.
    unsafe { libc::gettid() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_to_the_end_of_its_mapping() {
        let bytes: Vec<u8> = (0..=255).cycle().take(200_000).collect();
        let mut copy = vec![0; bytes.len()];
        assert_eq!(copy_bytes(bytes.as_ptr() as u64, &mut copy), bytes.len());
        assert_eq!(copy, bytes);
        assert_eq!(copy_bytes(16, &mut copy), 0);
        assert_eq!(copy_bytes(u64::MAX - 3, &mut copy), 0);
    }

    #[test]
    fn a_thread_that_is_not_there_has_no_clock() {
        assert!(processor_time(current_thread()).is_some());
        // Beyond the kernel's largest number.
        assert_eq!(processor_time(5_000_000), None);
    }
}

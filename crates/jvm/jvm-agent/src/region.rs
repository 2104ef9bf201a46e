//! Memory that Java code and native threads share: mapped, zero, and given by its address.
//!
//! Owns: [`Region`], whose words are read and written as atomics. Pages that nobody touches cost nothing.

#![expect(unsafe_code, reason = "memory whose address the probes know can't be a value of Rust")]

use std::io;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU8, AtomicU64};

/// Mapped memory, unmapped when it is dropped.
#[derive(Debug)]
pub(crate) struct Region {
    base: NonNull<u8>,
    length: usize,
}

// SAFETY: it is only accessed as atomics.
unsafe impl Send for Region {}
// SAFETY: the same.
unsafe impl Sync for Region {}

impl Region {
    /// So many bytes of zero.
    pub(crate) fn new(length: usize) -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: new memory at a place that the system chooses.
        let base = unsafe { libc::mmap(ptr::null_mut(), length, protection, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast()).ok_or_else(io::Error::last_os_error)?;
        Ok(Self { base, length })
    }

    /// Where it begins.
    pub(crate) fn address(&self) -> u64 {
        self.base.as_ptr() as u64
    }

    /// The word at an offset, which is a multiple of eight.
    ///
    /// # Panics
    /// Beyond the end.
    #[inline]
    pub(crate) fn word(&self, offset: usize) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8) && offset + 8 <= self.length, "{offset} of {}", self.length);
        // SAFETY: inside of the mapping, aligned, and all that access it use single loads and stores of words.
        unsafe { AtomicU64::from_ptr(self.base.as_ptr().add(offset).cast()) }
    }

    /// The byte at an offset.
    ///
    /// # Panics
    /// Beyond the end.
    #[inline]
    pub(crate) fn byte(&self, offset: usize) -> &AtomicU8 {
        assert!(offset < self.length, "{offset} of {}", self.length);
        // SAFETY: inside of the mapping, and all that access it use single loads and stores of bytes.
        unsafe { AtomicU8::from_ptr(self.base.as_ptr().add(offset)) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and whoever drops it has made sure that no probe knows the address any more.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.length) };
    }
}

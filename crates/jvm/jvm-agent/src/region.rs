//! Memory shared by Java code and native threads: mapped, zeroed, and accessed by its address.
//!
//! Owns: [`Region`], whose words are read and written as atomics. Untouched pages cost nothing.

#![expect(unsafe_code, reason = "memory whose address the probes know can't be a value of Rust")]

use std::io;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU8, AtomicU64};

/// Mapped memory that is unmapped when dropped.
#[derive(Debug)]
pub(crate) struct Region {
    base: NonNull<u8>,
    length: usize,
}

// SAFETY: the memory is only accessed as atomics.
unsafe impl Send for Region {}
// SAFETY: the memory is only accessed as atomics.
unsafe impl Sync for Region {}

impl Region {
    /// Maps `length` bytes of zero.
    pub(crate) fn new(length: usize) -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: new memory at an address that the system chooses.
        let base = unsafe { libc::mmap(ptr::null_mut(), length, protection, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast()).ok_or_else(io::Error::last_os_error)?;
        Ok(Self { base, length })
    }

    /// Returns the start address.
    pub(crate) fn address(&self) -> u64 {
        self.base.as_ptr() as u64
    }

    /// Returns the word at an offset, which must be a multiple of eight.
    ///
    /// # Panics
    /// If the offset is beyond the end.
    #[inline]
    pub(crate) fn word(&self, offset: usize) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8) && offset + 8 <= self.length, "{offset} of {}", self.length);
        // SAFETY: inside the mapping, aligned, and accessed only by single loads and stores of words.
        unsafe { AtomicU64::from_ptr(self.base.as_ptr().add(offset).cast()) }
    }

    /// Returns the byte at an offset.
    ///
    /// # Panics
    /// If the offset is beyond the end.
    #[inline]
    pub(crate) fn byte(&self, offset: usize) -> &AtomicU8 {
        assert!(offset < self.length, "{offset} of {}", self.length);
        // SAFETY: inside the mapping, and accessed only by single loads and stores of bytes.
        unsafe { AtomicU8::from_ptr(self.base.as_ptr().add(offset)) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: this value owns the mapping, and its owner drops it only when no probe uses the address any more.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.length) };
    }
}

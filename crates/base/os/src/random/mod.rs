//! Unpredictable random numbers from the operating system.

#[cfg(all(unix, any(not(target_os = "linux"), test)))]
mod bsd;
#[cfg(target_os = "linux")]
mod linux;

use std::hash::{BuildHasher as _, RandomState};
use std::io;

#[cfg(all(unix, not(target_os = "linux")))]
use self::bsd::fill;
#[cfg(target_os = "linux")]
use self::linux::fill;
#[cfg(windows)]
use crate::windows::random::fill;

/// Fills `bytes` with unpredictable random bytes.
///
/// # Errors
/// If the operating system provides none.
pub fn random(bytes: &mut [u8]) -> io::Result<()> {
    fill(bytes)
}

/// Returns a random number, for names that other users must not guess.
pub fn random_u64() -> u64 {
    let mut bytes = [0; 8];
    match fill(&mut bytes) {
        Ok(()) => u64::from_ne_bytes(bytes),
        // The keys of this hasher are random too.
        Err(_) => RandomState::new().hash_one(std::process::id()),
    }
}

//! Random numbers from the operating system.

use std::io;
use std::ptr;

use windows_sys::Win32::Security::Cryptography::{BCRYPT_USE_SYSTEM_PREFERRED_RNG, BCryptGenRandom};

/// Fills `bytes` with unpredictable random bytes.
///
/// # Errors
/// If the operating system provides none.
#[expect(unsafe_code, reason = "a call of the system, which fills a buffer")]
pub(crate) fn fill(bytes: &mut [u8]) -> io::Result<()> {
    let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
    // SAFETY: the buffer has `length` bytes.
    let status = unsafe {
        BCryptGenRandom(ptr::null_mut(), bytes.as_mut_ptr(), length, BCRYPT_USE_SYSTEM_PREFERRED_RNG)
    };
    if status < 0 { Err(io::Error::other(format!("no random numbers: status {status:#x}"))) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_numbers_differ() {
        let [mut a, mut b] = [[0; 32]; 2];
        fill(&mut a).unwrap();
        fill(&mut b).unwrap();
        assert!(a != b && a != [0; 32]);
    }
}

//! Random numbers of the system. Refuses to make its own.

use std::io;
use std::ptr;

use windows_sys::Win32::Security::Cryptography::{BCRYPT_USE_SYSTEM_PREFERRED_RNG, BCryptGenRandom};

/// Fills a buffer with what nobody can foresee.
///
/// # Errors
/// The system has none.
#[expect(unsafe_code, reason = "a call of the system, which fills a buffer")]
pub(crate) fn fill(bytes: &mut [u8]) -> io::Result<()> {
    let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
    // SAFETY: there is room for `length` bytes, and that is said.
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

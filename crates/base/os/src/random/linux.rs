//! Random bytes from the kernel, which need no file. Source: `getrandom(2)`.

use std::io;

use rustix::rand::{GetRandomFlags, getrandom};

/// Fills `bytes` with unpredictable random bytes.
///
/// # Errors
/// If the kernel provides none.
pub(super) fn fill(bytes: &mut [u8]) -> io::Result<()> {
    let mut filled = 0;
    while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        filled += getrandom(rest, GetRandomFlags::empty())?;
    }
    Ok(())
}

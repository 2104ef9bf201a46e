//! Random bytes from a device (macOS). The code is portable, so it is also compiled and tested on Linux. Source:
//! macOS's `random(4)`.

use std::fs::File;
use std::io::{self, Read as _};

/// Fills `bytes` with unpredictable random bytes.
///
/// # Errors
/// If the device cannot be read.
pub(super) fn fill(bytes: &mut [u8]) -> io::Result<()> {
    File::open("/dev/urandom")?.read_exact(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bytes_are_filled_each_time() {
        let made = || {
            let mut bytes = [0; 64];
            fill(&mut bytes).unwrap();
            bytes
        };
        let (a, b) = (made(), made());
        assert_ne!(a, b);
        assert!(a[32..].iter().any(|byte| *byte != 0));
    }
}

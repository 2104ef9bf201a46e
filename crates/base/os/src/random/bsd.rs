//! Bytes that nobody can foresee, where the kernel gives them by a device (macOS). Nothing in it is foreign to Linux, so it is
//! compiled and tested there too. Source: macOS's `random(4)`.

use std::fs::File;
use std::io::{self, Read as _};

/// Fills `bytes`.
///
/// # Errors
/// The system has none.
pub(super) fn fill(bytes: &mut [u8]) -> io::Result<()> {
    File::open("/dev/urandom")?.read_exact(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bytes_are_filled_anew() {
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

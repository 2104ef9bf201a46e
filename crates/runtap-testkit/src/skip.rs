//! Tests that can't run here say so and pass.

use std::fmt;

/// Why a test can't run on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a test that is skipped has to say so: report() it, or use require!"]
pub struct Skip {
    why: String,
}

impl Skip {
    /// Something is missing.
    pub fn because(why: impl Into<String>) -> Self {
        Self { why: why.into() }
    }

    /// Prints `skipped: …`.
    #[allow(clippy::print_stderr, reason = "the one line by which a skipped test is known")]
    pub fn report(&self) {
        eprintln!("{self}");
    }
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "skipped: {}", self.why)
    }
}

/// The value of a `Result<T, Skip>`, or the end of the test, which says why.
///
/// ```
/// # use runtap_testkit::{RealRuntime, require};
/// # fn test() {
/// let runtime = require!(RealRuntime::available(10));
/// # let _ = runtime;
/// # }
/// ```
#[macro_export]
macro_rules! require {
    ($available:expr) => {
        match $available {
            Ok(value) => value,
            Err(skip) => {
                $crate::Skip::report(&skip);
                return;
            }
        }
    };
}

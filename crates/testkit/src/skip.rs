//! Tests that can't run here say so and pass; whoever runs all of them can have them counted.

use std::fmt;
use std::fs::OpenOptions;
use std::io::Write as _;

/// The variable with the file that every skipped test adds a line to: its name, a tab, and why. `cargo xtask test` sets it.
pub const SKIPS: &str = "RUNTAP_SKIPS";

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

    /// Prints `skipped: …`, and has it counted.
    ///
    /// # Panics
    /// If the file of [`SKIPS`] can't be written.
    #[allow(clippy::print_stderr, reason = "the one line by which a skipped test is known")]
    pub fn report(&self) {
        eprintln!("{self}");
        if let Some(path) = std::env::var_os(SKIPS) {
            let thread = std::thread::current();
            // In one write: other tests add lines at the same time.
            let line = format!("{}\t{}\n", thread.name().unwrap_or("?"), self.why);
            let file = OpenOptions::new().create(true).append(true).open(path);
            file.and_then(|mut file| file.write_all(line.as_bytes())).expect("skipped tests can be counted");
        }
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

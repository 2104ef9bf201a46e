//! Skipping of tests that cannot run: they report the reason and pass, and can be counted.

use std::fmt;
use std::fs::OpenOptions;
use std::io::Write as _;

/// The environment variable with the file to which skipped tests append a line: name, tab, reason. Set by `cargo xtask
/// test`.
pub const SKIPS: &str = "RUNTAP_SKIPS";

/// The reason why a test cannot run on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a test that is skipped has to say so: report() it, or use require!"]
pub struct Skip {
    why: String,
}

impl Skip {
    /// Creates a value with a reason.
    pub fn because(why: impl Into<String>) -> Self {
        Self { why: why.into() }
    }

    /// Prints `skipped: …` and appends to the file of [`SKIPS`].
    ///
    /// # Panics
    /// If the file of [`SKIPS`] cannot be written.
    #[allow(clippy::print_stderr, reason = "the one line by which a skipped test is known")]
    pub fn report(&self) {
        eprintln!("{self}");
        if let Some(path) = std::env::var_os(SKIPS) {
            let thread = std::thread::current();
            // A single write, because other tests append at the same time.
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

/// Returns the value of a `Result<T, Skip>`, or reports the reason and returns from the test.
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

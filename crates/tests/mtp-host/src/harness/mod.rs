//! A harness for Rust tests (`harness = false`) with two modes. Under `cargo test` and cargo-nextest, a test binary
//! behaves like a libtest binary. When started by a server of Microsoft.Testing.Platform (`dotnet test`, `runtap test`
//! or another runner of the protocol), it is a test application.
//!
//! ```no_run
//! // Cargo.toml:  [[test]]  name = "shop"  harness = false
//! fn adds() {
//!     assert_eq!(1 + 1, 2);
//! }
//!
//! fn parses() -> Result<(), std::num::ParseIntError> {
//!     "7".parse::<u8>().map(drop)
//! }
//!
//! fn sleeps() {
//!     std::thread::sleep(std::time::Duration::from_secs(60));
//! }
//!
//! runtap_mtp_host::main!(adds, parses, #[ignore = "takes a minute"] sleeps);
//! ```
//!
//! Tests that are generated at run time (for example one for each file of a directory) are [added](Tests::add) to
//! [`Tests`], whose [`main`](Tests::main) implements the `main` of the binary.
//!
//! | started with | behaves as |
//! |---|---|
//! | any other arguments | a libtest binary, by libtest-mimic: `--list`, `--format terse\|pretty\|json`, `--exact`, `--skip`, `--ignored`, `--include-ignored`, `--test-threads`, a filter; exit code 101 if a test fails |
//! | `--server dotnettestcli` | a test application, by runtap-mtp-host: `--list-tests`, `--filter-uid`, `--help` …, and `--filter`, `--skip`, `--exact`, `--ignored`, `--include-ignored`, `--test-threads` of the harness; exit codes of the platform |
//!
//! The printed output of a test is not captured, because stable Rust does not support it. Lines passed to
//! [`Context::say`] are part of the test's result.

mod application;
mod cargo;
mod test;

use std::env;
use std::process::ExitCode;

pub use crate::{Artifact, Failure, Outcome};
pub use test::{Context, Test};

use crate::Launch;

/// The tests of a binary.
#[derive(Debug, Default)]
pub struct Tests {
    tests: Vec<Test>,
}

impl Tests {
    /// Creates an empty list of tests.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a test. Names must be unique, because filters select tests by name.
    #[must_use]
    pub fn with(mut self, test: Test) -> Self {
        self.add(test);
        self
    }

    /// Adds a test.
    pub fn add(&mut self, test: Test) {
        self.tests.push(test);
    }

    /// Implements the `main` of the binary in the mode in which it was started.
    pub fn main(self) -> ExitCode {
        let arguments = || env::args_os().skip(1);
        match Launch::parse(arguments(), &application::options()) {
            Ok(None) => cargo::run(self.tests),
            Ok(Some(launch)) => application::run(self.tests, &launch),
            Err(error) => application::reject(&error),
        }
    }
}

impl Extend<Test> for Tests {
    fn extend<T: IntoIterator<Item = Test>>(&mut self, tests: T) {
        self.tests.extend(tests);
    }
}

impl FromIterator<Test> for Tests {
    fn from_iter<T: IntoIterator<Item = Test>>(tests: T) -> Self {
        Self { tests: tests.into_iter().collect() }
    }
}

/// Defines the `main` of a binary whose tests are the given functions, named by their paths. `#[ignore]` and `#[ignore
/// = "why"]` have the same meaning as for libtest.
///
/// Each function returns `()`, a `Result` whose error implements `Display`, or an [`Outcome`].
#[macro_export]
macro_rules! main {
    ($($(#[ignore $(= $why:literal)?])? $test:path),+ $(,)?) => {
        fn main() -> ::std::process::ExitCode {
            $crate::tests!($($(#[ignore $(= $why)?])? $test),+).main()
        }
    };
}

/// Like [`main!`], but returns [`Tests`], to which more tests can be added, instead of defining a function.
#[macro_export]
macro_rules! tests {
    ($($(#[ignore $(= $why:literal)?])? $test:path),+ $(,)?) => {
        $crate::harness::Tests::from_iter([
            $($crate::tests!(@ $(#[ignore $(= $why)?])? $test)),+
        ])
    };
    (@ #[ignore = $why:literal] $test:path) => {
        $crate::tests!(@ $test).ignored($why)
    };
    (@ #[ignore] $test:path) => {
        $crate::tests!(@ $test).ignored("")
    };
    (@ $test:path) => {
        $crate::harness::Test::new(::core::stringify!($test), |_| $test())
    };
}

//! A harness for Rust tests (`harness = false`) with two sides: under `cargo test` and cargo-nextest a test binary behaves as
//! any other one does, and when Microsoft.Testing.Platform's server starts it, it is a test application: of the real
//! `dotnet test`, of `runtap test`, of whatever else speaks the pipe.
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
//! Tests that are made at run time (one for each file of a directory) are [added](Tests::add) to [`Tests`], whose
//! [`main`](Tests::main) is that of the binary.
//!
//! | started with | is |
//! |---|---|
//! | anything else | libtest, by libtest-mimic: `--list`, `--format terse\|pretty\|json`, `--exact`, `--skip`, `--ignored`, `--include-ignored`, `--test-threads`, a filter; exit code 101 if a test fails |
//! | `--server dotnettestcli` | a test application, by runtap-mtp-host: `--list-tests`, `--filter-uid`, `--help` …, and `--filter`, `--skip`, `--exact`, `--ignored`, `--include-ignored`, `--test-threads` of the harness; exit codes of the platform |
//!
//! What a test prints is not caught: no stable Rust can. What it [says](Context::say) is in its result.

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
    /// None.
    pub fn new() -> Self {
        Self::default()
    }

    /// One more. Names have to differ: filters know tests by them.
    #[must_use]
    pub fn with(mut self, test: Test) -> Self {
        self.add(test);
        self
    }

    /// One more.
    pub fn add(&mut self, test: Test) {
        self.tests.push(test);
    }

    /// The `main` of the binary: whoever has started it gets what he expects.
    pub fn main(self) -> ExitCode {
        let arguments = || env::args_os().skip(1);
        match Launch::parse(arguments(), &application::options()) {
            Ok(None) => cargo::run(self.tests),
            Ok(Some(launch)) => application::run(self.tests, &launch),
            Err(error) => application::refuse(&error),
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

/// The `main` of a binary whose tests are these functions, named by their paths. `#[ignore]` and `#[ignore = "why"]` mean
/// what they mean to libtest.
///
/// A function returns nothing, a `Result` whose error can be displayed, or an [`Outcome`].
#[macro_export]
macro_rules! main {
    ($($(#[ignore $(= $why:literal)?])? $test:path),+ $(,)?) => {
        fn main() -> ::std::process::ExitCode {
            $crate::tests!($($(#[ignore $(= $why)?])? $test),+).main()
        }
    };
}

/// As [`main!`], without the function: [`Tests`] to which more can be added.
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

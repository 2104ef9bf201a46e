//! A complete test application: run it with `runtap test target/debug/examples/application`, or with
//! `dotnet test --test-modules application` from a directory whose `global.json` chooses Microsoft.Testing.Platform.

use std::process::ExitCode;

use runtap_mtp_host::{Application, Failure, Outcome, TestNode};

/// The `main` of the program.
pub fn main() -> ExitCode {
    Application::new().main(|tests, _| {
        tests.test("text::has_length", || assert_eq!("1".len(), 1))?;
        tests.test("math::parses", || "7".parse::<u8>().map(drop))?;
        tests.test("math::overflows", || assert_eq!(200_u8.wrapping_add(100), 255, "it wraps"))?;
        tests.test("math::parses_words", || "seven".parse::<u8>().map(drop))?;
        let compared = TestNode::from_rust_path("text::compares").display_name("text is compared");
        tests.test(compared, || {
            Outcome::Failed(Failure::new("texts differ").expected("apple").actual("pear"))
        })?;
        tests.skip("math::divides", "not implemented yet")
    })
}

//! The complete text that the real `dotnet test` prints about runtap's modules: for a run with failures, skips and
//! output, for a list, and for the help.

use std::path::Path;

use runtap_mtp_host::harness::Outcome;
use runtap_testkit::{Skip, run};

use crate::real_wrapped::{CRATE, is_there, project, write};
use crate::samples::module;
use crate::servers::{dotnet_test, in_order, masked, or_skip};

/// Returns the texts of a run, a list and the help of a module in the folder.
fn texts(folder: &Path, module: &str, options: &[&str]) -> Result<[String; 3], Skip> {
    let told = |more: &[&str], code| {
        let told = run(dotnet_test(folder, module, &[options, more].concat())?);
        told.expect_code(code);
        Ok(masked(&told, folder))
    };
    let help = told(&["--help"], 0)?;
    // The SDK's text about itself is not part of the test.
    let (_, help) = help.split_once("Running tests from").expect("the application is asked");
    Ok([in_order(&told(&["--output", "Detailed"], 2)?), told(&["--list-tests"], 0)?, help.to_owned()])
}

pub(crate) fn of_the_harness() -> Outcome {
    or_skip(|| {
        let folder = tempfile::tempdir().expect("a folder");
        module(folder.path(), "harness", "harness");
        let [ran, list, help] = texts(folder.path(), "harness", &["--test-threads", "1"])?;
        insta::assert_snapshot!("harness_run", ran);
        insta::assert_snapshot!("harness_list", list);
        insta::assert_snapshot!("harness_help", help);
        Ok(())
    })
}

pub(crate) fn of_a_wrapped_command() -> Outcome {
    or_skip(|| {
        is_there("cargo", &["--version"])?;
        let folder = project(CRATE);
        // One at a time, so that the order is that of their names.
        let command = ["cargo", "test", "--offline", "--no-fail-fast", "--", "--test-threads=1"];
        write(folder.path(), &["--from", "libtest"], &command);
        let [ran, list, help] = texts(folder.path(), "wrapped", &[])?;
        insta::assert_snapshot!("wrapped_run", ran);
        insta::assert_snapshot!("wrapped_list", list);
        insta::assert_snapshot!("wrapped_help", help);
        Ok(())
    })
}

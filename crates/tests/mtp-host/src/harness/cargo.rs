//! The cargo and nextest side of the harness: libtest-mimic provides the command line, the lists and the output.

use std::io::Write as _;
use std::process::ExitCode;

use crate::{Failure, Outcome};
use libtest_mimic::{Arguments, Completion, Failed, Trial};

use crate::harness::{Context, Test};

pub(crate) fn run(tests: Vec<Test>) -> ExitCode {
    let arguments = Arguments::from_args();
    let trials = tests.into_iter().map(|test| {
        let is_ignored = test.ignored.is_some();
        let name = test.name.clone();
        Trial::ignorable_test(name, move || run_test(test)).with_ignored_flag(is_ignored)
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

fn run_test(test: Test) -> Result<Completion, Failed> {
    let context = Context::default();
    let outcome = test.run(&context);
    let output = context.take_output();
    // The reader may have closed the stream.
    let _ = std::io::stdout().lock().write_all(output.as_bytes());
    match outcome {
        Outcome::Passed => Ok(Completion::Completed),
        Outcome::Skipped(why) => Ok(Completion::ignored_with(why)),
        Outcome::Failed(failure) | Outcome::Error(failure) => Err(failed("", &failure)),
        Outcome::TimedOut(failure) => Err(failed("timed out: ", &failure)),
        Outcome::Cancelled(failure) => Err(failed("canceled: ", &failure)),
    }
}

fn failed(how: &str, failure: &Failure) -> Failed {
    format!("{how}{failure}").into()
}

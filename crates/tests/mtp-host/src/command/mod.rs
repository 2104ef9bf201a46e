//! Runs any test command with machine-readable output as a test application of Microsoft.Testing.Platform: `cargo
//! test`, `go test`, `node --test`, `pytest` and others stay unchanged, and `dotnet test` and `runtap test` run them
//! beside .NET tests.
//!
//! A [`Wrap`] specifies the command and the format of its output. [`Wrap::run`] handles the server's request: it starts
//! the command, parses results from its output ([`runtap_test::formats`]), and reports them to the server
//! ([`Host`](crate::Host)).
//!
//! - Filters (`--filter-uid`) select the reported tests, not the executed tests, because the commands have no common
//!   filter option.
//! - Tests are listed with the command and [`Wrap::list_arguments`]. A command that cannot list its tests is run.
//! - Files named in a report become artifacts of their tests, and the report becomes an artifact of the session.
//! - A command that fails although no test failed (for example because it did not compile, or crashed) fails the
//!   application. The end of its output is printed to standard error, which servers show. This also applies to exit
//!   codes that failed tests do not explain, because a server may filter out failed tests.
//! - When this process ends, all processes that the command started end too: after signals including SIGKILL, after a
//!   request on the control pipe, and when the server disconnects. A keeper process (the module `reaper` of
//!   `runtap-os`) ensures this; on Windows, a job object.

mod child;
mod log;
mod output;
mod report;
mod reporter;
mod server_arguments;
mod tail;
mod verdict;

use std::ffi::OsString;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::{Application, CancelReason, Exit, HostError, Launch, Session};
use runtap_test::formats::{Format, Parser};
use thiserror::Error;

pub use server_arguments::move_server_arguments;

use child::Child;
use report::Report;
use reporter::ResultReporter;
use tail::Tail;

/// The variable that servers set to `known` to request a list only if the command need not be run for it.
pub const LIST: &str = "RUNTAP_MTP_LIST";

/// The read buffer size for reports, in bytes.
const READ_SIZE: usize = 64 << 10;

/// The number of bytes that are parsed at a time: three bytes can be a result whose name has thousands of bytes.
const PARSE_SIZE: usize = 4 << 10;

/// The maximum time to exit after a signal.
const EXIT_TIMEOUT: Duration = Duration::from_secs(8);

fn lists_only_if_known() -> bool {
    std::env::var_os(LIST).is_some_and(|value| value == "known")
}

/// A command and the format of its output.
#[derive(Debug, Clone)]
pub struct Wrap {
    /// The format of the command's output.
    pub format: Format,
    /// The command with its arguments; not empty.
    pub command: Vec<OsString>,
    /// The working directory. `None` for the current directory.
    pub directory: Option<PathBuf>,
    /// The file to which the command writes its results, if it does not print them. Relative to `directory`.
    pub report: Option<PathBuf>,
    /// The arguments that make the command list its tests. `None` for the default of the format.
    pub list_arguments: Option<Vec<OsString>>,
    /// The file that servers show. `None` for this program.
    pub module: Option<PathBuf>,
    /// Whether to print the negotiated protocol version and the command to standard error.
    pub verbose: bool,
    /// The arguments with which this program runs `runtap_os::reaper::run_reaper` on the arguments that follow.
    pub keeper: Vec<OsString>,
}

/// An error that occurs when running a command and reporting its tests.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WrapError {
    /// The connection to the server is lost, or the server does not reply.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The command cannot be started.
    #[error("can't start {command:?}: {error}")]
    Start {
        /// The program.
        command: OsString,
        /// The cause.
        error: io::Error,
    },
    /// The output or the exit status of the command cannot be read.
    #[error("can't read the output of the command: {0}")]
    Output(io::Error),
    /// The report of the command cannot be read.
    #[error("can't read the report {}: {error}", path.display())]
    Report {
        /// The path of the report.
        path: PathBuf,
        /// The cause.
        error: io::Error,
    },
    /// Signal handlers cannot be installed.
    #[error("can't install signal handlers: {0}")]
    Signals(io::Error),
}

impl Wrap {
    /// Handles the server's request.
    pub fn run(&self, launch: &Launch) -> Exit {
        let mut application = Application::new().create_log(log::create);
        if let Some(module) = &self.module {
            application = application.module(module);
        }
        application.run(launch, |session, launch| self.session(session, launch.filter_uids.as_deref()))
    }

    fn session(&self, session: &Session<'_>, wanted: Option<&[String]>) -> Result<(), WrapError> {
        let (words, lists) = self.words(session.is_discovery());
        if self.verbose {
            let command = words.join(std::ffi::OsStr::new(" "));
            let version = session.host().version();
            tail::print_error(&format!(
                "negotiated protocol version {version}; running {}",
                command.display()
            ));
        }
        let report = self.report.as_ref().map(|path| match &self.directory {
            Some(directory) => directory.join(path),
            None => path.clone(),
        });
        if lists && self.list_arguments.is_none() && self.format != Format::Libtest && lists_only_if_known() {
            tail::print_error(
                &"the tests are only known after a run; use --list-arguments to specify how the command lists them",
            );
            session.host().set_exit(Exit::ERROR);
            return Ok(());
        }
        // With list arguments, the command prints a list in libtest's format and writes no report.
        let prints_list = lists && self.list_arguments.is_some();
        let report = report.filter(|_| !prints_list).map(Report::before);
        let cancel = session.host().cancel().clone();
        let own = cancel.clone();
        // Before the command starts: a fatal signal would leave it behind.
        let stop = move || {
            own.request(CancelReason::Application);
            // The server may not reply any more. The keeper terminates the command when this process exits.
            std::thread::sleep(EXIT_TIMEOUT);
            std::process::exit(Exit::ABORTED.0.into());
        };
        child::on_signal(stop).map_err(WrapError::Signals)?;
        let start = |error| WrapError::Start { command: words.first().cloned().unwrap_or_default(), error };
        let (child, output) =
            Child::start(&self.keeper, &words, self.directory.as_deref(), self.format).map_err(start)?;
        let _guard = child.kill_on_drop();
        let ended = Arc::clone(&child);
        cancel.listen(move |_| ended.stop());
        let mut parser = Parser::new(if prints_list { Format::Libtest } else { self.format });
        let can_list = self.list_arguments.is_some() || self.format == Format::Libtest;
        let mut reporter = ResultReporter::new(session, wanted, self.directory.clone(), !can_list);
        let mut tail = Tail::default();
        let printed = output::OutputChunks::new(output).map_err(WrapError::Output)?;
        while let Some(bytes) = printed.next(|| child.has_ended()) {
            let bytes = bytes.map_err(WrapError::Output)?;
            tail.push(&bytes);
            if report.is_none() {
                for part in bytes.chunks(PARSE_SIZE) {
                    reporter.report_events(parser.feed(part))?;
                }
            }
        }
        let waited = child.wait();
        if session.cancelled().is_some() {
            // The command was stopped on purpose, so its status is ignored. A failure whose output was incomplete is
            // still reported.
            if report.is_none() {
                reporter.report_events(parser.finish())?;
            }
            return Ok(());
        }
        let status = waited.map_err(WrapError::Output)?;
        let mut is_absent = false;
        if let Some(report) = &report {
            let failed = |error| WrapError::Report { path: report.path().to_owned(), error };
            match report.open() {
                Ok(mut file) => {
                    let mut piece = vec![0; READ_SIZE];
                    loop {
                        let count = file.read(&mut piece).map_err(failed)?;
                        if count == 0 {
                            break;
                        }
                        for part in piece.get(..count).unwrap_or_default().chunks(PARSE_SIZE) {
                            reporter.report_events(parser.feed(part))?;
                        }
                    }
                    reporter.report_file(report.path())?;
                }
                Err(error) if status.success() => return Err(failed(error)),
                // The command failed before it wrote the report, and its output explains why.
                Err(_) => is_absent = true,
            }
        }
        let recognizes_nothing = report.is_none() && parser.recognizes_nothing();
        if !is_absent {
            reporter.report_events(parser.finish())?;
        }
        if status.success() && recognizes_nothing {
            tail::print_error(&format!(
                "the output of the command has nothing in the format {}:",
                self.format
            ));
            tail.print();
            session.host().set_exit(Exit::ERROR);
            return Ok(());
        }
        let problems = reporter.problems();
        let has_failures = reporter.has_failures() || reporter.has_other_failures();
        let is_explained =
            status.success() || has_failures && verdict::is_explained_by_failures(self, status);
        if problems.is_empty() && is_explained {
            return Ok(());
        }
        for problem in problems {
            tail::print_error(problem);
        }
        let colon = if tail.is_empty() { "" } else { "; the end of its output:" };
        tail::print_error(&format!("the command exited with {status}{colon}"));
        tail.print();
        // Not the exit code of failed tests: a server that filters out failed tests must not ignore this failure.
        session.host().set_exit(verdict::exit(status, reporter.has_incomplete_tests()));
        Ok(())
    }

    /// Returns the command line, and whether it is run for a list.
    fn words(&self, is_discovery: bool) -> (Vec<OsString>, bool) {
        let mut words = self.command.clone();
        if !is_discovery {
            return (words, false);
        }
        match &self.list_arguments {
            Some(more) => words.extend(more.iter().cloned()),
            None if self.format == Format::Libtest => {
                // Cargo forwards arguments after `--`; a test binary takes them directly.
                let is_cargo = words
                    .first()
                    .is_some_and(|word| Path::new(word).file_stem().is_some_and(|stem| stem == "cargo"));
                if is_cargo && !words.iter().any(|word| word == "--") {
                    words.push("--".into());
                }
                words.push("--list".into());
            }
            None => return (words, true),
        }
        (words, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(format: Format, command: &[&str], list: Option<&[&str]>) -> String {
        let of = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        let wrap = Wrap {
            format,
            command: of(command),
            directory: None,
            report: None,
            list_arguments: list.map(of),
            module: None,
            verbose: false,
            keeper: Vec::new(),
        };
        assert_eq!(wrap.words(false), (of(command), false));
        let (words, lists) = wrap.words(true);
        assert!(lists);
        words.join(std::ffi::OsStr::new(" ")).into_string().unwrap()
    }

    #[test]
    fn each_command_is_asked_for_a_list_by_its_own_option() {
        use Format::{GoJson, Libtest};
        assert_eq!(words(Libtest, &["cargo", "test"], None), "cargo test -- --list");
        assert_eq!(words(Libtest, &["/x/cargo", "t", "--", "-q"], None), "/x/cargo t -- -q --list");
        assert_eq!(words(Libtest, &["target/debug/deps/a"], None), "target/debug/deps/a --list");
        assert_eq!(words(Libtest, &["make"], Some(&["LIST=1"])), "make LIST=1");
        assert_eq!(words(GoJson, &["go", "test"], None), "go test");
    }
}

//! Makes a test application of Microsoft.Testing.Platform of any test command whose output can be read: `cargo test`,
//! `go test`, `node --test`, `pytest` … stay as they are, and `dotnet test` and `runtap test` run them beside .NET's tests.
//!
//! A [`Wrap`] says which command and what it prints. [`Wrap::run`] does what a server has asked for: it starts the command,
//! reads results out of what it prints ([`runtap_test::formats`]), and reports them to the server ([`Host`](crate::Host)).
//!
//! - Filters (`--filter-uid`) choose what is told, not what is run: no option is common to all commands.
//! - A list is what the command lists with [`Wrap::list_arguments`]; a command that can't list is run.
//! - Files that a report names are files of their tests, and the report is one of the session.
//! - A command that fails and of which no test has failed (it did not compile, it died) fails the application, and the end of
//!   what it has printed is on standard error, which servers show. So does one that ends otherwise than failed tests have it
//!   end: a server may leave failures of tests out.
//! - Whoever ends us ends all that the command has started: by a signal, SIGKILL too, over the control pipe, or by going
//!   away. A keeper (the module `reaper` of `runtap-os`) is the process that sees to it; on Windows a job object does.

mod child;
mod log;
mod output;
mod report;
mod tail;
mod tell;
mod verdict;

use std::ffi::OsString;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::{Application, CancelReason, Exit, HostError, Launch, Session};
use runtap_test::formats::{Format, Parser};
use thiserror::Error;

use child::Child;
use report::Report;
use tail::Tail;
use tell::Teller;

/// Set to `known` by who wants a list only if the command need not be run for it.
pub const LIST: &str = "RUNTAP_MTP_LIST";

/// How much of a report is read at a time.
const PIECE: usize = 64 << 10;

/// How much is made results of at a time: three bytes can be a result, whose name has thousands.
const PART: usize = 4 << 10;

/// How long the end may take after a signal.
const LAST: Duration = Duration::from_secs(8);

fn only_known() -> bool {
    std::env::var_os(LIST).is_some_and(|value| value == "known")
}

/// A command, and what it prints.
#[derive(Debug, Clone)]
pub struct Wrap {
    /// What it prints.
    pub format: Format,
    /// The command with its arguments, not empty.
    pub command: Vec<OsString>,
    /// Where it runs; where we do otherwise.
    pub directory: Option<PathBuf>,
    /// The file that it leaves its results in, if it does not print them. Relative to `directory`.
    pub report: Option<PathBuf>,
    /// What makes a list of the command's tests if it is added. `None`: what the format knows.
    pub list_arguments: Option<Vec<OsString>>,
    /// The file that servers show.
    pub module: Option<PathBuf>,
    /// Whether standard error has which version of the protocol was negotiated, and which command is run.
    pub verbose: bool,
    /// The arguments with which this program calls `runtap_os::reaper::keep` with the words that follow them.
    pub keeper: Vec<OsString>,
}

/// Why the command's tests can't be told.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WrapError {
    /// The server is gone or does not answer.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The command can't be started.
    #[error("can't start {command:?}: {error}")]
    Start {
        /// Its first word.
        command: OsString,
        /// Why not.
        error: io::Error,
    },
    /// Its output or its end can't be read.
    #[error("can't read what the command prints: {0}")]
    Output(io::Error),
    /// The report that it should have left.
    #[error("can't read the report {}: {error}", path.display())]
    Report {
        /// The file.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// We could not be told to end.
    #[error("can't wait for signals: {0}")]
    Signals(io::Error),
}

impl Wrap {
    /// Does what a server has asked for.
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
            tail::say(&format!(
                "version {version} of the protocol was negotiated; runs {}",
                command.display()
            ));
        }
        let report = self.report.as_ref().map(|path| match &self.directory {
            Some(directory) => directory.join(path),
            None => path.clone(),
        });
        if lists && self.list_arguments.is_none() && self.format != Format::Libtest && only_known() {
            tail::say(&"its tests are known only when it runs them: --list-arguments says how it lists them");
            session.host().set_exit(Exit::ERROR);
            return Ok(());
        }
        // With arguments of its own it prints a list, in libtest's form, and leaves no report.
        let prints_list = lists && self.list_arguments.is_some();
        let report = report.filter(|_| !prints_list).map(Report::before);
        let cancel = session.host().cancel().clone();
        let own = cancel.clone();
        // Before the command is there: a signal that ended us would leave it behind.
        let ask = move || {
            own.request(CancelReason::Application);
            // The server may not answer any more. The keeper ends the command when we are gone.
            std::thread::sleep(LAST);
            std::process::exit(Exit::ABORTED.0.into());
        };
        child::on_signal(ask).map_err(WrapError::Signals)?;
        let start = |error| WrapError::Start { command: words.first().cloned().unwrap_or_default(), error };
        let (child, output) =
            Child::start(&self.keeper, &words, self.directory.as_deref(), self.format).map_err(start)?;
        let _ends = child.ends_with();
        let ended = Arc::clone(&child);
        cancel.listen(move |_| ended.stop());
        let mut parser = Parser::new(if prints_list { Format::Libtest } else { self.format });
        let can_list = self.list_arguments.is_some() || self.format == Format::Libtest;
        let mut teller = Teller::new(session, wanted, self.directory.clone(), !can_list);
        let mut tail = Tail::default();
        let printed = output::Pieces::of(output).map_err(WrapError::Output)?;
        while let Some(bytes) = printed.next(|| child.has_ended()) {
            let bytes = bytes.map_err(WrapError::Output)?;
            tail.push(&bytes);
            if report.is_none() {
                for part in bytes.chunks(PART) {
                    teller.tell(parser.feed(part))?;
                }
            }
        }
        let waited = child.wait();
        if session.cancelled().is_some() {
            // How it was ended is our doing; a failure whose output was to follow is one all the same.
            if report.is_none() {
                teller.tell(parser.finish())?;
            }
            return Ok(());
        }
        let status = waited.map_err(WrapError::Output)?;
        let mut is_absent = false;
        if let Some(report) = &report {
            let failed = |error| WrapError::Report { path: report.path().to_owned(), error };
            match report.open() {
                Ok(mut file) => {
                    let mut piece = vec![0; PIECE];
                    loop {
                        let count = file.read(&mut piece).map_err(failed)?;
                        if count == 0 {
                            break;
                        }
                        for part in piece.get(..count).unwrap_or_default().chunks(PART) {
                            teller.tell(parser.feed(part))?;
                        }
                    }
                    teller.report(report.path())?;
                }
                Err(error) if status.success() => return Err(failed(error)),
                // The command has not come so far, and says why.
                Err(_) => is_absent = true,
            }
        }
        let knows_nothing = report.is_none() && parser.knows_nothing();
        if !is_absent {
            teller.tell(parser.finish())?;
        }
        if status.success() && knows_nothing {
            tail::say(&format!("nothing that the command has printed is of the format {}:", self.format));
            tail.print();
            session.host().set_exit(Exit::ERROR);
            return Ok(());
        }
        let problems = teller.problems();
        let has_failures = teller.has_failures() || teller.has_other_failures();
        let is_explained = status.success() || has_failures && verdict::is_of_failed_tests(self, status);
        if problems.is_empty() && is_explained {
            return Ok(());
        }
        for problem in problems {
            tail::say(problem);
        }
        let colon = if tail.is_empty() { "" } else { "; the end of its output:" };
        tail::say(&format!("the command has ended with {status}{colon}"));
        tail.print();
        // Not the code of failed tests, though there may be some: who leaves them out must not leave this out.
        session.host().set_exit(verdict::exit(status, teller.has_cut()));
        Ok(())
    }

    /// The words of the command, and whether they make a list.
    fn words(&self, is_discovery: bool) -> (Vec<OsString>, bool) {
        let mut words = self.command.clone();
        if !is_discovery {
            return (words, false);
        }
        match &self.list_arguments {
            Some(more) => words.extend(more.iter().cloned()),
            None if self.format == Format::Libtest => {
                // Cargo passes on what is behind `--`; a test binary takes it as it is.
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
    fn a_list_is_asked_for_in_the_commands_way() {
        use Format::{GoJson, Libtest};
        assert_eq!(words(Libtest, &["cargo", "test"], None), "cargo test -- --list");
        assert_eq!(words(Libtest, &["/x/cargo", "t", "--", "-q"], None), "/x/cargo t -- -q --list");
        assert_eq!(words(Libtest, &["target/debug/deps/a"], None), "target/debug/deps/a --list");
        assert_eq!(words(Libtest, &["make"], Some(&["LIST=1"])), "make LIST=1");
        assert_eq!(words(GoJson, &["go", "test"], None), "go test");
    }
}

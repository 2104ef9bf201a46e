//! The output of a run: passes its events to the reports and to what is printed, and prints problems.

use std::error::Error;
use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;

use anstream::AutoStream;
use runtap_convert::failure::is_closed_pipe;
use runtap_mtp::suite::report::{EventStream, Problem, Reporter, WriteError, Written};
use runtap_mtp::{ArtifactKeeper, Module, ModuleId, RunEvent, RunSpec, Stop, TestInfo};
use runtap_test_report::Spool;

use super::{Detail, Lines, Progress, Screen, TestList, messages, printed, with_progress_erased};
use crate::output::causes;
use crate::{Output, advice, terminal_size, with_causes};

/// The destination of lines: standard output, or standard error if a report uses standard output.
type Out = Box<dyn Write + Send>;

/// What is printed of a run.
pub enum RunOutput {
    /// The run as text.
    Lines(Lines<Out>),
    /// Every event as a line of JSON.
    Events(EventStream<Out>),
    /// A JSON document at the end.
    Summary,
    /// The list of tests at the end, as text or as a JSON document.
    List {
        /// The list.
        list: TestList,
        /// Whether the list is printed as JSON.
        json: bool,
    },
    /// Nothing, because the reader has gone.
    Nothing,
}

impl fmt::Debug for RunOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Destinations have no representation.
        f.debug_struct("RunOutput").finish_non_exhaustive()
    }
}

/// The appearance of a run as text.
#[derive(Debug, Clone, Copy)]
pub struct LineOptions {
    /// The tests that are shown.
    pub detail: Detail,
    /// Whether the output has colors and a progress that is redrawn in place, if it is a terminal.
    pub ansi: bool,
    /// Whether the progress is shown.
    pub progress: bool,
    /// Whether standard output has other content, so that the lines go to standard error.
    pub stdout_is_taken: bool,
}

impl RunOutput {
    /// Creates the output of a run of these modules as text.
    pub fn lines(options: LineOptions, modules: &[Module], output: Output) -> Self {
        let LineOptions { detail, ansi, progress, stdout_is_taken } = options;
        let out: Out = match (stdout_is_taken, ansi) {
            (true, false) => Box::new(AutoStream::never(io::stderr())),
            (true, true) => Box::new(AutoStream::auto(io::stderr())),
            (false, false) => Box::new(AutoStream::never(io::stdout())),
            (false, true) => Box::new(AutoStream::auto(io::stdout())),
        };
        let state = Progress::new(modules.len());
        let screen = if !progress || output.is_quiet() {
            Screen::plain(out)
        } else if stdout_is_taken || !ansi || !output.can_draw() {
            Screen::with_status_lines(out, state)
        } else {
            Screen::with_progress(out, state, terminal_size::size)
        };
        let here = std::env::current_dir().ok();
        Self::Lines(Lines::new(screen, detail, modules, here.as_deref()))
    }
}

/// Receives the events of a run, for its reports and its output.
#[derive(Debug)]
pub struct RunPrinter {
    reporter: Reporter,
    shown: RunOutput,
    modules: Vec<Module>,
    output: Output,
}

impl RunPrinter {
    /// Creates the printer of a run of these modules.
    pub fn new(reporter: Reporter, shown: RunOutput, modules: Vec<Module>, output: Output) -> Self {
        Self { reporter, shown, modules, output }
    }

    /// Starts the event reports. Until then, reports of an earlier run stay unchanged.
    ///
    /// # Errors
    /// Returns an error if a report cannot be created.
    pub fn begin(&mut self) -> Result<(), runtap_os::output::Error> {
        self.reporter.begin()
    }

    /// Returns whether any output shows what applications print.
    pub fn follows_output(&self) -> bool {
        matches!(self.shown, RunOutput::Events(_)) || self.reporter.is_live()
    }

    /// Returns the collector of the files that applications report; `None` if they are not collected.
    pub fn keeper(&self) -> Option<Arc<dyn ArtifactKeeper>> {
        self.reporter.collector().map(|collector| Arc::clone(collector) as Arc<dyn ArtifactKeeper>)
    }

    /// Adds facts about tests that were discovered before the run.
    pub fn add_known_tests(&mut self, known: Vec<(ModuleId, TestInfo)>) {
        self.reporter.add_known_tests(known);
    }

    /// Returns all results so far; `None` if some are lost.
    pub fn results(&self) -> Option<&Spool<File>> {
        self.reporter.results()
    }

    /// Handles an event, and moves the texts of a result out of it; `stopped` is whether the run was asked to stop. An output
    /// that cannot be written is reported, and the run continues for the others.
    pub fn event(&mut self, event: &mut RunEvent, stopped: bool) {
        let reported = self.reporter.event(event, stopped);
        let result = reported.result.as_ref();
        let shown = match &mut self.shown {
            RunOutput::Lines(lines) => lines.event(event, result),
            RunOutput::Events(events) => events.event(reported.ts, event, result, self.reporter.spool()),
            RunOutput::List { list, .. } => {
                list.add_event(event);
                Ok(())
            }
            RunOutput::Summary | RunOutput::Nothing => Ok(()),
        };
        self.print_problems(reported.problems);
        if let Err(error) = shown {
            self.shown = RunOutput::Nothing;
            self.fail("the events", &error);
        }
    }

    fn print_problems(&mut self, problems: Vec<Problem>) {
        let output = self.output;
        for problem in problems {
            match problem {
                Problem::NotWritten(title, error) => self.fail(&format!("the {title}"), &error),
                problem => {
                    let message = messages::problem(&problem, &self.modules);
                    with_progress_erased(|| output.messages(message));
                }
            }
        }
    }

    /// Reports that an output has failed, unless its reader has gone.
    fn fail(&mut self, title: &str, error: &io::Error) {
        if is_closed_pipe(causes(error)) {
            return;
        }
        self.reporter.fail();
        let text = with_causes(format!("cannot write {title} any further"), Some(error));
        with_progress_erased(|| self.output.error(text, &[], None));
    }

    /// Requests the classes of the tests that have run if a report shows classes. `stop` ends the requests as well.
    pub fn request_facts(&mut self, spec: &RunSpec, exit_code: i32, stop: &Stop) {
        let problems = self.reporter.request_facts(spec, exit_code, stop);
        self.print_problems(problems);
    }

    /// Writes the final output. Returns whether everything that was requested is written.
    ///
    /// # Errors
    /// Returns an error if the list of tests cannot be printed.
    pub fn finish(mut self) -> io::Result<bool> {
        let problems = self.reporter.settle();
        self.print_problems(problems);
        let output = self.output;
        if let Some(collector) = self.reporter.collector() {
            output.messages(messages::collected(&collector.finish()));
        }
        let mut are_written = true;
        self.reporter.write(output.json(), |title, written| {
            are_written &= print_outcome(title, written, output);
        });
        if !are_written {
            self.reporter.fail();
        }
        match std::mem::replace(&mut self.shown, RunOutput::Nothing) {
            RunOutput::Summary => {
                if let Err(error) = self.reporter.write_summary(io::stdout()) {
                    self.fail("the summary", &error);
                }
            }
            RunOutput::List { list, json } => print_list(&list, json, output)?,
            RunOutput::Lines(_) | RunOutput::Events(_) | RunOutput::Nothing => {}
        }
        Ok(!self.reporter.has_failed())
    }
}

/// Prints where the report with this title is, or why it was not written. Returns whether it was written.
fn print_outcome(title: &str, written: Result<Written, WriteError>, output: Output) -> bool {
    let error = match written {
        Ok(Written::File(format, path)) => {
            output.note(format_args!("{} report: {}", format.name(), path.display()));
            return true;
        }
        Ok(Written::GitHubAnnotations) => {
            output.note("no summary for GitHub: GITHUB_STEP_SUMMARY is not set");
            return true;
        }
        Ok(_) => return true,
        Err(error) => error,
    };
    // The classification of errors depends on their types.
    let cause: &(dyn Error + 'static) = match &error {
        WriteError::Io(error) => error,
        WriteError::File(error) => error,
        error => error,
    };
    if is_closed_pipe(causes(cause)) {
        return true;
    }
    let text = with_causes(format!("cannot write the {title}"), Some(cause));
    output.error(text, &[], advice::next_step(cause));
    false
}

fn print_list(list: &TestList, json: bool, output: Output) -> io::Result<()> {
    list.warnings().for_each(|warning| output.warning(warning));
    for (error, (stdout, stderr)) in list.errors() {
        output.warning(error);
        print_app_output(stdout, stderr, output);
    }
    if json { output.document(list) } else { output.print(list, &output.options()) }
}

/// Prints what an application printed, below its error.
pub fn print_app_output(stdout: &str, stderr: &str, output: Output) {
    for (name, text) in printed(stdout, stderr) {
        output.essential(format_args!("  {name}:"));
        text.lines().for_each(|line| output.essential(line));
    }
}

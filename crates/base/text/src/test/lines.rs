//! The text output of a run: failures at once, a line for each module, and a summary with all failures at the end.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use anstyle::Style;
use runtap_model::order;
use runtap_mtp::{
    LaunchEnd, Level, Module, ModuleFailure, ModuleId, RunEvent, TestOutcome, TestResult, Totals, code,
};
use runtap_test_report::{Attempt, TestResult as Reported};

use super::failures::{Failure, Failures, word};
use super::format::{MAX_LINE, MAX_NAME, cleaned, full_name, indented, printed, time};
use super::module_failure::{describe, explain};
use super::screen::Screen;
use crate::units::Things;
use crate::{DIM, ERROR, SUCCESS, WARNING};

/// The tests that the text output shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Detail {
    /// Failed tests only.
    Minimal,
    /// Failed and skipped tests.
    #[default]
    Normal,
    /// Every test.
    Detailed,
}

impl Detail {
    /// All details.
    pub const ALL: [Self; 3] = [Self::Minimal, Self::Normal, Self::Detailed];

    /// Returns the name on a command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Minimal => "minimal",
            Self::Normal => "normal",
            Self::Detailed => "detailed",
        }
    }

    /// Returns a short description.
    pub fn about(self) -> &'static str {
        match self {
            Self::Minimal => "Failed tests only",
            Self::Normal => "Failed and skipped tests",
            Self::Detailed => "Every test",
        }
    }
}

/// Writes the text output.
#[derive(Debug)]
pub struct Lines<W> {
    out: Screen<W>,
    detail: Detail,
    modules: Vec<ModuleLines>,
    failures: Failures,
    broken: Vec<(ModuleId, String)>,
    /// Tests that have passed after a failure, keyed by their rows.
    flaky: BTreeMap<(ModuleId, usize), String>,
    artifacts: Vec<(Option<String>, String)>,
    /// Whether an application reported an error apart from its results.
    has_errors: bool,
}

#[derive(Debug)]
struct ModuleLines {
    path: String,
    suffix: String,
    attempts: HashMap<u64, u32>,
    /// Whether one of its processes was asked to stop.
    stopped: bool,
}

impl<W: Write + Send + 'static> Lines<W> {
    /// Creates the output of a run of these modules. Paths inside the directory `here` are shown relative to it.
    pub fn new(out: Screen<W>, detail: Detail, modules: &[Module], here: Option<&Path>) -> Self {
        let shown = |module: &Module| ModuleLines {
            path: cleaned(&relative_to(module.path(), here).to_string_lossy(), usize::MAX),
            suffix: String::new(),
            attempts: HashMap::new(),
            stopped: false,
        };
        let shown: Vec<_> = modules.iter().map(shown).collect();
        for (number, module) in shown.iter().enumerate() {
            out.progress(|progress| progress.name(ModuleId(number), &module.path));
        }
        Self {
            out,
            detail,
            modules: shown,
            failures: Failures::default(),
            broken: Vec::new(),
            flaky: BTreeMap::new(),
            artifacts: Vec::new(),
            has_errors: false,
        }
    }

    /// Prints an event; `reported` is the result as it appears in reports.
    pub fn event(&mut self, event: &RunEvent, reported: Option<&Reported>) -> io::Result<()> {
        self.out.progress(|progress| progress.event(event));
        match event {
            RunEvent::LaunchStarted { module, launch, attempt, .. } => {
                if let Some(module) = self.modules.get_mut(module.0) {
                    module.attempts.insert(launch.0, *attempt);
                }
            }
            RunEvent::Introduced { module, launch, introduction } => {
                let Some(shown) = self.modules.get_mut(module.0) else { return Ok(()) };
                let first = shown.suffix.is_empty();
                let (framework, architecture) = (introduction.target_framework(), &introduction.architecture);
                shown.suffix = cleaned(&format!(" ({framework}|{})", architecture.to_lowercase()), MAX_NAME);
                let attempt = shown.attempts.get(&launch.0).copied().unwrap_or(1);
                if first || attempt > 1 {
                    let again = if attempt > 1 { format!("(try {attempt}) ") } else { String::new() };
                    writeln!(self.out, "{DIM}{again}running tests from {}{DIM:#}", self.title(*module))?;
                }
            }
            RunEvent::TestEnded { module, result, .. } => {
                if let Some(reported) = reported {
                    self.result(*module, result, reported)?;
                }
            }
            RunEvent::TestSlow { module, name, running, .. } => {
                let (name, title) = (cleaned(name, MAX_NAME), self.title(*module));
                writeln!(
                    self.out,
                    "{WARNING}slow{WARNING:#} {name} has been running for {} in {title}",
                    time(*running)
                )?;
            }
            RunEvent::Artifact { artifact, .. } => {
                let path = cleaned(&artifact.path.to_string_lossy(), MAX_LINE);
                self.artifacts.push((artifact.test_name.clone(), path));
            }
            RunEvent::Message { module, level, text } => self.message(*module, *level, text)?,
            RunEvent::LaunchEnded { module, end, .. } => self.launch_ended(*module, end)?,
            RunEvent::RowsMerged { module, rows } => {
                for &(row, into) in rows {
                    if let Some(gone) = self.failures.forget(*module, row) {
                        self.flaky.entry((*module, into)).or_insert(gone.name);
                    }
                }
            }
            RunEvent::ModuleEnded { module, totals, failures, reported, exit_code, duration } => {
                failures.iter().skip(*reported).try_for_each(|failure| self.failure(*module, failure))?;
                let described = |failure| (*module, cleaned(&describe(failure), MAX_LINE));
                self.broken.extend(failures.iter().map(described));
                self.module_ended(*module, totals, *exit_code, *duration)?;
            }
            RunEvent::RunEnded { totals, exit_code, missing, duration, stopped } => {
                self.out.end_progress()?;
                if let Some(missing) = missing {
                    writeln!(self.out, "{ERROR}error{ERROR:#} {}", cleaned(missing, MAX_LINE))?;
                }
                let verdict = match verdict(*exit_code, *stopped) {
                    "passed" if totals.failures() > 0 => "failed, and ignored by --ignore-exit-code",
                    "passed" if self.has_errors => "passed, but an application reported errors",
                    verdict => verdict,
                };
                self.summary(totals, verdict, *exit_code, *duration)?;
            }
            _ => {}
        }
        self.out.flush()
    }

    fn message(&mut self, module: ModuleId, level: Level, text: &str) -> io::Result<()> {
        let title = self.title(module);
        self.has_errors |= level == Level::Error;
        let (style, word) = match level {
            Level::Info => (Style::new(), ""),
            Level::Warning => (WARNING, "warning "),
            Level::Error => (ERROR, "error "),
        };
        let text = text.trim_end();
        match text.split_once('\n') {
            None => writeln!(self.out, "{style}{word}{style:#}{title}: {}", cleaned(text, MAX_LINE)),
            Some(_) => writeln!(self.out, "{style}{word}{style:#}{title}:\n{}", indented(text)),
        }
    }

    fn title(&self, module: ModuleId) -> String {
        self.modules.get(module.0).map(|shown| format!("{}{}", shown.path, shown.suffix)).unwrap_or_default()
    }

    fn result(&mut self, module: ModuleId, result: &TestResult, reported: &Reported) -> io::Result<()> {
        self.failures.take(module, result, reported);
        if !result.outdated {
            self.flaky.remove(&(module, result.row));
        }
        if result.execution.state == TestOutcome::Passed && !result.flaky && self.detail != Detail::Detailed {
            return Ok(());
        }
        let (name, attempt) = (full_name(reported), &reported.last);
        let again = if result.attempt > 1 { format!(" (try {})", result.attempt) } else { String::new() };
        let took =
            result.execution.duration().map(|duration| format!(" ({})", time(duration))).unwrap_or_default();
        match result.execution.state {
            TestOutcome::Passed if result.flaky => {
                self.flaky.insert((module, result.row), name.clone());
                writeln!(self.out, "{WARNING}flaky{WARNING:#}{again} {name}{took}")
            }
            TestOutcome::Passed => writeln!(self.out, "{SUCCESS}passed{SUCCESS:#}{again} {name}{took}"),
            TestOutcome::Skipped if self.detail == Detail::Minimal => Ok(()),
            TestOutcome::Skipped => {
                writeln!(self.out, "{WARNING}skipped{WARNING:#}{again} {name}")?;
                match attempt.reason.as_deref().filter(|reason| !reason.is_empty()) {
                    Some(reason) => writeln!(self.out, "  {}", cleaned(reason.trim_end(), MAX_LINE)),
                    None => Ok(()),
                }
            }
            state => {
                let text = failure(attempt);
                let style = if result.quarantined { WARNING } else { ERROR };
                let word = word(state, result.quarantined);
                writeln!(self.out, "{style}{word}{style:#}{again} {name}{took}")?;
                writeln!(self.out, "  {DIM}from {}{DIM:#}", self.title(module))?;
                self.out.write_all(text.as_bytes())?;
                Ok(())
            }
        }
    }

    fn launch_ended(&mut self, module: ModuleId, end: &LaunchEnd) -> io::Result<()> {
        if end.stopped
            && let Some(shown) = self.modules.get_mut(module.0)
        {
            shown.stopped = true;
        }
        end.failures.iter().try_for_each(|failure| self.failure(module, failure))?;
        // Also if tests failed, because there may be further errors.
        let has_failed = end.exit.is_some_and(|exit| exit.code() != 0) && !end.stopped;
        if end.failures.is_empty()
            && has_failed
            && self.detail != Detail::Detailed
            && !end.stderr.trim().is_empty()
        {
            writeln!(self.out, "{WARNING}note{WARNING:#} {}", self.title(module))?;
            writeln!(self.out, "  {DIM}error output:{DIM:#}\n{}", indented(&end.stderr))?;
        }
        if !end.failures.is_empty() || self.detail == Detail::Detailed {
            for (what, text) in printed(&end.stdout, &end.stderr) {
                writeln!(self.out, "  {DIM}{what}:{DIM:#}\n{text}")?;
            }
        }
        Ok(())
    }

    /// Prints the failure of a module as a whole.
    fn failure(&mut self, module: ModuleId, failure: &ModuleFailure) -> io::Result<()> {
        let all = explain(failure);
        let (what, more) = all.split_once('\n').unwrap_or((&all, ""));
        writeln!(self.out, "{ERROR}error{ERROR:#} {} {}", self.title(module), cleaned(what, MAX_LINE))?;
        if !more.is_empty() {
            writeln!(self.out, "{}", indented(more))?;
        }
        Ok(())
    }

    fn module_ended(
        &mut self,
        module: ModuleId,
        totals: &Totals,
        exit_code: i32,
        duration: Duration,
    ) -> io::Result<()> {
        let shown = self.modules.get(module.0);
        let (style, word) = match shown {
            Some(shown) if shown.stopped && [code::OK, code::ABORTED].contains(&exit_code) => {
                (WARNING, "stopped")
            }
            _ if exit_code != code::OK => (ERROR, "failed"),
            Some(shown) if shown.attempts.is_empty() => {
                return writeln!(self.out, "{WARNING}not run{WARNING:#} {}", self.title(module));
            }
            _ => (SUCCESS, "passed"),
        };
        let counts = counts(totals);
        writeln!(self.out, "{style}{word}{style:#} {} {counts} ({})", self.title(module), time(duration))
    }

    /// Prints the failed modules, each with its first failure.
    fn broken_modules(&mut self) -> io::Result<()> {
        if self.broken.is_empty() {
            return Ok(());
        }
        writeln!(self.out, "\nbroken applications:")?;
        let mut broken = std::mem::take(&mut self.broken);
        // A stable sort keeps the failures of a module in order.
        order::sort_by_key(&mut broken, |(module, _)| *module);
        for of_one in broken.chunk_by(|(one, _), (other, _)| one == other) {
            let Some((module, why)) = of_one.first() else { continue };
            let more =
                if of_one.len() > 1 { format!(" (and {} more)", of_one.len() - 1) } else { String::new() };
            writeln!(self.out, "  {}: {why}{more}", self.title(*module))?;
        }
        Ok(())
    }

    fn summary(
        &mut self,
        totals: &Totals,
        verdict: &str,
        exit_code: i32,
        duration: Duration,
    ) -> io::Result<()> {
        let several = self.modules.len() > 1;
        let from = |module: &ModuleId, lines: &Self| {
            if several { format!("  {DIM}{}{DIM:#}", lines.title(*module)) } else { String::new() }
        };
        if !self.failures.is_empty() {
            writeln!(self.out, "\nfailed:")?;
            for failure in self.failures.iter() {
                let Failure { module, name, word, explanation, .. } = failure;
                let line = format!("  {ERROR}{word}{ERROR:#} {name}{}\n{explanation}", from(module, self));
                self.out.write_all(line.as_bytes())?;
            }
        }
        if !self.flaky.is_empty() {
            writeln!(self.out, "\nflaky:")?;
            for ((module, _), name) in &self.flaky {
                let line = format!("  {WARNING}{name}{WARNING:#}{}\n", from(module, self));
                self.out.write_all(line.as_bytes())?;
            }
        }
        self.broken_modules()?;
        if !self.artifacts.is_empty() {
            writeln!(self.out, "\nfiles:")?;
            for (test, path) in &self.artifacts {
                let of =
                    test.as_deref().map(|test| format!(" ({})", cleaned(test, MAX_NAME))).unwrap_or_default();
                writeln!(self.out, "  {path}{of}")?;
            }
        }
        let style = if exit_code == code::OK { SUCCESS } else { ERROR };
        writeln!(
            self.out,
            "\n{style}{verdict}{style:#}: {}, {} ({})",
            Things(totals.total(), "test"),
            counts(totals),
            time(duration)
        )?;
        if exit_code != code::OK {
            writeln!(self.out, "exit code {exit_code}")?;
        }
        Ok(())
    }
}

/// Returns a path relative to the current directory if it is inside.
fn relative_to<'p>(path: &'p Path, here: Option<&Path>) -> &'p Path {
    here.and_then(|here| path.strip_prefix(here).ok()).unwrap_or(path)
}

/// Returns the verdict about a run from its exit code and whether it was stopped early.
fn verdict(exit_code: i32, stopped: bool) -> &'static str {
    match exit_code {
        code::OK => "passed",
        code::TESTS_FAILED if stopped => "failed, and stopped before its end",
        code::ABORTED if stopped => "stopped before its end",
        code::ZERO_TESTS => "no tests were run",
        code::TOO_FEW => "fewer tests than expected",
        code::TOO_MANY_FAILED => "stopped: too many tests failed",
        _ => "failed",
    }
}

/// Formats the counts that are not 0; passed tests are always included.
fn counts(totals: &Totals) -> String {
    let mut parts = vec![format!("{} passed", totals.passed)];
    let others = [
        (totals.failed, "failed"),
        (totals.error, "error"),
        (totals.timeout, "timed out"),
        (totals.cancelled, "cancelled"),
        (totals.skipped, "skipped"),
        (totals.quarantined, "in quarantine"),
        (totals.flaky, "flaky"),
        (totals.retried, "retried"),
    ];
    parts.extend(
        others.into_iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}")),
    );
    parts.join(", ")
}

/// Formats the details of a failure, indented.
fn failure(attempt: &Attempt) -> String {
    let mut text = String::new();
    // Some frameworks repeat the exception's message.
    let first = attempt.exceptions.first().map(|exception| exception.message.as_str());
    let reason = attempt.reason.as_deref().filter(|reason| !reason.is_empty() && Some(*reason) != first);
    if let Some(reason) = reason {
        text.extend([&indented(reason), "\n"]);
    }
    let details = attempt.details();
    if !details.trim().is_empty() {
        text.extend([&indented(&details), "\n"]);
    }
    for (what, output) in printed(&attempt.stdout, &attempt.stderr) {
        text.extend(["  ", what, ":\n", &output, "\n"]);
    }
    text
}

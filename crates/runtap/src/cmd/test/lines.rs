//! A run as lines for people: failures at once, a line for each module, failures again and a summary at the end.

use std::collections::HashMap;
use std::io::{self, Write};
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use runtap_mtp::{LaunchEnd, Module, ModuleId, RunEvent, TestResult, Totals};
use runtap_test_report::Attempt;
use runtap_text::Clean;

use super::model::{describe, short_framework};
use crate::cli::Detail;

const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default().bold();
const MIDDLE: Style = AnsiColor::Yellow.on_default();
const DIM: Style = Style::new().dimmed();

/// Output of a test or a module of which more is not shown: the first and the last so many lines.
const HEAD: usize = 30;
const TAIL: usize = 10;

/// Writes them.
#[derive(Debug)]
pub(super) struct Lines<W> {
    out: W,
    detail: Detail,
    modules: Vec<Shown>,
    /// Failures, to be said once more.
    failures: Vec<(ModuleId, String, String)>,
    broken: Vec<(ModuleId, String)>,
    flaky: Vec<(ModuleId, String)>,
    artifacts: Vec<(Option<String>, String)>,
}

#[derive(Debug)]
struct Shown {
    path: String,
    suffix: String,
    attempts: HashMap<u64, u32>,
}

impl<W: Write> Lines<W> {
    pub(super) fn new(out: W, detail: Detail, modules: &[Module]) -> Self {
        let shown = |module: &Module| Shown {
            path: Clean(&module.path().to_string_lossy()).to_string(),
            suffix: String::new(),
            attempts: HashMap::new(),
        };
        Self {
            out,
            detail,
            modules: modules.iter().map(shown).collect(),
            failures: Vec::new(),
            broken: Vec::new(),
            flaky: Vec::new(),
            artifacts: Vec::new(),
        }
    }

    /// Says what has happened; `attempt` is the result in the report's words.
    pub(super) fn event(&mut self, event: &RunEvent, attempt: Option<&Attempt>) -> io::Result<()> {
        match event {
            RunEvent::LaunchStarted { module, launch, attempt, .. } => {
                if let Some(module) = self.modules.get_mut(module.0) {
                    module.attempts.insert(launch.0, *attempt);
                }
            }
            RunEvent::Introduced { module, launch, introduction } => {
                let Some(shown) = self.modules.get_mut(module.0) else { return Ok(()) };
                let (framework, architecture) = (&introduction.framework, &introduction.architecture);
                let first = shown.suffix.is_empty();
                shown.suffix =
                    Clean(&format!(" ({}|{})", short_framework(framework), architecture.to_lowercase()))
                        .to_string();
                let attempt = shown.attempts.get(&launch.0).copied().unwrap_or(1);
                if first || attempt > 1 {
                    let again = if attempt > 1 { format!("(try {attempt}) ") } else { String::new() };
                    writeln!(self.out, "{DIM}{again}running tests from {}{DIM:#}", self.title(*module))?;
                }
            }
            RunEvent::TestEnded { module, result, .. } => {
                if let Some(attempt) = attempt {
                    self.result(*module, result, attempt)?;
                }
            }
            RunEvent::TestSlow { module, name, running, .. } => {
                let (name, title) = (Clean(name), self.title(*module));
                writeln!(
                    self.out,
                    "{MIDDLE}slow{MIDDLE:#} {name} has been running for {} in {title}",
                    time(*running)
                )?;
            }
            RunEvent::Artifact { artifact, .. } => {
                let path = Clean(&artifact.path.to_string_lossy()).to_string();
                self.artifacts.push((artifact.test_name.clone(), path));
            }
            RunEvent::Message { module, text, .. } => {
                writeln!(self.out, "{}: {}", self.title(*module), Clean(text.trim_end()))?;
            }
            RunEvent::LaunchEnded { module, end, .. } => self.launch_ended(*module, end)?,
            RunEvent::ModuleEnded { module, totals, exit_code, duration } => {
                self.module_ended(*module, totals, *exit_code, *duration)?;
            }
            RunEvent::RunEnded { totals, exit_code, duration } => {
                self.summary(totals, *exit_code, *duration)?;
            }
            _ => {}
        }
        self.out.flush()
    }

    fn title(&self, module: ModuleId) -> String {
        self.modules.get(module.0).map(|shown| format!("{}{}", shown.path, shown.suffix)).unwrap_or_default()
    }

    fn result(&mut self, module: ModuleId, result: &TestResult, attempt: &Attempt) -> io::Result<()> {
        use runtap_mtp::State;

        let name = Clean(&result.name).to_string();
        let again = if result.attempt > 1 { format!(" (try {})", result.attempt) } else { String::new() };
        let took = result.duration.map(|duration| format!(" ({})", time(duration))).unwrap_or_default();
        match result.state {
            State::Passed if result.flaky => {
                self.flaky.push((module, name.clone()));
                writeln!(self.out, "{MIDDLE}flaky{MIDDLE:#}{again} {name}{took}")
            }
            State::Passed if self.detail == Detail::Detailed => {
                writeln!(self.out, "{GOOD}passed{GOOD:#}{again} {name}{took}")
            }
            State::Passed => Ok(()),
            State::Skipped if self.detail == Detail::Minimal => Ok(()),
            State::Skipped => {
                writeln!(self.out, "{MIDDLE}skipped{MIDDLE:#} {name}")?;
                match attempt.reason.as_deref().filter(|reason| !reason.is_empty()) {
                    Some(reason) => writeln!(self.out, "  {}", Clean(reason.trim_end())),
                    None => Ok(()),
                }
            }
            state => {
                let text = failure(attempt);
                writeln!(self.out, "{BAD}{}{BAD:#}{again} {name}{took}", state.word())?;
                writeln!(self.out, "  {DIM}from {}{DIM:#}", self.title(module))?;
                self.out.write_all(text.as_bytes())?;
                self.failures
                    .retain(|(of, known, _)| !(*of == module && *known == name && result.attempt > 1));
                self.failures.push((module, name, format!("{}{took}", state.word())));
                Ok(())
            }
        }?;
        if result.flaky {
            let name = Clean(&result.name).to_string();
            self.failures.retain(|(of, known, _)| !(*of == module && *known == name));
        }
        Ok(())
    }

    fn launch_ended(&mut self, module: ModuleId, end: &LaunchEnd) -> io::Result<()> {
        for failure in &end.failures {
            let text = Clean(&describe(failure)).to_string();
            writeln!(self.out, "{BAD}error{BAD:#} {} {text}", self.title(module))?;
            self.broken.push((module, text));
        }
        if !end.failures.is_empty() {
            for (what, text) in [("standard output", &end.stdout), ("error output", &end.stderr)] {
                if !text.trim().is_empty() {
                    writeln!(self.out, "  {DIM}{what}:{DIM:#}\n{}", indented(text))?;
                }
            }
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
        let (style, word) = if exit_code == 0 { (GOOD, "passed") } else { (BAD, "failed") };
        let counts = counts(totals);
        writeln!(self.out, "{style}{word}{style:#} {} {counts} ({})", self.title(module), time(duration))
    }

    fn summary(&mut self, totals: &Totals, exit_code: i32, duration: Duration) -> io::Result<()> {
        let several = self.modules.len() > 1;
        let from = |module: &ModuleId, lines: &Self| {
            if several { format!("  {DIM}{}{DIM:#}", lines.title(*module)) } else { String::new() }
        };
        if !self.failures.is_empty() {
            writeln!(self.out, "\nfailed:")?;
            for (module, name, state) in &self.failures {
                let line = format!("  {BAD}{state}{BAD:#} {name}{}\n", from(module, self));
                self.out.write_all(line.as_bytes())?;
            }
        }
        if !self.flaky.is_empty() {
            writeln!(self.out, "\nflaky:")?;
            for (module, name) in &self.flaky {
                let line = format!("  {MIDDLE}{name}{MIDDLE:#}{}\n", from(module, self));
                self.out.write_all(line.as_bytes())?;
            }
        }
        if !self.broken.is_empty() {
            writeln!(self.out, "\nbroken modules:")?;
            for (module, why) in &self.broken {
                let line = format!("  {}: {why}\n", self.title(*module));
                self.out.write_all(line.as_bytes())?;
            }
        }
        if !self.artifacts.is_empty() {
            writeln!(self.out, "\nfiles:")?;
            for (test, path) in &self.artifacts {
                let of = test.as_deref().map(|test| format!(" ({})", Clean(test))).unwrap_or_default();
                writeln!(self.out, "  {path}{of}")?;
            }
        }
        let (style, word) = if exit_code == 0 { (GOOD, "passed") } else { (BAD, verdict(exit_code)) };
        writeln!(
            self.out,
            "\n{style}{word}{style:#}: {} tests, {} ({})",
            totals.total(),
            counts(totals),
            time(duration)
        )?;
        if exit_code != 0 {
            writeln!(self.out, "exit code {exit_code}")?;
        }
        Ok(())
    }
}

/// The verdict about a run, by its exit code.
fn verdict(code: i32) -> &'static str {
    use runtap_mtp::code;

    match code {
        code::ABORTED => "stopped",
        code::ZERO_TESTS => "no tests were run",
        code::TOO_FEW => "fewer tests than expected",
        code::TOO_MANY_FAILED => "stopped: too many tests failed",
        _ => "failed",
    }
}

/// Those that are not 0; passed always.
fn counts(totals: &Totals) -> String {
    let mut parts = vec![format!("{} passed", totals.passed)];
    let others = [
        (totals.failed, "failed"),
        (totals.error, "error"),
        (totals.timeout, "timed out"),
        (totals.cancelled, "cancelled"),
        (totals.skipped, "skipped"),
        (totals.flaky, "flaky"),
        (totals.retried, "retried"),
    ];
    parts.extend(
        others.into_iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}")),
    );
    parts.join(", ")
}

/// What explains a failure, indented.
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
    for (what, output) in [("standard output", &attempt.stdout), ("error output", &attempt.stderr)] {
        if !output.trim().is_empty() {
            text.extend(["  ", what, ":\n", &indented(output), "\n"]);
        }
    }
    text
}

/// Each line by four, cleaned of what a terminal would obey; of a long text, beginning and end.
fn indented(text: &str) -> String {
    let lines: Vec<_> = text.trim_end().lines().collect();
    let line = |line: &&str| format!("    {}", Clean(line.trim_end()));
    if lines.len() <= HEAD + TAIL {
        return lines.iter().map(line).collect::<Vec<_>>().join("\n");
    }
    let (head, rest) = lines.split_at(HEAD);
    let (left_out, tail) = rest.split_at(rest.len() - TAIL);
    let middle = format!("    … {} lines left out …", left_out.len());
    head.iter().map(line).chain([middle]).chain(tail.iter().map(line)).collect::<Vec<_>>().join("\n")
}

/// A duration as people read it.
fn time(duration: Duration) -> String {
    match duration.as_secs() {
        0 => format!("{} ms", duration.as_millis()),
        seconds @ 1..60 => format!("{seconds}.{:03} s", duration.subsec_millis()),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

//! One check: its outcome and its duration.

use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

use crate::output;

/// The outcome of a check that did not fail.
#[derive(Debug)]
pub enum Outcome {
    /// It ran and found no problem.
    Passed,
    /// It could not run on this machine; the text names what is missing.
    Skipped(String),
    /// Its findings are informative and do not affect the result.
    Told(String),
}

/// A finished step.
#[derive(Debug)]
pub struct Report {
    /// The name of the step.
    pub name: &'static str,
    /// The outcome, or why the step failed.
    pub outcome: Result<Outcome>,
    /// The duration.
    pub time: Duration,
}

/// Whether a step may be skipped when something is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The step may be skipped.
    Skip,
    /// The step fails.
    Fail,
}

/// Runs one step under its heading; the next step runs regardless of the result.
pub fn run(name: &'static str, missing: Missing, work: impl FnOnce() -> Result<Outcome>) -> Report {
    output::heading(name);
    let start = Instant::now();
    let outcome = judge(missing, work());
    match &outcome {
        Ok(Outcome::Passed) => {}
        Ok(Outcome::Skipped(why)) => output::note(&format!("skipped: {why}")),
        Ok(Outcome::Told(what)) => output::note(what),
        Err(error) => output::error(&format!("{name}: {error:#}")),
    }
    let time = start.elapsed();
    // A run that is stopped from outside prints no summary.
    output::note(&format!("({name}: {:.0} s)", time.as_secs_f64()));
    Report { name, outcome, time }
}

fn judge(missing: Missing, outcome: Result<Outcome>) -> Result<Outcome> {
    match outcome {
        Ok(Outcome::Skipped(why)) if missing == Missing::Fail => Err(anyhow!("not run: {why}")),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_tool_fails_only_where_everything_was_asked_for() {
        let skipped = || Ok(Outcome::Skipped("no such tool".to_owned()));
        assert!(matches!(judge(Missing::Skip, skipped()), Ok(Outcome::Skipped(_))));
        let told = Ok(Outcome::Told("worth knowing".to_owned()));
        assert!(matches!(judge(Missing::Fail, told), Ok(Outcome::Told(_))));
        let error = judge(Missing::Fail, skipped()).unwrap_err();
        assert!(error.to_string().contains("no such tool"), "{error}");
    }
}

//! Conversions of the runner's results, totals and facts to those of reports.

use std::mem::take;

use runtap_test_report::{Artifact, Attempt, Exception, Facts, Level, Location, State, Totals, Trait};

/// Converts the totals of a run.
pub(super) fn counted(totals: &crate::Totals) -> Totals {
    Totals {
        total: totals.total(),
        passed: totals.passed,
        failed: totals.failed,
        skipped: totals.skipped,
        error: totals.error,
        timeout: totals.timeout,
        cancelled: totals.cancelled,
        flaky: totals.flaky,
        retried: totals.retried,
        forgiven: totals.quarantined,
    }
}

pub(super) fn facts(known: &crate::TestInfo) -> Facts {
    let line = known.line.and_then(|line| u32::try_from(line).ok());
    let traits = known.traits.iter();
    Facts {
        namespace: known.namespace.clone(),
        type_name: known.type_name.clone(),
        method: known.method.clone(),
        location: known.file.clone().map(|file| Location { file, line }),
        traits: traits.map(|(key, value)| Trait { key: key.clone(), value: value.clone() }).collect(),
    }
}

/// Converts a result, moving its texts.
pub(super) fn attempt(result: &mut crate::TestResult) -> Attempt {
    let exceptions = result.exceptions.drain(..).map(|exception| Exception {
        message: exception.message.unwrap_or_default(),
        type_name: exception.type_name.unwrap_or_default(),
        stack: exception.stack.unwrap_or_default(),
    });
    let exceptions = exceptions.collect();
    Attempt {
        state: match result.state {
            crate::State::Passed => State::Passed,
            crate::State::Failed => State::Failed,
            crate::State::Skipped => State::Skipped,
            crate::State::Error => State::Error,
            crate::State::Timeout => State::Timeout,
            crate::State::Cancelled => State::Cancelled,
        },
        started: None,
        duration_ns: result.duration.map(|it| i64::try_from(it.as_nanos()).unwrap_or(i64::MAX)),
        reason: result.reason.take(),
        exceptions,
        expected: result.expected.take(),
        actual: result.actual.take(),
        stdout: take(&mut result.stdout),
        stderr: take(&mut result.stderr),
    }
}

pub(super) fn shown_artifact(artifact: &crate::Artifact) -> Artifact {
    Artifact {
        path: artifact.path.to_string_lossy().into_owned(),
        name: artifact.name.clone().unwrap_or_default(),
        description: artifact.description.clone().unwrap_or_default(),
    }
}

pub(super) fn level(severity: crate::Severity) -> Level {
    match severity {
        crate::Severity::Information => Level::Info,
        crate::Severity::Warning => Level::Warning,
        crate::Severity::Error => Level::Error,
    }
}

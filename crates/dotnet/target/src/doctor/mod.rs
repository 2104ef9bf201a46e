//! Finds out why a process can't be reached or does not do what is requested, and how to fix it. The examination is complete on
//! Linux; on other systems it is limited to what the system shows.
//!
//! First all facts are gathered ([`examine`]: what the system shows of the process, whether its runtime answers, and what blocks
//! it). Then the pure function [`Examination::diagnose`] judges them, so that equal facts give equal findings on every machine. The
//! texts may change; the codes are stable.
//!
//! Nothing is changed. No connection is made to a tool's port, because the tool would take it for a runtime's.

mod answer;
#[cfg(target_os = "linux")]
mod diagnose;
#[cfg_attr(not(target_os = "linux"), path = "elsewhere.rs")]
mod examine;
#[cfg(target_os = "linux")]
mod jvm;
#[cfg(target_os = "linux")]
mod machine;
#[cfg(all(test, target_os = "linux"))]
mod tests;

use runtap_discover::{Fix, ReasonCode};

pub use self::answer::{Answer, query};
#[cfg(target_os = "linux")]
pub use self::examine::AwaitedPort;
#[cfg(not(target_os = "linux"))]
pub use self::examine::query_jvms;
pub use self::examine::{
    Examination, examine, examine_queried, explain, no_dumps, query_all, reasons, settled, stopped,
    stuck_at_startup,
};
#[cfg(target_os = "linux")]
pub use self::jvm::{JvmExamination, Listener, query_jvms};
#[cfg(target_os = "linux")]
pub use self::machine::machine;

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// The process can't be reached because of this.
    Error,
    /// A function does not work, or the process waits for something.
    Warning,
    /// Information: other tools may fail because of this.
    Info,
}

impl Severity {
    /// Returns `error`, `warning` or `info`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Info => "info",
        }
    }
}

/// A problem and how to fix it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The kind of problem.
    pub code: ReasonCode,
    /// The severity.
    pub severity: Severity,
    /// The problem in words: the predicate of a sentence whose subject is the process or the machine.
    pub detail: String,
    /// What to do, in this order. Not empty.
    pub fixes: Vec<Fix>,
}

impl Finding {
    fn new(code: ReasonCode, severity: Severity, detail: impl Into<String>, fix: impl Into<Fix>) -> Self {
        Self { code, severity, detail: detail.into(), fixes: vec![fix.into()] }
    }
}

/// The problems of a process, most severe first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnosis {
    /// Whether the runtime answers; for a Java program, whether no obstacle to attaching was found.
    pub reachable: bool,
    /// The findings. Empty if there are no problems.
    pub findings: Vec<Finding>,
}

impl Diagnosis {
    /// Returns the code of the first error.
    pub fn reason(&self) -> Option<ReasonCode> {
        let error = self.findings.iter().find(|finding| finding.severity == Severity::Error);
        error.map(|finding| finding.code)
    }
}

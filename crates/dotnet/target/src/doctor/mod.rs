//! Why a process can't be reached or does not do what it is asked, and what fixes it. On Linux
//! everything is looked at; elsewhere (`elsewhere.rs`) what the system shows there, which is little.
//!
//! First everything is gathered ([`examine`]: what the system shows of the process, whether its runtime answers, and
//! who keeps it from that), then judged by a pure function ([`Examination::diagnose`]): the same facts give the same
//! findings, whatever machine they come from. The texts are for people and may change; the codes are a contract.
//!
//! Refuses to change anything, and to connect to a tool's port: it would be taken for a runtime.

mod answer;
#[cfg(target_os = "linux")]
mod diagnose;
#[cfg_attr(not(target_os = "linux"), path = "elsewhere.rs")]
mod examine;
#[cfg(target_os = "linux")]
mod machine;
#[cfg(all(test, target_os = "linux"))]
mod tests;

use runtap_discover::{Code, Fix};

pub use self::answer::{Answer, ask};
#[cfg(target_os = "linux")]
pub use self::examine::AwaitedPort;
pub use self::examine::{
    Examination, ask_all, examine, examine_asked, explain, no_dumps, reasons, settled, stopped,
    stuck_at_startup,
};
#[cfg(target_os = "linux")]
pub use self::machine::machine;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// The process can't be reached because of this.
    Error,
    /// Something will not work, or waits for somebody.
    Warning,
    /// Good to know: other tools may stumble over it.
    Info,
}

impl Severity {
    /// `error`, `warning` or `info`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Info => "info",
        }
    }
}

/// One thing that is wrong, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// What, in one word.
    pub code: Code,
    /// How bad it is.
    pub severity: Severity,
    /// What exactly: the end of a sentence that begins with the process, or with the machine.
    pub detail: String,
    /// What to do about it, in this order. Not empty.
    pub fixes: Vec<Fix>,
}

impl Finding {
    fn new(code: Code, severity: Severity, detail: impl Into<String>, fix: impl Into<Fix>) -> Self {
        Self { code, severity, detail: detail.into(), fixes: vec![fix.into()] }
    }
}

/// What is wrong with a process: the worst first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnosis {
    /// Whether its runtime answers.
    pub reachable: bool,
    /// What was found. Empty if all is well.
    pub findings: Vec<Finding>,
}

impl Diagnosis {
    /// Why it can't be reached, in one word.
    pub fn reason(&self) -> Option<Code> {
        let error = self.findings.iter().find(|finding| finding.severity == Severity::Error);
        error.map(|finding| finding.code)
    }
}

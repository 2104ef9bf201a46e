//! The examination on systems other than Linux: whether a runtime answers, and whether another process listens in its place. Why a
//! runtime does not answer cannot be seen there.

use std::io;

use runtap_diag::Error;
use runtap_discover::{Facts, Fix, ReasonCode, System};
use tokio::task::JoinSet;

use crate::doctor::answer::{Answer, DEADLINE, query};
use crate::doctor::{Diagnosis, Finding, Severity};

/// The facts about a process.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Examination {
    /// What the system shows.
    pub facts: Facts,
    /// The answer of the runtime.
    pub answer: Answer,
}

impl Examination {
    /// Returns the problems of the process.
    pub fn diagnose(&self) -> Diagnosis {
        let reachable = matches!(self.answer, Answer::Answered(_));
        Diagnosis { reachable, findings: self.finding().into_iter().collect() }
    }

    fn finding(&self) -> Option<Finding> {
        let error = |code, detail: &str, fix: Fix| Finding::new(code, Severity::Error, detail, fix);
        if let (Some(not_found), Answer::NotQueried) = (&self.facts.not_found, &self.answer) {
            let reason = &not_found.reason;
            return Some(error(reason.code(), &reason.to_string(), reason.fix()));
        }
        let text = |text: &'static str| Fix::from(text);
        Some(match &self.answer {
            Answer::Answered(_) => return None,
            Answer::TimedOut => error(
                ReasonCode::Busy,
                "is not responding: its diagnostics server may be busy with another tool, or a debugger has stopped it",
                text("stop other diagnostic tools that are connected to it, and try again"),
            ),
            Answer::NotPermitted => error(
                ReasonCode::OtherUser,
                "belongs to another user, or runs with more privileges than you have",
                text("run runtap as that user, or as an administrator"),
            ),
            Answer::WrongPeer(who) => error(
                ReasonCode::ForeignSocket,
                &format!("can't be reached because another process listens in its place: {who}"),
                text("check what that process is, and stop it if it is not expected there"),
            ),
            Answer::NotQueried | Answer::NoSocket | Answer::NoListener => error(
                ReasonCode::NoSuchProcess,
                "has exited, or has no diagnostics server",
                Fix::ChooseAnother,
            ),
            Answer::Failed(why) => error(
                ReasonCode::NotDotnet,
                &format!("does not respond like a .NET runtime: {why}"),
                Fix::ChooseAnother,
            ),
        })
    }
}

/// Examines one process.
///
/// # Errors
/// Never fails on this system.
pub async fn examine(system: &System, pid: u32) -> io::Result<Examination> {
    let facts = system.facts(pid);
    let answer = query(facts.endpoint(), DEADLINE).await;
    Ok(Examination { facts, answer })
}

/// Returns what the system shows of a process. Does not wait, because the progress of its startup cannot be seen.
///
/// # Errors
/// Never fails on this system.
#[allow(clippy::unused_async, reason = "the same as on Linux")]
pub async fn settled(system: &System, pid: u32) -> io::Result<Facts> {
    Ok(system.facts(pid))
}

/// Queries the runtimes of these processes at the same time, so that a busy one does not delay the others.
pub async fn query_all(all: Vec<Facts>) -> Vec<(Facts, Answer)> {
    let mut asking = JoinSet::new();
    for facts in all {
        asking.spawn(async move {
            let answer = query(facts.endpoint(), DEADLINE).await;
            (facts, answer)
        });
    }
    asking.join_all().await
}

/// Examines processes that were queried.
pub fn examine_queried(_system: &System, asked: Vec<(Facts, Answer)>) -> Vec<Examination> {
    asked.into_iter().map(|(facts, answer)| Examination { facts, answer }).collect()
}

/// Does nothing: Java programs are not examined on this system.
#[allow(clippy::unused_async, reason = "the same as on Linux")]
pub async fn query_jvms(_examinations: &mut [Examination]) {}

/// Returns why each of the queried processes cannot be reached, or `None` if it can.
pub fn reasons(system: &System, asked: Vec<(u32, Answer)>) -> Vec<Option<ReasonCode>> {
    let one = |(pid, answer)| Examination { facts: system.facts(pid), answer }.diagnose().reason();
    asked.into_iter().map(one).collect()
}

/// Returns why a process did not execute a command. `None` if unknown or if the process id is unknown.
pub fn explain(system: &System, error: &Error) -> Option<Finding> {
    let pid = error.unanswered()?.process_id()?;
    Examination { facts: system.facts(pid), answer: Answer::of_error(error) }.finding()
}

/// Returns why a process is stopped. Always `None` on this system.
pub fn stopped(_system: &System, _pid: u32) -> Option<Finding> {
    None
}

/// Returns why a process can't write dumps. Always `None` on this system.
pub fn no_dumps(_system: &System, _pid: u32) -> Option<Finding> {
    None
}

/// Returns why a process is stuck at startup. Always `None` on this system.
pub fn stuck_at_startup(_system: &System, _pid: u32) -> Option<Finding> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_has_a_code() {
        let reason = |answer| Examination { answer, ..Examination::default() }.diagnose().reason();
        assert_eq!(reason(Answer::Answered(None)), None);
        assert_eq!(reason(Answer::TimedOut), Some(ReasonCode::Busy));
        assert_eq!(reason(Answer::NotPermitted), Some(ReasonCode::OtherUser));
        assert_eq!(reason(Answer::WrongPeer("x".to_owned())), Some(ReasonCode::ForeignSocket));
        assert_eq!(reason(Answer::NoSocket), Some(ReasonCode::NoSuchProcess));
        assert_eq!(reason(Answer::Failed("x".to_owned())), Some(ReasonCode::NotDotnet));
    }
}

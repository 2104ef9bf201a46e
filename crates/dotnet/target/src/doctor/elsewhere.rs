//! The examination on other systems than Linux: whether a runtime answers, and who else listens in its place. What keeps
//! it from answering does not show there.

use std::io;

use runtap_diag::Error;
use runtap_discover::{Code, Facts, Fix, System};
use tokio::task::JoinSet;

use crate::doctor::answer::{Answer, DEADLINE, ask};
use crate::doctor::{Diagnosis, Finding, Severity};

/// Everything that is known of a process.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Examination {
    /// What the system shows.
    pub facts: Facts,
    /// Whether its runtime answers.
    pub answer: Answer,
}

impl Examination {
    /// What is wrong with the process.
    pub fn diagnose(&self) -> Diagnosis {
        let reachable = matches!(self.answer, Answer::Answered(_));
        Diagnosis { reachable, findings: self.finding().into_iter().collect() }
    }

    fn finding(&self) -> Option<Finding> {
        let error = |code, detail: &str, fix: Fix| Finding::new(code, Severity::Error, detail, fix);
        if let (Some(not_found), Answer::NotAsked) = (&self.facts.not_found, &self.answer) {
            let reason = &not_found.reason;
            return Some(error(reason.code(), &reason.to_string(), reason.fix()));
        }
        let text = |text: &'static str| Fix::from(text);
        Some(match &self.answer {
            Answer::Answered(_) => return None,
            Answer::Silent => error(
                Code::Busy,
                "does not answer: another tool may keep its server busy, or a debugger holds it",
                text("look for other diagnostic tools that talk to it, end them, and try again"),
            ),
            Answer::NotPermitted => error(
                Code::OtherUser,
                "belongs to another user, or runs with more rights than we have",
                text("run runtap as that user, or as an administrator"),
            ),
            Answer::Foreign(who) => error(
                Code::ForeignSocket,
                &format!("has another one listening in its place: {who}"),
                text("find out what that process is, and end it if it is not meant to be there"),
            ),
            Answer::NotAsked | Answer::NotThere | Answer::NobodyListens => {
                error(Code::NoSuchProcess, "has gone, or has no diagnostics server", Fix::ChooseAnother)
            }
            Answer::Failed(why) => error(
                Code::NotDotnet,
                &format!("does not answer as a .NET runtime does: {why}"),
                Fix::ChooseAnother,
            ),
        })
    }
}

/// Examines one process.
///
/// # Errors
/// None here.
pub async fn examine(system: &System, pid: u32) -> io::Result<Examination> {
    let facts = system.facts(pid);
    let answer = ask(facts.endpoint(), DEADLINE).await;
    Ok(Examination { facts, answer })
}

/// What the system shows of a process. How far it has come does not show, so nothing is waited for.
///
/// # Errors
/// None here.
#[allow(clippy::unused_async, reason = "the same as on Linux")]
pub async fn settled(system: &System, pid: u32) -> io::Result<Facts> {
    Ok(system.facts(pid))
}

/// Asks the runtimes of these processes who they are, all at the same time: a busy one costs the others nothing.
pub async fn ask_all(all: Vec<Facts>) -> Vec<(Facts, Answer)> {
    let mut asking = JoinSet::new();
    for facts in all {
        asking.spawn(async move {
            let answer = ask(facts.endpoint(), DEADLINE).await;
            (facts, answer)
        });
    }
    asking.join_all().await
}

/// Looks at processes that were asked.
pub fn examine_asked(_system: &System, asked: Vec<(Facts, Answer)>) -> Vec<Examination> {
    asked.into_iter().map(|(facts, answer)| Examination { facts, answer }).collect()
}

/// Why processes that were asked already can't be reached, each in one word.
pub fn reasons(system: &System, asked: Vec<(u32, Answer)>) -> Vec<Option<Code>> {
    let one = |(pid, answer)| Examination { facts: system.facts(pid), answer }.diagnose().reason();
    asked.into_iter().map(one).collect()
}

/// Why a process could not be reached that was asked something else. `None` where nothing is found, or the process is not
/// known by its id.
pub fn explain(system: &System, error: &Error) -> Option<Finding> {
    let pid = error.unanswered()?.process_id()?;
    Examination { facts: system.facts(pid), answer: Answer::of_error(error) }.finding()
}

/// What keeps a process from answering anything at all: that does not show here.
pub fn stopped(_system: &System, _pid: u32) -> Option<Finding> {
    None
}

/// Why a process can't write dumps: that does not show here.
pub fn no_dumps(_system: &System, _pid: u32) -> Option<Finding> {
    None
}

/// For what a process waits at its start: that does not show here.
pub fn stuck_at_startup(_system: &System, _pid: u32) -> Option<Finding> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_has_its_word() {
        let reason = |answer| Examination { answer, ..Examination::default() }.diagnose().reason();
        assert_eq!(reason(Answer::Answered(None)), None);
        assert_eq!(reason(Answer::Silent), Some(Code::Busy));
        assert_eq!(reason(Answer::NotPermitted), Some(Code::OtherUser));
        assert_eq!(reason(Answer::Foreign("x".to_owned())), Some(Code::ForeignSocket));
        assert_eq!(reason(Answer::NotThere), Some(Code::NoSuchProcess));
        assert_eq!(reason(Answer::Failed("x".to_owned())), Some(Code::NotDotnet));
    }
}

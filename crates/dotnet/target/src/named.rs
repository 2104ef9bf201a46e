//! Finds the processes that have a name, all of one user ([`UserFilter`]). Processes of other users that have the name are found too and
//! reported as skipped. Only root can reach processes of other users; for other users they matter only if none of their own
//! processes has the name.

use std::mem;
use std::time::Duration;

use crate::doctor::Answer;
use runtap_discover::{Options, Process, ProcessKind};
use runtap_os::{allow_many_files, in_a_thread, is_root};

use crate::dialogue::{Dialogue, Remark};
use crate::error::{Error, MatchingProcess};
use crate::resolved::local_name;
use crate::user::UserFilter;

/// The time in which a runtime must report its identity when several runtimes are queried.
pub(crate) const DEADLINE: Duration = Duration::from_millis(250);

/// The time for a second attempt, if the wanted process may be among those that did not answer in time.
const SECOND_DEADLINE: Duration = Duration::from_secs(3);

/// The processes that have a name.
#[derive(Debug)]
pub(crate) struct Named<'a> {
    name: &'a str,
    /// The processes of the selected user. Not empty.
    pub(crate) processes: Vec<Process>,
    /// The processes of other users.
    left_out: Vec<Process>,
}

impl<'a> Named<'a> {
    /// Finds the processes with this name. The name may be the kernel's, that of a file, or the entry assembly that the runtime
    /// reports.
    pub(crate) async fn find(name: &'a str, whose: UserFilter<'_>) -> Result<Self, Error> {
        whose.check()?;
        // Query all of them: a process whose file has another name may have this entry assembly.
        let mut all = in_a_thread(|| runtap_discover::processes(Options::default().all_users(true))).await?;
        let java = java_called(name, &all, |process| whose.includes(process));
        all.retain(|process| process.kind == ProcessKind::Dotnet);
        let (mut silent, others): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|process| whose.includes(process));
        let left_out = called(name, others, DEADLINE);
        // The wanted process, or the whole machine, may be busy.
        let ours = async {
            for limit in [DEADLINE, SECOND_DEADLINE] {
                let (found, others) = called(name, mem::take(&mut silent), limit).await;
                silent = others;
                if !found.is_empty() {
                    return found;
                }
            }
            Vec::new()
        };
        let (processes, (left_out, _)) = tokio::join!(ours, left_out);
        if !processes.is_empty() {
            // Only root can use processes of other users.
            let left_out = if is_root() { left_out } else { Vec::new() };
            return Ok(Self { name, processes, left_out });
        }
        let (name, user) = (name.to_owned(), whose.0.map(str::to_owned));
        if left_out.is_empty() {
            let silent = silent.iter().map(|process| process.pid).collect();
            return Err(Error::NoMatch { name, user, silent, java });
        }
        Err(Error::OtherUsersOnly {
            name,
            user,
            processes: left_out.iter().map(MatchingProcess::from).collect(),
        })
    }

    /// Reports which processes of other users are skipped.
    pub(crate) fn remark_left_out(&self, dialogue: &impl Dialogue) {
        if !self.left_out.is_empty() {
            dialogue.remark(Remark::SkippedOtherUsers { name: self.name, processes: &self.left_out });
        }
    }

    /// Returns the process if there is exactly one.
    pub(crate) fn only(mut self) -> Result<Process, Error> {
        match self.processes.pop() {
            Some(process) if self.processes.is_empty() => Ok(process),
            last => {
                let processes = self.processes.iter().chain(&last).map(MatchingProcess::from).collect();
                Err(Error::Ambiguous { name: self.name.to_owned(), processes })
            }
        }
    }
}

/// Returns the Java programs with this name, for an error message about a name that was taken for a .NET program's.
pub(crate) fn java_called(
    name: &str,
    all: &[Process],
    is_meant: impl Fn(&Process) -> bool,
) -> Vec<MatchingProcess> {
    let is_called = |process: &&Process| {
        process.kind == ProcessKind::Jvm
            && is_meant(process)
            && (local_name(process) == name || process.comm == name)
    };
    all.iter().filter(is_called).map(MatchingProcess::from).collect()
}

/// Returns the processes with this name, and of the others those that did not report their names in time.
async fn called(name: &str, processes: Vec<Process>, limit: Duration) -> (Vec<Process>, Vec<Process>) {
    let (mut found, mut silent) = (Vec::new(), Vec::new());
    let told = query_all(&processes, limit).await;
    for (process, answer) in processes.into_iter().zip(told) {
        let entry = match &answer {
            Answer::Answered(Some(info)) => info.entry_assembly.as_deref(),
            _ => None,
        };
        if process.comm == name || local_name(&process) == name || entry == Some(name) {
            found.push(process);
        } else if matches!(answer, Answer::TimedOut | Answer::NotQueried) {
            silent.push(process);
        }
    }
    (found, silent)
}

/// Queries all processes at the same time, so that a busy one does not delay the others. The answers are in the order of the list.
pub(crate) async fn query_all(processes: &[Process], limit: Duration) -> Vec<Answer> {
    // Each process may have many sockets that look like its own.
    allow_many_files();
    let asking: Vec<_> = processes
        .iter()
        .map(|process| tokio::spawn(crate::doctor::query(process.endpoint(), limit)))
        .collect();
    let mut answers = Vec::with_capacity(asking.len());
    for task in asking {
        answers.push(task.await.unwrap_or(Answer::TimedOut));
    }
    answers
}

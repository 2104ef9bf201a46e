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
use crate::jvm::JvmTarget;
use crate::resolve::Selectable;
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
    pub(crate) async fn find(
        name: &'a str,
        whose: UserFilter<'_>,
        selectable: Selectable,
    ) -> Result<Self, Error> {
        whose.check()?;
        // Query all of them: a process whose file has another name may have this entry assembly.
        let mut all = in_a_thread(|| runtap_discover::processes(Options::default().all_users(true))).await?;
        let is_java = |process: &mut Process| process.kind == ProcessKind::Jvm;
        let java = all.extract_if(.., is_java).filter(|process| is_java_called(name, process));
        let (mut java, java_of_others): (Vec<_>, Vec<_>) = java.partition(|process| whose.includes(process));
        let (mut found_java, mut others_java) = (Vec::new(), Vec::new());
        if selectable == Selectable::Managed {
            (found_java, others_java) = (mem::take(&mut java), java_of_others);
        }
        let (mut silent, others): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|process| whose.includes(process));
        let left_out = called(name, others, DEADLINE);
        // The wanted process, or the whole machine, may be busy.
        let ours = async {
            for limit in [DEADLINE, SECOND_DEADLINE] {
                let (found, others) = called(name, mem::take(&mut silent), limit).await;
                silent = others;
                found_java.extend(found);
                if !found_java.is_empty() {
                    return found_java;
                }
            }
            Vec::new()
        };
        let (processes, (mut left_out, _)) = tokio::join!(ours, left_out);
        left_out.append(&mut others_java);
        if !processes.is_empty() {
            // Only root can use processes of other users.
            let left_out = if is_root() { left_out } else { Vec::new() };
            return Ok(Self { name, processes, left_out });
        }
        if java.len() == 1
            && let Some(java) = java.pop()
        {
            return Err(Error::Java(JvmTarget::new(java)));
        }
        let (name, user) = (name.to_owned(), whose.0.map(str::to_owned));
        if left_out.is_empty() {
            let java = java.iter().map(MatchingProcess::from).collect();
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

/// Whether a Java program has this name: its main class or archive, or the kernel's name.
fn is_java_called(name: &str, process: &Process) -> bool {
    local_name(process) == name || process.comm == name
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

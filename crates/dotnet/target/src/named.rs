//! From a name to processes, all of one user ([`Whose`]). Those of others that are called so are found too: it is said that they
//! are left out. Who is not root can reach no others, and learns of them where he has none of that name himself.

use std::mem;
use std::time::Duration;

use crate::doctor::Answer;
use runtap_discover::{Kind, Options, Process};
use runtap_os::{allow_many_files, in_a_thread, is_root};

use crate::dialogue::{Dialogue, Remark};
use crate::error::{Error, Row};
use crate::subject::local_name;
use crate::user::Whose;

/// How long a runtime may take to say who it is, where several are asked.
pub(crate) const DEADLINE: Duration = Duration::from_millis(250);

/// The same, where the one that is looked for may be among those that did not answer in time.
const PATIENCE: Duration = Duration::from_secs(3);

/// The processes of a name.
#[derive(Debug)]
pub(crate) struct Named<'a> {
    name: &'a str,
    /// Of the user who is meant; at least one.
    pub(crate) processes: Vec<Process>,
    /// Of others.
    left_out: Vec<Process>,
}

impl<'a> Named<'a> {
    /// The processes that are called so: by the kernel, by their files, or by the entry assembly that their runtime reports.
    pub(crate) async fn find(name: &'a str, whose: Whose<'_>) -> Result<Self, Error> {
        whose.check()?;
        // All are asked: one that is called otherwise on disk may have this entry assembly.
        let mut all = in_a_thread(|| runtap_discover::processes(Options::default().all_users(true))).await?;
        let java = java_called(name, &all, |process| whose.has(process));
        all.retain(|process| process.kind == Kind::Dotnet);
        let (mut silent, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|process| whose.has(process));
        let left_out = called(name, others, DEADLINE);
        // The one that is meant may be busy, or the whole machine.
        let ours = async {
            for limit in [DEADLINE, PATIENCE] {
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
            // Who is not root could do nothing with those of others.
            let left_out = if is_root() { left_out } else { Vec::new() };
            return Ok(Self { name, processes, left_out });
        }
        let (name, user) = (name.to_owned(), whose.0.map(str::to_owned));
        if left_out.is_empty() {
            let silent = silent.iter().map(|process| process.pid).collect();
            return Err(Error::Nobody { name, user, silent, java });
        }
        Err(Error::OfOthers { name, user, processes: left_out.iter().map(Row::from).collect() })
    }

    /// Says whose processes are passed over.
    pub(crate) fn remark_left_out(&self, dialogue: &impl Dialogue) {
        if !self.left_out.is_empty() {
            dialogue.remark(Remark::LeftOut { name: self.name, processes: &self.left_out });
        }
    }

    /// The only one.
    pub(crate) fn only(mut self) -> Result<Process, Error> {
        match self.processes.pop() {
            Some(process) if self.processes.is_empty() => Ok(process),
            last => {
                let processes = self.processes.iter().chain(&last).map(Row::from).collect();
                Err(Error::Several { name: self.name.to_owned(), processes })
            }
        }
    }
}

/// The Java programs that are called so, for whoever takes one for a .NET program.
pub(crate) fn java_called(name: &str, all: &[Process], is_meant: impl Fn(&Process) -> bool) -> Vec<Row> {
    let is_called = |process: &&Process| {
        process.kind == Kind::Jvm
            && is_meant(process)
            && (local_name(process) == name || process.comm == name)
    };
    all.iter().filter(is_called).map(Row::from).collect()
}

/// Those of the processes that are called so, and those of the others that did not say in time how they are called.
async fn called(name: &str, processes: Vec<Process>, limit: Duration) -> (Vec<Process>, Vec<Process>) {
    let (mut found, mut silent) = (Vec::new(), Vec::new());
    let told = ask_all(&processes, limit).await;
    for (process, answer) in processes.into_iter().zip(told) {
        let entry = match &answer {
            Answer::Answered(Some(info)) => info.entry_assembly.as_deref(),
            _ => None,
        };
        if process.comm == name || local_name(&process) == name || entry == Some(name) {
            found.push(process);
        } else if matches!(answer, Answer::Silent | Answer::NotAsked) {
            silent.push(process);
        }
    }
    (found, silent)
}

/// Asks every process who it is, all at the same time: a busy one costs the others nothing. In the order of the list.
pub(crate) async fn ask_all(processes: &[Process], limit: Duration) -> Vec<Answer> {
    // Each may have many sockets that look like its own.
    allow_many_files();
    let asking: Vec<_> =
        processes.iter().map(|process| tokio::spawn(crate::doctor::ask(process.endpoint(), limit))).collect();
    let mut answers = Vec::with_capacity(asking.len());
    for task in asking {
        answers.push(task.await.unwrap_or(Answer::Silent));
    }
    answers
}

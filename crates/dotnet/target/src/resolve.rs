//! From a specification to the process that is meant, or to all of them.

use runtap_diag::Client;
use runtap_discover::{Options, Process, System};
use runtap_os::in_a_thread;
use runtap_transport::SocketState;

use crate::dialogue::{Dialogue, Question, Remark};
use crate::error::Error;
use crate::named::Named;
use crate::running::dotnet_only;
use crate::spec::TargetSpec;
use crate::subject::{Subject, local_name};
use crate::user::Whose;

impl TargetSpec {
    /// The one process that is meant, which has to answer: one that is stopped is not waited for.
    ///
    /// # Errors
    /// There is none, there are several, or it can't be asked.
    pub async fn resolve(&self, dialogue: &impl Dialogue) -> Result<Subject, Error> {
        let process = match self {
            Self::Port(port) => return port.resolve(dialogue).await,
            Self::Remote(remote) => return remote.resolve().await,
            Self::Pid(pid) => by_pid(*pid).await?,
            Self::Ask => pick(dialogue).await?,
            Self::Name { name, user } => {
                let named = Named::find(name, Whose(user.as_deref())).await?;
                named.remark_left_out(dialogue);
                named.only()?
            }
        };
        if let Some(finding) = crate::doctor::stopped(&System::current(), process.pid) {
            return Err(Error::Stopped { pid: process.pid, finding });
        }
        self.found(process, dialogue)
    }

    /// All that are meant: a name may stand for several processes of one user. One of these that is stopped is among them.
    ///
    /// # Errors
    /// As [`resolve`](Self::resolve).
    pub async fn resolve_all(&self, dialogue: &impl Dialogue) -> Result<Vec<Subject>, Error> {
        if let Self::Remote(remote) = self {
            return Ok(remote.resolve_all().await?.into_iter().map(|(subject, _)| subject).collect());
        }
        let Self::Name { name, user } = self else { return Ok(vec![self.resolve(dialogue).await?]) };
        let named = Named::find(name, Whose(user.as_deref())).await?;
        named.remark_left_out(dialogue);
        named.processes.into_iter().map(|process| self.found(process, dialogue)).collect()
    }

    fn found(&self, process: Process, dialogue: &impl Dialogue) -> Result<Subject, Error> {
        let pid = process.pid;
        let endpoint = process.endpoint().ok_or(Error::NoSocket(pid))?;
        dialogue.remark(Remark::AskedOn { pid, endpoint: &endpoint });
        let router = process.sockets.iter().find(|socket| socket.state == SocketState::Router);
        // Anybody can make a socket with that name: only for one that is called like a router it is worth a word.
        if let Some(router) = router.filter(|_| local_name(&process).contains("dsrouter")) {
            dialogue.remark(Remark::Router { pid, path: &router.path });
        }
        let subject = Subject::new(Client::new(endpoint), Some(process));
        Ok(match self {
            Self::Name { name, .. } => subject.chosen_by(name),
            _ => subject,
        })
    }
}

/// Also one that was started in the same breath, and is not up yet.
async fn by_pid(pid: u32) -> Result<Process, Error> {
    // How long it takes to look at it is for the process to choose.
    let look = || in_a_thread(move || runtap_discover::process(pid));
    match look().await? {
        Err(_) => {
            crate::doctor::settled(&System::current(), pid).await?;
            Ok(look().await??)
        }
        Ok(found) => Ok(found),
    }
}

/// Has somebody choose. A slip is forgiven once.
async fn pick(dialogue: &impl Dialogue) -> Result<Process, Error> {
    if !dialogue.can_ask() {
        return Err(Error::NotGiven);
    }
    let mut processes = in_a_thread(|| runtap_discover::processes(Options::default())).await?;
    dotnet_only(&mut processes);
    if processes.is_empty() {
        return Err(Error::NoneRuns);
    }
    let mut slip = None;
    loop {
        let line = dialogue.ask(Question { processes: &processes, slip: slip.as_deref() }).await?;
        let answer = line.trim();
        if answer.is_empty() {
            return Err(Error::NotGiven);
        }
        if let Some(chosen) = picked(answer, &processes) {
            return Ok(processes.swap_remove(chosen));
        }
        if slip.replace(answer.to_owned()).is_some() {
            return Err(Error::NotInList { answer: answer.to_owned(), of: processes.len() });
        }
    }
}

/// Which process of the list an answer means: its number there, or the most prominent one of its line, its process id.
fn picked(answer: &str, processes: &[Process]) -> Option<usize> {
    let number: usize = answer.parse().ok()?;
    let row = number.checked_sub(1).filter(|row| *row < processes.len());
    row.or_else(|| processes.iter().position(|process| usize::try_from(process.pid) == Ok(number)))
}

//! Resolves a specification to one process or to several, each a .NET process or a Java program.

use runtap_diag::Client;
use runtap_discover::{NotFound, Options, Process, ProcessKind, Reason, System};
use runtap_os::in_a_thread;
use runtap_transport::SocketState;

use crate::dialogue::{Dialogue, Question, Remark};
use crate::error::Error;
use crate::jvm::JvmTarget;
use crate::named::Named;
use crate::resolved::{ManagedTarget, ResolvedTarget, local_name};
use crate::running::dotnet_only;
use crate::spec::TargetSpec;
use crate::user::UserFilter;

/// The processes that a name or a list stands for. A process id always stands for its process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Selectable {
    /// .NET processes. Java programs only occur in error messages.
    Dotnet,
    /// .NET processes and Java programs.
    Managed,
}

impl TargetSpec {
    /// Resolves to exactly one .NET process, and rejects a process that is stopped.
    ///
    /// # Errors
    /// Returns an error if no process or several processes match, or if the process cannot be reached or is a Java program.
    pub async fn resolve(&self, dialogue: &impl Dialogue) -> Result<ResolvedTarget, Error> {
        self.select(Selectable::Dotnet, dialogue).await?.into_dotnet()
    }

    /// Resolves to exactly one .NET process or Java program, and rejects a .NET process that is stopped.
    ///
    /// # Errors
    /// Returns an error if no process or several processes match, or if a .NET process cannot be reached.
    pub async fn resolve_managed(&self, dialogue: &impl Dialogue) -> Result<ManagedTarget, Error> {
        self.select(Selectable::Managed, dialogue).await
    }

    /// Resolves to all matching .NET processes: a name may stand for several processes of one user. Stopped processes are included.
    ///
    /// # Errors
    /// See [`resolve`](Self::resolve).
    pub async fn resolve_all(&self, dialogue: &impl Dialogue) -> Result<Vec<ResolvedTarget>, Error> {
        let selected = self.select_all(Selectable::Dotnet, dialogue).await?;
        selected.into_iter().map(ManagedTarget::into_dotnet).collect()
    }

    /// Resolves to all matching .NET processes and Java programs.
    ///
    /// # Errors
    /// See [`resolve_managed`](Self::resolve_managed).
    pub async fn resolve_all_managed(&self, dialogue: &impl Dialogue) -> Result<Vec<ManagedTarget>, Error> {
        self.select_all(Selectable::Managed, dialogue).await
    }

    async fn select(&self, selectable: Selectable, dialogue: &impl Dialogue) -> Result<ManagedTarget, Error> {
        let process = match self {
            Self::Port(port) => return Ok(port.resolve(dialogue).await?.into()),
            Self::Remote(remote) => return Ok(remote.resolve().await?.into()),
            Self::Pid(pid) => by_pid(*pid).await?,
            Self::Ask => pick(selectable, dialogue).await?,
            Self::Name { name, user } => {
                let named = Named::find(name, UserFilter(user.as_deref()), selectable).await?;
                named.remark_left_out(dialogue);
                named.only()?
            }
        };
        if process.kind == ProcessKind::Dotnet
            && let Some(finding) = crate::doctor::stopped(&System::current(), process.pid)
        {
            return Err(Error::Stopped { pid: process.pid, finding });
        }
        self.found(process, dialogue)
    }

    async fn select_all(
        &self,
        selectable: Selectable,
        dialogue: &impl Dialogue,
    ) -> Result<Vec<ManagedTarget>, Error> {
        if let Self::Remote(remote) = self {
            return Ok(remote.resolve_all().await?.into_iter().map(|(subject, _)| subject.into()).collect());
        }
        let Self::Name { name, user } = self else {
            return Ok(vec![self.select(selectable, dialogue).await?]);
        };
        let named = Named::find(name, UserFilter(user.as_deref()), selectable).await?;
        named.remark_left_out(dialogue);
        named.processes.into_iter().map(|process| self.found(process, dialogue)).collect()
    }

    fn found(&self, process: Process, dialogue: &impl Dialogue) -> Result<ManagedTarget, Error> {
        if process.kind == ProcessKind::Jvm {
            return Ok(ManagedTarget::Jvm(JvmTarget::new(process)));
        }
        let pid = process.pid;
        let endpoint = process.endpoint().ok_or(Error::NoSocket(pid))?;
        dialogue.remark(Remark::Connecting { pid, endpoint: &endpoint });
        let router = process.sockets.iter().find(|socket| socket.state == SocketState::Router);
        // Any process can create a socket with such a name, so report it only for a program that is named like a router.
        if let Some(router) = router.filter(|_| local_name(&process).contains("dsrouter")) {
            dialogue.remark(Remark::Router { pid, path: &router.path });
        }
        let subject = ResolvedTarget::new(Client::new(endpoint), Some(process));
        Ok(ManagedTarget::from(match self {
            Self::Name { name, .. } => subject.chosen_by(name),
            _ => subject,
        }))
    }
}

/// Finds a process by its id. A process that has just been started is given time to start its runtime.
async fn by_pid(pid: u32) -> Result<Process, Error> {
    // The process controls how long reading its files takes.
    let look = || in_a_thread(move || runtap_discover::process(pid).or_else(or_jvm));
    match look().await? {
        Err(_) => {
            crate::doctor::settled(&System::current(), pid).await?;
            Ok(look().await??)
        }
        Ok(found) => Ok(found),
    }
}

/// Returns the process if it is a Java program.
fn or_jvm(not_found: NotFound) -> Result<Process, NotFound> {
    // Only Linux shows which runtime a process has loaded.
    let may_be = cfg!(not(target_os = "linux")) || matches!(not_found.reason, Reason::Jvm { .. });
    let found = if may_be { System::current().jvm(not_found.pid) } else { None };
    found.ok_or(not_found)
}

/// Lets the user choose. One invalid answer is allowed.
async fn pick(selectable: Selectable, dialogue: &impl Dialogue) -> Result<Process, Error> {
    if !dialogue.can_ask() {
        return Err(Error::NotSpecified);
    }
    let mut processes = in_a_thread(|| runtap_discover::processes(Options::default())).await?;
    if selectable == Selectable::Dotnet {
        dotnet_only(&mut processes);
    }
    if processes.is_empty() {
        return Err(Error::NoneRunning);
    }
    let mut invalid_answer = None;
    loop {
        let line = dialogue
            .ask(Question { processes: &processes, invalid_answer: invalid_answer.as_deref() })
            .await?;
        let answer = line.trim();
        if answer.is_empty() {
            return Err(Error::NotSpecified);
        }
        if let Some(chosen) = picked(answer, &processes) {
            return Ok(processes.swap_remove(chosen));
        }
        if invalid_answer.replace(answer.to_owned()).is_some() {
            return Err(Error::NotInList { answer: answer.to_owned(), of: processes.len() });
        }
    }
}

/// Returns the index of the process that an answer selects: by its position in the list, or by its process id.
fn picked(answer: &str, processes: &[Process]) -> Option<usize> {
    let number: usize = answer.parse().ok()?;
    let row = number.checked_sub(1).filter(|row| *row < processes.len());
    row.or_else(|| processes.iter().position(|process| usize::try_from(process.pid) == Ok(number)))
}

//! From a name to processes, all of one user.
//!
//! Anybody can call a program as somebody else's is called. So a name stands for processes of our own user alone, of root's
//! for root, unless another user is given (`--user`); those that were left out are told. Who is not root can reach no others,
//! and is told of them where he has none of that name himself.

use std::fmt::Write as _;
use std::fs;
use std::time::Duration;

use runtap_diag::Error;
use runtap_discover::{Kind, Options, Process};
use runtap_record::in_a_thread;
use rustix::process::geteuid;

use super::target::{DEADLINE, ask_all, local_name};
use crate::exit::{self, expected, with_list};
use crate::output::Output;

/// How long a runtime may take to say who it is, where the one that is looked for may be among those that did not answer
/// in time.
const PATIENCE: Duration = Duration::from_secs(3);
/// Processes of others that are told of: anybody can start as many as he likes.
const TOLD: usize = 20;

/// Whose processes a name may stand for: those of our own user, or of this one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Whose<'a>(pub(super) Option<&'a str>);

impl Whose<'_> {
    /// Whether a user is meant: by number, or by the name that `/etc/passwd` has for it.
    pub(super) fn is_meant(self, uid: u32, user: &str) -> bool {
        match self.0 {
            None => uid == geteuid().as_raw(),
            Some(given) => given.parse().map_or(given == user, |number: u32| number == uid),
        }
    }

    /// Refuses a user whom nobody knows: that none of his processes has a name would be true, and misleading.
    ///
    /// # Errors
    /// Code 3.
    pub(super) fn check(self) -> anyhow::Result<()> {
        let Some(name) = self.0.filter(|given| given.parse::<u32>().is_err()) else { return Ok(()) };
        let passwd = fs::read("/etc/passwd").unwrap_or_default();
        let mut names =
            passwd.split(|byte| *byte == b'\n').map(|line| line.split(|byte| *byte == b':').next());
        if names.any(|known| known == Some(name.as_bytes())) {
            return Ok(());
        }
        let hint = "a user that is not in /etc/passwd is given by number: --user UID".to_owned();
        Err(expected(exit::NO_TARGET, format!("there is no user '{name}' in /etc/passwd"), hint))
    }

    pub(super) fn has(self, process: &Process) -> bool {
        self.is_meant(process.uid, &process.user)
    }
}

/// The processes of a name.
#[derive(Debug)]
pub(super) struct Named {
    /// Of the user who is meant; at least one.
    pub(super) processes: Vec<Process>,
    /// Of others.
    left_out: Vec<Process>,
}

impl Named {
    /// The processes that are called so: by the kernel, by their files, or by the entry assembly that their runtime tells.
    ///
    /// # Errors
    /// Code 3: there is none, or none of the user who is meant.
    pub(super) async fn find(name: &str, whose: Whose<'_>) -> anyhow::Result<Self> {
        whose.check()?;
        // All are asked: one that is called otherwise on disk may have this entry assembly.
        let mut all = in_a_thread(|| runtap_discover::processes(Options::default().all_users(true))).await?;
        all.retain(|process| process.kind == Kind::Dotnet);
        let (mut silent, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|process| whose.has(process));
        let left_out = called(name, others, DEADLINE);
        // The one that is meant may be busy, or the whole machine.
        let ours = async {
            for limit in [DEADLINE, PATIENCE] {
                let (found, others) = called(name, std::mem::take(&mut silent), limit).await;
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
            let left_out = if geteuid().is_root() { left_out } else { Vec::new() };
            return Ok(Self { processes, left_out });
        }
        if left_out.is_empty() {
            return Err(nobody(name, whose, &silent));
        }
        let whose = whose.0.map_or_else(|| "our user".to_owned(), |user| format!("user {user}"));
        let message = format!("no .NET process of {whose} is called '{name}'; those of others are:");
        let hint = if geteuid().is_root() {
            "take one with -p PID, or those of a user with --user NAME"
        } else {
            "only their users and root can reach them: run runtap as one of these; upper and lower case matter"
        }
        .to_owned();
        Err(with_list(exit::NO_TARGET, message, rows(left_out.iter().map(described)), hint))
    }

    /// Says whose processes were passed over.
    pub(super) fn tell_left_out(&self, name: &str, output: Output) {
        if self.left_out.is_empty() {
            return;
        }
        let shown = self.left_out.iter().take(TOLD);
        let mut told: Vec<String> =
            shown.map(|process| format!("{} (user {})", process.pid, process.user)).collect();
        if let Some(more) = self.left_out.len().checked_sub(TOLD).filter(|more| *more > 0) {
            told.push(format!("and {more} more"));
        }
        output.note(format_args!(
            "processes of other users that are called '{name}' are left out: {}; --user takes those of one",
            told.join(", ")
        ));
    }

    /// The only one.
    ///
    /// # Errors
    /// Code 3: there are several.
    pub(super) fn only(mut self, name: &str, hint: &str) -> anyhow::Result<Process> {
        match self.processes.pop() {
            Some(process) if self.processes.is_empty() => Ok(process),
            last => Err(not_unique(name, self.processes.iter().chain(&last).map(described), hint)),
        }
    }
}

fn nobody(name: &str, whose: Whose<'_>, silent: &[Process]) -> anyhow::Error {
    let of = whose.0.map_or_else(String::new, |user| format!(" of user {user}"));
    let mut message = format!("no .NET process{of} is called '{name}'");
    if !silent.is_empty() {
        let pids: Vec<String> = silent.iter().map(|process| process.pid.to_string()).collect();
        let _ = write!(message, "; not known, because they did not answer: {}", pids.join(", "));
    }
    let hint = match whose.0 {
        Some(_) => {
            "'runtap ps --all-users' lists names and users; a user that /etc/passwd does not have is given by number"
        }
        None => "'runtap ps' lists the names; upper and lower case matter",
    };
    expected(exit::NO_TARGET, message, hint.to_owned())
}

/// Number, user and command line.
type Row = (u32, String, String);

fn described(process: &Process) -> Row {
    (process.pid, process.user.clone(), process.command_line.join(" "))
}

fn rows(processes: impl Iterator<Item = Row>) -> Vec<String> {
    let mut rows: Vec<String> =
        processes.map(|(pid, user, command_line)| format!("{pid:>8}  {user:<10}  {command_line}")).collect();
    let all = rows.len();
    rows.truncate(TOLD);
    if all > TOLD {
        rows.push(format!("{:>8}  and {} more", "", all - TOLD));
    }
    rows
}

/// Several processes have that name.
pub(super) fn not_unique(name: &str, processes: impl Iterator<Item = Row>, hint: &str) -> anyhow::Error {
    let message = format!("several processes are called '{name}':");
    with_list(exit::NO_TARGET, message, rows(processes), hint.to_owned())
}

/// Those of the processes that are called so, and those of the others that did not say in time how they are called.
async fn called(name: &str, processes: Vec<Process>, limit: Duration) -> (Vec<Process>, Vec<Process>) {
    let (mut found, mut silent) = (Vec::new(), Vec::new());
    let told = ask_all(&processes, limit).await;
    for (process, told) in processes.into_iter().zip(told) {
        let entry = told.as_ref().ok().and_then(|info| info.entry_assembly.as_deref());
        if process.comm == name || local_name(&process) == name || entry == Some(name) {
            found.push(process);
        } else if matches!(told, Err(None | Some(Error::Busy { .. }))) {
            silent.push(process);
        }
    }
    (found, silent)
}

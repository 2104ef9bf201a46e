//! Process groups and signals, and a reaper that terminates remaining processes.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex, PoisonError};

use runtap_os::reaper::{Control, ProcessReaper};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::Exit;
use crate::tree;

/// A program in its own process group, with all processes that it started.
#[derive(Debug)]
pub(super) struct Tree {
    /// The leader of the group: the program or its reaper.
    leader: Pid,
    /// The program.
    pid: u32,
    /// The environment variable that all processes of the program have inherited.
    mark: String,
    reaper: Option<Arc<ReaperConnection>>,
}

/// The connection to a reaper.
#[derive(Debug)]
struct ReaperConnection {
    control: Control,
    /// The exit status, which the reaper reports once.
    status: Mutex<Option<Result<ExitStatus, io::ErrorKind>>>,
}

impl ReaperConnection {
    /// Waits until the reaper has reported the exit of the program. If the reaper is gone, kills the group, which is
    /// all that is known of the program, and returns an error.
    fn status(&self) -> io::Result<ExitStatus> {
        let mut status = self.status.lock().unwrap_or_else(PoisonError::into_inner);
        let known = status.get_or_insert_with(|| {
            self.control
                .wait()
                .inspect_err(|_| self.control.signal(Signal::KILL))
                .map_err(|error| error.kind())
        });
        known.map_err(io::Error::from)
    }
}

impl Tree {
    /// Starts the program, through the reaper if there is one.
    pub(super) fn start(
        command: &mut Command,
        mark: String,
        reaper_arguments: &[OsString],
    ) -> io::Result<(Child, Self)> {
        if reaper_arguments.is_empty() {
            let child = command.process_group(0).spawn()?;
            let leader = Pid::from_child(&child);
            let pid = child.id();
            return Ok((child, Self { leader, pid, mark, reaper: None }));
        }
        let words = [command.get_program()].into_iter().chain(command.get_args()).map(OsStr::to_owned);
        let mut reaper = ProcessReaper::new(reaper_arguments, words)?;
        let settings = reaper.settings();
        settings.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => settings.env(name, value),
                None => settings.env_remove(name),
            };
        }
        if let Some(directory) = command.get_current_dir() {
            settings.current_dir(directory);
        }
        let kept = reaper.start()?;
        let (pid, control) = (kept.pid(), kept.control()?);
        let child = kept.into_process();
        let leader = Pid::from_child(&child);
        let kept = Arc::new(ReaperConnection { control, status: Mutex::default() });
        Ok((child, Self { leader, pid, mark, reaper: Some(kept) }))
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns a function that blocks until the program has exited. The group is not reaped.
    #[expect(clippy::unnecessary_wraps, reason = "the Windows version can fail")]
    pub(super) fn waiting(&self) -> io::Result<impl FnOnce() + Send + 'static> {
        let (leader, reaper) = (self.leader, self.reaper.clone());
        Ok(move || {
            if let Some(reaper) = reaper {
                drop(reaper.status());
                return;
            }
            let how = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while matches!(waitid(WaitId::Pid(leader), how), Err(rustix::io::Errno::INTR)) {}
        })
    }

    /// Notifies the reaper that the program will be requested to stop. The reaper then also terminates all processes
    /// that the program started.
    pub(super) fn announce_stop(&self) {
        if let Some(reaper) = &self.reaper {
            reaper.control.will_end();
        }
    }

    pub(super) fn interrupt(&self) {
        // All processes may have exited already.
        let _ = kill_process_group(self.leader, Signal::INT);
    }

    pub(super) fn kill(&self) -> usize {
        match &self.reaper {
            Some(reaper) => reaper.control.end(),
            None => drop(kill_process_group(self.leader, Signal::KILL)),
        }
        tree::kill_marked(&self.mark, self.reaper.as_ref().map(|_| self.leader))
    }

    /// Reaps the program and returns its exit status.
    pub(super) fn reap(&self, child: &mut Child) -> io::Result<ExitStatus> {
        let Some(reaper) = &self.reaper else { return child.wait() };
        let status = reaper.status();
        child.wait().and(status)
    }
}

pub(super) fn exit_of(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Code(-1),
    }
}

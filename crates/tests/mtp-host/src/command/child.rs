//! The process of the command: one stream of output, and termination of all processes that the command started. The
//! system-specific parts are in `unix` and `windows`.

use std::ffi::OsString;
use std::io::{self, PipeReader, PipeWriter};
use std::path::Path;
use std::process::ExitStatus;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::{ATTEMPT_NUMBER, EXECUTION_ID};
use runtap_test::formats::Format;

#[cfg_attr(unix, path = "child/unix.rs")]
#[cfg_attr(windows, path = "child/windows.rs")]
mod native;

use native::{Command, Group, stop_signal};

/// The time between a request to stop and the termination of a command.
const GRACE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Child {
    group: Group,
    state: Mutex<ChildState>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct ChildState {
    /// Whether the command has exited. Its process ids may then be reused.
    is_over: bool,
    /// The exit status, until it is taken by `wait`.
    status: Option<io::Result<ExitStatus>>,
}

impl Child {
    /// Starts the command and returns its output. For libtest, the output includes standard error, where cargo names
    /// the binaries that start and that fail.
    pub(crate) fn start(
        reaper: &[OsString],
        words: &[OsString],
        directory: Option<&Path>,
        format: Format,
    ) -> io::Result<(Arc<Self>, PipeReader)> {
        let (reader, writer): (PipeReader, PipeWriter) = io::pipe()?;
        let mut command = Command::new(reaper, words)?;
        let settings = command.settings();
        // These describe this application, not applications that the command may start.
        settings.env_remove(EXECUTION_ID).env_remove(ATTEMPT_NUMBER);
        if let Some(directory) = directory {
            settings.current_dir(directory);
        }
        if format == Format::Nextest {
            settings.env("NEXTEST_EXPERIMENTAL_LIBTEST_JSON", "1");
        }
        if matches!(format, Format::Libtest | Format::LibtestJson) {
            settings.stderr(writer.try_clone()?);
        }
        settings.stdout(writer);
        // This drops the writers in `command`, which would otherwise keep the stream open.
        let (group, mut process) = command.start()?;
        let child = Arc::new(Self { group, state: Mutex::default(), ended: Condvar::new() });
        let own = Arc::clone(&child);
        // In the background, because the output may stay open after the process has exited.
        thread::Builder::new().name("mtp-wrap-wait".into()).spawn(move || {
            let status = process.wait();
            let mut state = own.state();
            state.status = Some(own.group.reap(process, status));
            state.is_over = true;
            own.ended.notify_all();
        })?;
        Ok((child, reader))
    }

    /// Returns whether the command has exited, regardless of processes that it left behind.
    pub(crate) fn has_ended(&self) -> bool {
        self.state().is_over
    }

    /// Waits for the exit of the command. Processes that it left behind are terminated.
    pub(crate) fn wait(&self) -> io::Result<ExitStatus> {
        let is_open = |state: &mut ChildState| state.status.is_none();
        let mut state = self.ended.wait_while(self.state(), is_open).unwrap_or_else(PoisonError::into_inner);
        state.status.take().unwrap_or_else(|| Err(io::ErrorKind::NotFound.into()))
    }

    /// Requests all processes to stop, and terminates them after [`GRACE`]. Does not wait.
    pub(crate) fn stop(self: Arc<Self>) {
        let state = self.state();
        if state.is_over {
            return;
        }
        self.group.request_stop();
        drop(state);
        let own = Arc::clone(&self);
        let spawned = thread::Builder::new().name("mtp-wrap-stop".into()).spawn(move || {
            let is_running = |state: &mut ChildState| !state.is_over;
            let waited = own.ended.wait_timeout_while(own.state(), GRACE, is_running);
            drop(waited.unwrap_or_else(PoisonError::into_inner));
            own.group.kill();
        });
        if spawned.is_err() {
            self.group.kill();
        }
    }

    /// Returns a guard that terminates all processes when it is dropped.
    pub(crate) fn kill_on_drop(self: &Arc<Self>) -> impl Drop + use<> {
        KillOnDrop(Arc::clone(self))
    }

    fn state(&self) -> MutexGuard<'_, ChildState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct KillOnDrop(Arc<Child>);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        self.0.group.kill();
    }
}

/// Calls `act` at the first signal that requests this process to stop. The signal does not terminate the process; `act`
/// must do so.
pub(crate) fn on_signal(act: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let guard = runtime.enter();
    let stopped = stop_signal()?;
    drop(guard);
    thread::Builder::new().name("mtp-wrap-signal".into()).spawn(move || {
        runtime.block_on(stopped);
        act();
    })?;
    Ok(())
}

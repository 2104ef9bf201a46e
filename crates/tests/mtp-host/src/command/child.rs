//! The command as a process: one stream of output, and an end of all that it has started. How it is kept together, and asked
//! to end, is the system's (`unix`, `windows`).

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

use native::{Command, Group, asked_to_end};

/// How long a command has to end itself.
const GRACE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Child {
    group: Group,
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The ids of its processes may be others' afterwards.
    is_over: bool,
    /// How the command has ended, until somebody wants to know.
    status: Option<io::Result<ExitStatus>>,
}

impl Child {
    /// Starts it, and gives what it prints. Of libtest that is standard error too: cargo says there which binary comes, and which has failed.
    pub(crate) fn start(
        keeper: &[OsString],
        words: &[OsString],
        directory: Option<&Path>,
        format: Format,
    ) -> io::Result<(Arc<Self>, PipeReader)> {
        let (reader, writer): (PipeReader, PipeWriter) = io::pipe()?;
        let mut command = Command::new(keeper, words)?;
        let settings = command.settings();
        // Of this application, not of those that the command may start.
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
        // Our ends of the stream are gone with the command, and would keep it open.
        let (group, mut process) = command.start()?;
        let child = Arc::new(Self { group, state: Mutex::default(), ended: Condvar::new() });
        let own = Arc::clone(&child);
        // In the background: a process that has died may leave the output open.
        thread::Builder::new().name("mtp-wrap-wait".into()).spawn(move || {
            let status = process.wait();
            let mut state = own.state();
            state.status = Some(own.group.reap(process, status));
            state.is_over = true;
            own.ended.notify_all();
        })?;
        Ok((child, reader))
    }

    /// Whether the command itself has ended, whatever it has left behind.
    pub(crate) fn has_ended(&self) -> bool {
        self.state().is_over
    }

    /// Waits for its end. What it has left behind ends with it.
    pub(crate) fn wait(&self) -> io::Result<ExitStatus> {
        let is_open = |state: &mut State| state.status.is_none();
        let mut state = self.ended.wait_while(self.state(), is_open).unwrap_or_else(PoisonError::into_inner);
        state.status.take().unwrap_or_else(|| Err(io::ErrorKind::NotFound.into()))
    }

    /// Asks all of it to end, and ends it after a moment. Does not wait.
    pub(crate) fn stop(self: Arc<Self>) {
        let state = self.state();
        if state.is_over {
            return;
        }
        self.group.ask();
        drop(state);
        let own = Arc::clone(&self);
        let spawned = thread::Builder::new().name("mtp-wrap-stop".into()).spawn(move || {
            let lives = |state: &mut State| !state.is_over;
            let waited = own.ended.wait_timeout_while(own.state(), GRACE, lives);
            drop(waited.unwrap_or_else(PoisonError::into_inner));
            own.group.end();
        });
        if spawned.is_err() {
            self.group.end();
        }
    }

    /// Has all of it ended at the latest when what is returned is dropped: whoever does not want the results any more.
    pub(crate) fn ends_with(self: &Arc<Self>) -> impl Drop + use<> {
        Ends(Arc::clone(self))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Ends(Arc<Child>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.group.end();
    }
}

/// Has `act` called at the first signal that asks us to end. The process lives on: `act` has to see to its end.
pub(crate) fn on_signal(act: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let guard = runtime.enter();
    let asked = asked_to_end()?;
    drop(guard);
    thread::Builder::new().name("mtp-wrap-signal".into()).spawn(move || {
        runtime.block_on(asked);
        act();
    })?;
    Ok(())
}

//! The command as a process in a job object: one stream of output, and an end of all that it has started, also when we end
//! without a word. No process has to watch over it.

use std::ffi::OsString;
use std::io::{self, PipeReader, PipeWriter};
use std::os::windows::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use runtap_mtp_host::{ATTEMPT_NUMBER, EXECUTION_ID};
use runtap_test_formats::Format;
use runtap_windows::console::interrupt;
use runtap_windows::job::Job;
use tokio::signal::windows::{ctrl_break, ctrl_c, ctrl_close};

/// How long a command has to end itself.
const GRACE: Duration = Duration::from_secs(1);
/// `CREATE_NEW_PROCESS_GROUP`: Ctrl-C at the console reaches only us.
const NEW_GROUP: u32 = 0x0000_0200;

#[derive(Debug)]
pub(crate) struct Child {
    job: Job,
    pid: u32,
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The id may be another one's afterwards.
    is_over: bool,
    /// How the command has ended, until somebody wants to know.
    status: Option<io::Result<ExitStatus>>,
}

impl Child {
    /// Starts it, and gives what it prints. Of libtest that is standard error too: cargo says there which binary comes.
    pub(crate) fn start(
        _keeper: &[OsString],
        words: &[OsString],
        directory: Option<&Path>,
        format: Format,
    ) -> io::Result<(Arc<Self>, PipeReader)> {
        let [program, arguments @ ..] = words else { return Err(io::ErrorKind::InvalidInput.into()) };
        let (reader, writer): (PipeReader, PipeWriter) = io::pipe()?;
        let job = Job::new()?;
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).creation_flags(NEW_GROUP);
        // Of this application, not of those that the command may start.
        command.env_remove(EXECUTION_ID).env_remove(ATTEMPT_NUMBER);
        if let Some(directory) = directory {
            command.current_dir(directory);
        }
        if format == Format::Nextest {
            command.env("NEXTEST_EXPERIMENTAL_LIBTEST_JSON", "1");
        }
        if format == Format::Libtest {
            command.stderr(writer.try_clone()?);
        }
        command.stdout(writer);
        let mut process = command.spawn()?;
        // Ours would keep the stream open.
        drop(command);
        if let Err(error) = job.take_in(&process) {
            // One that has ended already is in no job, and its end is all there is to be known.
            if process.try_wait()?.is_none() {
                process.kill()?;
                return Err(error);
            }
        }
        let pid = process.id();
        let child = Arc::new(Self { job, pid, state: Mutex::default(), ended: Condvar::new() });
        let own = Arc::clone(&child);
        thread::Builder::new().name("mtp-wrap-wait".into()).spawn(move || {
            let status = process.wait();
            // What it has left behind.
            own.end();
            let mut state = own.state();
            (state.is_over, state.status) = (true, Some(status));
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
        if self.has_ended() {
            return;
        }
        // Without a console there is nobody to ask.
        let _ = interrupt(self.pid);
        let own = Arc::clone(&self);
        let spawned = thread::Builder::new().name("mtp-wrap-stop".into()).spawn(move || {
            let lives = |state: &mut State| !state.is_over;
            let waited = own.ended.wait_timeout_while(own.state(), GRACE, lives);
            drop(waited.unwrap_or_else(PoisonError::into_inner));
            own.end();
        });
        if spawned.is_err() {
            self.end();
        }
    }

    /// Ends all of it.
    fn end(&self) {
        // It may have ended.
        let _ = self.job.end();
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
        self.0.end();
    }
}

/// Has `act` called when somebody asks us to end. The process lives on: `act` has to see to its end.
pub(crate) fn on_signal(act: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let guard = runtime.enter();
    let (mut interrupt, mut stop, mut close) = (ctrl_c()?, ctrl_break()?, ctrl_close()?);
    drop(guard);
    thread::Builder::new().name("mtp-wrap-signal".into()).spawn(move || {
        runtime.block_on(async {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = stop.recv() => {}
                _ = close.recv() => {}
            }
        });
        act();
    })?;
    Ok(())
}

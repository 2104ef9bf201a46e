//! The command as a process: a keeper and a group of its own, one stream of output, and an end of all of it.

use std::ffi::OsString;
use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use runtap_mtp_host::{ATTEMPT_NUMBER, EXECUTION_ID};
use runtap_test_formats::Format;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::signal::unix::{SignalKind, signal};

/// How long a command has to end itself.
const GRACE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Child {
    /// To the [keeper](crate::keeper).
    socket: UnixStream,
    group: Pid,
    keeper: Mutex<Keeper>,
    ended: Condvar,
}

#[derive(Debug)]
struct Keeper {
    process: std::process::Child,
    /// The group's id may be another one's afterwards.
    is_over: bool,
    /// How the command has ended, until somebody wants to know.
    status: Option<io::Result<ExitStatus>>,
}

impl Child {
    /// Starts it, and gives what it prints. Of libtest that is standard error too: cargo says there which binary comes.
    pub(crate) fn start(
        keeper: &[OsString],
        words: &[OsString],
        directory: Option<&Path>,
        format: Format,
    ) -> io::Result<(Arc<Self>, PipeReader)> {
        let (reader, writer): (PipeReader, PipeWriter) = io::pipe()?;
        let (socket, theirs) = UnixStream::pair()?;
        let mut command = Command::new(own_program()?);
        command.args(keeper).args(words).stdin(OwnedFd::from(theirs)).process_group(0);
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
        let process = command.spawn()?;
        // Ours would keep the stream open.
        drop(command);
        let group = Pid::from_child(&process);
        let keeper = Mutex::new(Keeper { process, is_over: false, status: None });
        let child = Arc::new(Self { socket, group, keeper, ended: Condvar::new() });
        match child.told()? {
            0 => child.watch()?,
            errno => return Err(io::Error::from_raw_os_error(errno)),
        }
        Ok((child, reader))
    }

    /// The next number that the keeper tells.
    fn told(&self) -> io::Result<i32> {
        let mut bytes = [0; 4];
        match (&self.socket).read_exact(&mut bytes) {
            Ok(()) => Ok(i32::from_ne_bytes(bytes)),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Err(io::Error::other("the process that keeps the command is gone"))
            }
            Err(error) => Err(error),
        }
    }

    /// Whether the command itself has ended, whatever it has left behind.
    pub(crate) fn has_ended(&self) -> bool {
        self.keeper().is_over
    }

    /// Waits for its end. What it has left behind in its group ends with it.
    pub(crate) fn wait(&self) -> io::Result<ExitStatus> {
        let is_open = |keeper: &mut Keeper| keeper.status.is_none();
        let mut keeper =
            self.ended.wait_while(self.keeper(), is_open).unwrap_or_else(PoisonError::into_inner);
        keeper.status.take().unwrap_or_else(|| Err(io::ErrorKind::NotFound.into()))
    }

    /// Waits for its end in the background: a keeper that has died leaves the output open.
    fn watch(self: &Arc<Self>) -> io::Result<()> {
        let own = Arc::clone(self);
        thread::Builder::new().name("mtp-wrap-wait".into()).spawn(move || {
            let status = own.told();
            let mut keeper = own.keeper();
            if status.is_err() {
                // Not reaped yet: until then the group is ours and nobody else's.
                let _ = kill_process_group(own.group, Signal::KILL);
            }
            // It ends itself as soon as it has told.
            let waited = keeper.process.wait();
            keeper.is_over = true;
            keeper.status = Some(waited.and(status).map(ExitStatus::from_raw));
            own.ended.notify_all();
        })?;
        Ok(())
    }

    /// Asks all of it to end, and ends it after a moment. Does not wait.
    pub(crate) fn stop(self: Arc<Self>) {
        let keeper = self.keeper();
        if keeper.is_over {
            return;
        }
        // First: the keeper knows then why the command ends. It fails if the keeper is gone.
        let _ = (&self.socket).write_all(&[0]);
        let _ = kill_process_group(self.group, Signal::TERM);
        drop(keeper);
        let own = Arc::clone(&self);
        let spawned = thread::Builder::new().name("mtp-wrap-stop".into()).spawn(move || {
            let lives = |keeper: &mut Keeper| !keeper.is_over;
            let waited = own.ended.wait_timeout_while(own.keeper(), GRACE, lives);
            drop(waited.unwrap_or_else(PoisonError::into_inner));
            own.end();
        });
        if spawned.is_err() {
            self.end();
        }
    }

    /// Has the keeper end all of it.
    fn end(&self) {
        let _ = self.socket.shutdown(Shutdown::Write);
    }

    /// Has all of it ended at the latest when what is returned is dropped: whoever does not want the results any more.
    pub(crate) fn ends_with(self: &Arc<Self>) -> impl Drop + use<> {
        Ends(Arc::clone(self))
    }

    fn keeper(&self) -> MutexGuard<'_, Keeper> {
        self.keeper.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Ends(Arc<Child>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Also when the file of the program was replaced meanwhile.
fn own_program() -> io::Result<PathBuf> {
    if cfg!(target_os = "linux") { Ok("/proc/self/exe".into()) } else { std::env::current_exe() }
}

/// Has `act` called at the first signal that asks us to end. The process lives on: `act` has to see to its end.
pub(crate) fn on_signal(act: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let guard = runtime.enter();
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    drop(guard);
    thread::Builder::new().name("mtp-wrap-signal".into()).spawn(move || {
        runtime.block_on(async {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
                _ = hang_up.recv() => {}
            }
        });
        act();
    })?;
    Ok(())
}

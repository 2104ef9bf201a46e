//! Handles processes that outlive a command and still have its port in their environment. Their children would wait forever, so a
//! small guard process resumes them until the last of these processes has exited.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use runtap_diag::ports::{Port, user_of};
use runtap_discover::System;
use runtap_os::in_a_thread;
use rustix::process::getuid;
use tokio::time::{sleep, timeout};

use crate::event::{Event, Reporter};
use crate::own_port::{self, PortDirectory};

/// Poll interval for remaining processes.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Time limit for the search before a guard is started anyway.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(10);

/// Returns a function that finds the processes that have the port in their environment and belong to the current user, to root, or
/// to one of these users. Any user can put the path into an environment, so processes of other users are ignored.
pub(crate) fn holders(port: &Path, users: &BTreeSet<u32>) -> impl Fn() -> Vec<u32> + Clone + Send + 'static {
    let (port, users, ours) = (port.to_owned(), users.clone(), getuid().as_raw());
    move || {
        let counts = |pid| user_of(pid).is_some_and(|uid| uid == 0 || uid == ours || users.contains(&uid));
        System::current().started_with(port.as_os_str().as_bytes(), counts)
    }
}

/// Whether `look`, such as [`holders`], finds no process. Runs on its own thread, because there may be thousands of processes with
/// large environments. Searches twice, each followed by a pause, because a process is invisible for a moment during `exec`.
pub(crate) async fn is_free<L>(look: &L, pause: Duration) -> bool
where
    L: Fn() -> Vec<u32> + Clone + Send + 'static,
{
    for _ in 0..2 {
        // Unknown if no thread can be started.
        if !in_a_thread(look.clone()).await.is_ok_and(|holders| holders.is_empty()) {
            return false;
        }
        sleep(pause).await;
    }
    true
}

/// Starts a guard for the port if a process may still need it, otherwise closes the port. The guard inherits the socket, so its name
/// is never unused and no path is resolved again. `arguments` make this program call [`guard_port`].
pub(crate) async fn leave_behind(
    mut port: Port,
    users: &BTreeSet<u32>,
    arguments: Option<&[OsString]>,
    reporter: &Reporter,
) {
    let path = port.path().to_owned();
    let look = holders(&path, users);
    let mut found = None;
    let looking = async { found = timeout(SEARCH_TIMEOUT, in_a_thread(look)).await.ok() };
    port.resume_all(looking, |_, _| {}).await;
    let processes = match found {
        Some(Ok(holders)) if holders.is_empty() => return,
        Some(Ok(holders)) => Some(holders),
        // The guard will find out.
        _ => None,
    };
    let started = match arguments {
        Some(arguments) => port.socket().and_then(|socket| start(socket, arguments, port.path(), users)),
        None => Err(io::ErrorKind::Unsupported.into()),
    };
    reporter.report(match started {
        Ok(guard) => Event::GuardLeft { processes, guard: guard.id() },
        Err(error) => Event::NoGuard { processes, port: path, error },
    });
    port.leave();
}

/// Returns the path of this program, on Linux even if its file was replaced.
fn ourselves() -> io::Result<PathBuf> {
    if cfg!(target_os = "linux") { Ok("/proc/self/exe".into()) } else { std::env::current_exe() }
}

/// Starts the guard with the socket as its standard input.
fn start(socket: OwnedFd, arguments: &[OsString], port: &Path, users: &BTreeSet<u32>) -> io::Result<Child> {
    let mut command = Command::new(ourselves()?);
    command.args(arguments).arg(port).args(users.iter().map(u32::to_string));
    command.stdin(socket).stdout(Stdio::null()).stderr(Stdio::null());
    // A separate process group does not receive Ctrl-C of the terminal.
    command.process_group(0).spawn()
}

/// Resumes every runtime that connects, until no process is left that may. Standard input is the socket of the port.
///
/// # Errors
/// Returns an error if standard input is not a socket.
pub async fn guard_port(path: &Path, users: &BTreeSet<u32>) -> io::Result<()> {
    let port = io::stdin().as_fd().try_clone_to_owned();
    let mut port = port.and_then(|socket| Port::passed_on(socket, path, own_port::accepts_all_users()))?;
    let look = holders(path, users);
    let until = async {
        while !is_free(&look, POLL_INTERVAL).await {
            sleep(POLL_INTERVAL).await;
        }
    };
    port.resume_all(until, |_, _| {}).await;
    drop(port);
    // Remove the directory after the socket in it.
    drop(PortDirectory::of(path));
    Ok(())
}

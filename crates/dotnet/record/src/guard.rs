//! Processes that outlive a command and still have its port in their environment. What they start would wait
//! for ever, so a small process stays behind that lets it go on, until the last of them has ended.

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

/// How often it looks who is left.
const LOOK: Duration = Duration::from_secs(1);
/// How long it looks before it leaves a guard in any case.
const PATIENCE: Duration = Duration::from_secs(10);

/// Looks for the processes that have the port in their environment, and were started by us, by root, or by one of these
/// users. Anybody can write our path into an environment: those of others keep nobody here.
pub(crate) fn holders(port: &Path, users: &BTreeSet<u32>) -> impl Fn() -> Vec<u32> + Clone + Send + 'static {
    let (port, users, ours) = (port.to_owned(), users.clone(), getuid().as_raw());
    move || {
        let counts = |pid| user_of(pid).is_some_and(|uid| uid == 0 || uid == ours || users.contains(&uid));
        System::current().started_with(port.as_os_str().as_bytes(), counts)
    }
}

/// Whether nobody is found by `look`, such as [`holders`]. It works on a thread of its own: there may be thousands of
/// processes, and what is read of each is as long as it likes. Looks twice, with a pause behind each, because a process is
/// not seen for a moment while it turns into another one.
pub(crate) async fn is_free<L>(look: &L, pause: Duration) -> bool
where
    L: Fn() -> Vec<u32> + Clone + Send + 'static,
{
    for _ in 0..2 {
        // Without a thread nothing is known.
        if !in_a_thread(look.clone()).await.is_ok_and(|holders| holders.is_empty()) {
            return false;
        }
        sleep(pause).await;
    }
    true
}

/// Starts a guard for the port if anybody is left who could need it, else closes it. The guard gets the socket as it
/// is: at no moment is its name free, and no path is resolved again. `arguments` have this program call [`guard_port`].
pub(crate) async fn leave_behind(
    mut port: Port,
    users: &BTreeSet<u32>,
    arguments: Option<&[OsString]>,
    reporter: &Reporter,
) {
    let path = port.path().to_owned();
    let look = holders(&path, users);
    let mut found = None;
    let looking = async { found = timeout(PATIENCE, in_a_thread(look)).await.ok() };
    port.resume_all(looking, |_, _| {}).await;
    let processes = match found {
        Some(Ok(holders)) if holders.is_empty() => return,
        Some(Ok(holders)) => Some(holders),
        // The guard is going to know.
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

/// This program, on Linux also when its file was replaced meanwhile.
fn ourselves() -> io::Result<PathBuf> {
    if cfg!(target_os = "linux") { Ok("/proc/self/exe".into()) } else { std::env::current_exe() }
}

/// The socket is its stdin.
fn start(socket: OwnedFd, arguments: &[OsString], port: &Path, users: &BTreeSet<u32>) -> io::Result<Child> {
    let mut command = Command::new(ourselves()?);
    command.args(arguments).arg(port).args(users.iter().map(u32::to_string));
    command.stdin(socket).stdout(Stdio::null()).stderr(Stdio::null());
    // Not with the others of this terminal when Ctrl-C is typed.
    command.process_group(0).spawn()
}

/// Lets everybody go on who dials in, until nobody is left who could. Standard input is the socket of the port.
///
/// # Errors
/// It is none.
pub async fn guard_port(path: &Path, users: &BTreeSet<u32>) -> io::Result<()> {
    let port = io::stdin().as_fd().try_clone_to_owned();
    let mut port = port.and_then(|socket| Port::passed_on(socket, path, own_port::lets_everybody_in()))?;
    let look = holders(path, users);
    let until = async {
        while !is_free(&look, LOOK).await {
            sleep(LOOK).await;
        }
    };
    port.resume_all(until, |_, _| {}).await;
    drop(port);
    // After the socket in it.
    drop(PortDirectory::of(path));
    Ok(())
}

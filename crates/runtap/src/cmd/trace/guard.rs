//! Processes that outlive `trace -- COMMAND` and still have its port in their environment. What they start would wait
//! for ever, so a small process stays behind that lets it go on, until the last of them has ended.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use runtap_diag::ports::{Port, user_of};
use runtap_transport::discover::System;
use rustix::process::getuid;
use tokio::time::{sleep, timeout};

use super::own_port::{self, Home};
use crate::cmd::interrupt::in_a_thread;
use crate::exit::{self, expected};
use crate::output::Output;

/// How often it looks who is left.
const LOOK: Duration = Duration::from_secs(1);
/// How long it looks before it leaves a guard in any case.
const PATIENCE: Duration = Duration::from_secs(10);

/// Looks for the processes that have the port in their environment, and were started by us, by root, or by one of these
/// users. Anybody can write our path into an environment: those of others keep nobody here.
pub(super) fn holders(port: &Path, users: &BTreeSet<u32>) -> impl Fn() -> Vec<u32> + Clone + Send + 'static {
    let (port, users, ours) = (port.to_owned(), users.clone(), getuid().as_raw());
    move || {
        let counts = |pid| user_of(pid).is_some_and(|uid| uid == 0 || uid == ours || users.contains(&uid));
        System::current().started_with(port.as_os_str().as_bytes(), counts)
    }
}

/// Whether nobody is found by `look`, such as [`holders`]. It works on a thread of its own: there may be thousands of
/// processes, and what is read of each is as long as it likes. Looks twice, with a pause behind each, because a process is
/// not seen for a moment while it turns into another one.
pub(super) async fn is_free<L>(look: &L, pause: Duration) -> bool
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
/// is: at no moment is its name free, and no path is resolved again.
pub(in crate::cmd) async fn leave_behind(mut port: Port, users: &BTreeSet<u32>, output: Output) {
    let path = port.path().to_owned();
    let look = holders(&path, users);
    let mut found = None;
    let looking = async { found = timeout(PATIENCE, in_a_thread(look)).await.ok() };
    port.resume_all(looking, |_, _| {}).await;
    let list = match found {
        Some(Ok(holders)) if holders.is_empty() => return,
        Some(Ok(holders)) => holders.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        // The guard is going to know.
        _ => "perhaps processes that can't be looked at in time".to_owned(),
    };
    let path = path.display();
    match port.socket().and_then(|socket| start(socket, port.path(), users)) {
        Ok(guard) => output.note(format_args!(
            "still running: {list}; process {} stays in the background and lets go on what they start",
            guard.id()
        )),
        Err(error) => output.warning(format_args!(
            "still running: {list}; .NET programs that they start will wait for {path}, because nobody could be left \
             there: {error}. 'runtap resume PID' lets each of them go on"
        )),
    }
    port.leave();
}

/// The socket is its stdin.
fn start(socket: OwnedFd, port: &Path, users: &BTreeSet<u32>) -> io::Result<Child> {
    // Also when the file of the program was replaced meanwhile.
    let mut command = Command::new("/proc/self/exe");
    command.arg("guard-port").arg(port).args(users.iter().map(u32::to_string));
    command.stdin(socket).stdout(Stdio::null()).stderr(Stdio::null());
    // Not with the others of this terminal when Ctrl-C is typed.
    command.process_group(0).spawn()
}

/// `runtap guard-port`: lets everybody go on who dials in, until nobody is left who could.
pub(in crate::cmd) async fn run(path: OsString, users: Vec<u32>) -> anyhow::Result<u8> {
    let (path, users) = (Path::new(&path), BTreeSet::from_iter(users));
    let port = io::stdin().as_fd().try_clone_to_owned();
    let port = port.and_then(|socket| Port::passed_on(socket, path, own_port::lets_everybody_in()));
    let mut port = port.map_err(|error| {
        let hint = "runtap starts this itself, with the socket in place of stdin".to_owned();
        expected(exit::USAGE, format!("guard {}: {error}", path.display()), hint)
    })?;
    let look = holders(path, &users);
    let until = async {
        while !is_free(&look, LOOK).await {
            sleep(LOOK).await;
        }
    };
    port.resume_all(until, |_, _| {}).await;
    drop(port);
    // After the socket in it.
    drop(Home::of(path));
    Ok(exit::OK)
}

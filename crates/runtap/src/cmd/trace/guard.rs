//! Processes that outlive `trace -- COMMAND` and still have its port in their environment. What they start would wait
//! for ever, so a small process stays behind that lets it go on, until the last of them has ended.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use runtap_diag::ports::user_of;
use runtap_transport::discover::System;
use rustix::process::getuid;
use tokio::time::sleep;

use super::keeper;
use crate::exit;
use crate::output::Output;

/// How often it looks who is left.
const LOOK: Duration = Duration::from_secs(1);
/// How long the one before us may take to leave the port.
const HANDOVER: u32 = 10;

/// The processes that have the port in their environment, and were started by us, by root, or by one of these users.
/// Anybody can write our path into an environment: those of others keep nobody here.
pub(super) fn holders(port: &Path, users: &BTreeSet<u32>) -> Vec<u32> {
    let mut holders = System::current().started_with(port.as_os_str().as_bytes());
    let ours = getuid().as_raw();
    holders.retain(|pid| user_of(*pid).is_some_and(|uid| uid == 0 || uid == ours || users.contains(&uid)));
    holders
}

/// Starts a guard for the port if anybody is left who could need it. The port must be free.
pub(in crate::cmd) fn leave_behind(port: &Path, users: &BTreeSet<u32>, output: Output) {
    let holders = holders(port, users);
    if holders.is_empty() {
        return;
    }
    // Also when the file of the program was replaced meanwhile.
    let mut command = Command::new("/proc/self/exe");
    command.arg("guard-port").arg(port).args(users.iter().map(u32::to_string));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Not with the others of this terminal when Ctrl-C is typed.
    let started = std::os::unix::process::CommandExt::process_group(&mut command, 0).spawn();
    let list: Vec<String> = holders.iter().map(ToString::to_string).collect();
    let (list, path) = (list.join(", "), port.display());
    match started {
        Ok(guard) => output.note(format_args!(
            "still running: {list}; process {} stays in the background and lets go on what they start",
            guard.id()
        )),
        Err(error) => output.warning(format_args!(
            "still running: {list}; .NET programs that they start will wait for {path}, because nobody could be left \
             there: {error}"
        )),
    }
}

/// `runtap guard-port`: lets everybody go on who dials in, until nobody is left who could.
pub(in crate::cmd) async fn run(path: OsString, users: Vec<u32>) -> anyhow::Result<u8> {
    let (path, users) = (Path::new(&path), BTreeSet::from_iter(users));
    let mut tries = 0;
    let port = loop {
        match keeper::bind_at(path) {
            Ok(port) => break port,
            Err(_) if tries < HANDOVER => tries += 1,
            Err(error) => return Err(error),
        }
        sleep(LOOK).await;
    };
    let until = async {
        // Twice, because a process is not seen for a moment while it turns into another one.
        let mut missed = 0;
        while missed < 2 {
            missed = if holders(path, &users).is_empty() { missed + 1 } else { 0 };
            sleep(LOOK).await;
        }
    };
    port.resume_all(until, |_, _| {}).await;
    Ok(exit::OK)
}

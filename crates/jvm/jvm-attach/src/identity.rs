//! Acting with the rights of the JVM's user, on a separate thread. What the thread creates belongs to that user and
//! can appear only where that user could create it, and the JVM accepts the connection as one of its own user,
//! which JDK 8 and JVMs in user namespaces require even from root.
//!
//! Only the effective IDs change. The thread's real user remains that of this process, so the other user cannot
//! signal it.

use std::io;
use std::time::Duration;

use runtap_os::in_named_thread;
use rustix::fs::{Gid, Uid};
use rustix::process::{getegid, geteuid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use crate::error::AttachError;
use crate::jvm::Jvm;

/// Runs a function as the user of a JVM. That user may control how long it takes (through a file system), so it has
/// a time limit; afterwards the thread is abandoned.
pub(crate) async fn as_its_user<T: Send + 'static>(
    jvm: &Jvm,
    limit: Duration,
    what: &'static str,
    act: impl FnOnce(&Jvm) -> Result<T, AttachError> + Send + 'static,
) -> Result<T, AttachError> {
    let jvm = jvm.clone();
    let acting = in_named_thread("jvm-attach", move || {
        become_user(jvm.user(), jvm.group())
            .map_err(AttachError::io("act as the user of the process"))
            .and_then(|()| act(&jvm))
    });
    match tokio::time::timeout(limit, acting).await {
        Ok(done) => done.map_err(AttachError::io(what))?,
        Err(_elapsed) => Err(AttachError::io(what)(io::ErrorKind::TimedOut.into())),
    }
}

/// Changes the user and group of the current thread permanently.
fn become_user(user: u32, group: u32) -> io::Result<()> {
    let (own_user, own_group) = (geteuid(), getegid());
    let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
    if user != own_user {
        set_thread_groups(&[])?;
        set_thread_res_gid(None, group, None)?;
        set_thread_res_uid(None, user, None)?;
    } else if group != own_group {
        // JVMs compare the group too. If it cannot be changed, the JVM decides whether to accept the connection.
        let _ = set_thread_res_gid(None, group, None);
    }
    Ok(())
}

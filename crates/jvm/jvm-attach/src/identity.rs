//! Acting with the rights of the JVM's user, on a thread made for it: what is created then is that user's and appears only
//! where that user could create it, and the JVM takes the connection for one of its own user, which JDK 8 and JVMs in user
//! namespaces want of root, too.
//!
//! Only the effective ids change: as the thread's real user remains ours, the other user can't send it signals.

use std::io;
use std::time::Duration;

use runtap_os::in_named_thread;
use rustix::fs::{Gid, Uid};
use rustix::process::{getegid, geteuid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use crate::error::AttachError;
use crate::jvm::Jvm;

/// Does something as the user of a JVM. How long it takes may be that user's to choose (a file system of theirs), so it has a
/// limit; beyond it the thread is left to itself.
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

/// The thread that calls it, for good.
fn become_user(user: u32, group: u32) -> io::Result<()> {
    let (own_user, own_group) = (geteuid(), getegid());
    let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
    if user != own_user {
        set_thread_groups(&[])?;
        set_thread_res_gid(None, group, None)?;
        set_thread_res_uid(None, user, None)?;
    } else if group != own_group {
        // JVMs compare the group as well. Without the right to change it, the JVM decides.
        let _ = set_thread_res_gid(None, group, None);
    }
    Ok(())
}

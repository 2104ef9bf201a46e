//! An attacker who wants root's requests, or root's programs: a listener of another user in this process that records
//! what it receives. The kernel records the user of the thread that starts to listen, so no other program is needed.
//! Requires root.

use std::fs;
use std::io::Read;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::process::{Gid, Uid};
use rustix::thread::{set_thread_res_gid, set_thread_res_uid};

/// The user id of `nobody`.
pub(crate) const NOBODY: u32 = 65_534;

/// A listener that does not answer, until the test ends.
pub(crate) struct Attacker {
    heard: Arc<Mutex<Received>>,
}

/// Permanently changes the user of this thread.
pub(crate) fn become_user(uid: u32) {
    let (group, user) = (Gid::from_raw(uid), Uid::from_raw(uid));
    set_thread_res_gid(group, group, group).unwrap();
    set_thread_res_uid(user, user, user).unwrap();
}

#[derive(Debug, Default)]
struct Received {
    connections: usize,
    bytes: Vec<u8>,
}

impl Attacker {
    /// Listens at `path` as user `nobody`.
    pub(crate) fn at(path: &Path) -> Self {
        Self::of_user(path, Some(NOBODY))
    }

    /// Listens at `path` as this user; `None` is the current user.
    pub(crate) fn of_user(path: &Path, uid: Option<u32>) -> Self {
        let heard = Arc::new(Mutex::new(Received::default()));
        let (path, kept) = (path.to_owned(), Arc::clone(&heard));
        let (tell, told) = mpsc::channel();
        thread::spawn(move || {
            if let Some(uid) = uid {
                become_user(uid);
            }
            let listener = UnixListener::bind(&path).unwrap();
            tell.send(()).unwrap();
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                kept.lock().unwrap().connections += 1;
                // Closes the connection of a client that waits for an answer.
                stream.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
                let mut bytes = [0; 4096];
                while let Ok(n @ 1..) = stream.read(&mut bytes) {
                    kept.lock().unwrap().bytes.extend(&bytes[..n]);
                }
            }
        });
        told.recv().unwrap();
        Self { heard }
    }

    /// Checks that no bytes were received.
    #[track_caller]
    pub(crate) fn received_nothing(&self) {
        let heard = self.heard.lock().unwrap();
        assert!(heard.bytes.is_empty(), "it was told: {}", String::from_utf8_lossy(&heard.bytes));
    }

    /// Checks that no connection was made.
    #[track_caller]
    pub(crate) fn has_no_connection(&self) {
        self.received_nothing();
        assert_eq!(self.heard.lock().unwrap().connections, 0);
    }
}

/// A thread of user `nobody` that repeatedly tries to listen at the name of a port, and to remove or rename the existing file.
pub(crate) struct Squatter {
    over: Arc<AtomicBool>,
    tries: JoinHandle<Option<&'static str>>,
}

impl Squatter {
    pub(crate) fn at(port: &Path) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let (port, stop) = (port.to_owned(), Arc::clone(&over));
        let tries = thread::spawn(move || {
            become_user(NOBODY);
            let folder = port.parent().unwrap();
            let aside = folder.with_extension("aside");
            while !stop.load(Ordering::Relaxed) {
                if UnixListener::bind(&port).is_ok() {
                    return Some("listened there");
                }
                if fs::remove_file(&port).is_ok() || fs::rename(&port, folder.join("aside")).is_ok() {
                    return Some("removed the socket");
                }
                if fs::rename(folder, &aside).is_ok() || fs::remove_dir(folder).is_ok() {
                    return Some("removed the folder");
                }
            }
            None
        });
        Self { over, tries }
    }

    /// Checks that no attempt has succeeded.
    #[track_caller]
    pub(crate) fn never_succeeded(self) {
        self.over.store(true, Ordering::Relaxed);
        assert_eq!(self.tries.join().unwrap(), None, "what another user has done to the port");
    }
}

//! Threads for slow calls, and the limit on open files.

use std::io;
use std::thread;

use tokio::sync::oneshot;

/// Runs `work` on a new thread, so that signals are handled meanwhile. If the future is dropped, the thread continues
/// until it finishes or the program exits.
///
/// # Errors
/// If the thread cannot be created or panics.
pub async fn in_a_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    in_named_thread("work", work).await
}

/// Like [`in_a_thread`], with a thread name that `ps -L` shows.
///
/// # Errors
/// See [`in_a_thread`].
pub async fn in_named_thread<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    let (tell, done) = oneshot::channel();
    thread::Builder::new().name(name.into()).spawn(move || {
        // Fails if the future was dropped.
        let _ = tell.send(work());
    })?;
    done.await.map_err(io::Error::other)
}

/// Raises the limit on open files to its maximum, because every recorded or queried process needs several. Child
/// processes inherit the limit, so start commands before.
#[cfg(unix)]
pub fn allow_many_files() {
    use rustix::process::{Resource, getrlimit, setrlimit};

    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // On failure the current limit stays.
    let _ = setrlimit(Resource::Nofile, limit);
}

/// Does nothing: Windows has no such limit.
#[cfg(not(unix))]
pub fn allow_many_files() {}

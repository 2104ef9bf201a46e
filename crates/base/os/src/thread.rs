//! Looking at processes takes as long as they choose, and dialling many of them takes many descriptors: a thread for the one,
//! the limit for the other. Knows nothing of what is done with them.

use std::io;
use std::thread;

use tokio::sync::oneshot;

/// Works on a thread of its own, so that signals are handled meanwhile. The end of the program ends it too, and so whoever does
/// not wait for it any more leaves it to itself.
///
/// # Errors
/// There is no thread, or it has panicked.
pub async fn in_a_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    in_thread_called("work", work).await
}

/// The same by a name that `ps -L` shows.
///
/// # Errors
/// As [`in_a_thread`].
pub async fn in_thread_called<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    let (tell, done) = oneshot::channel();
    thread::Builder::new().name(name.into()).spawn(move || {
        // Nobody listens any more when the program ends.
        let _ = tell.send(work());
    })?;
    done.await.map_err(io::Error::other)
}

/// Takes as many descriptors as the system allows: each process that is recorded, or asked, needs a few. Programs that are
/// started later would inherit that, so a command is started before.
#[cfg(unix)]
pub fn allow_many_files() {
    use rustix::process::{Resource, getrlimit, setrlimit};

    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Then there are as many as there were.
    let _ = setrlimit(Resource::Nofile, limit);
}

/// There is no such limit here.
#[cfg(not(unix))]
pub fn allow_many_files() {}

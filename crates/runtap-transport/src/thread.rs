//! Work that takes its time: looking at processes, copying files. How long is for others to choose.

use std::io;
use std::thread;

use tokio::sync::oneshot;

/// Works on a thread of its own, so that signals are heard meanwhile. The end of the program ends it too.
///
/// # Errors
/// There is no thread, or it has panicked.
pub async fn in_a_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    in_thread_called("work", work).await
}

/// The same by a name that `ps -L` shows.
///
/// # Errors
/// As [`in_a_thread`] has.
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

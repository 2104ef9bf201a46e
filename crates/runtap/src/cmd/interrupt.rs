//! Ctrl-C for what has nothing to finish: it ends at once, and what it holds is dropped, so that no socket stays behind.
//! Verbs with something to finish listen themselves ([`Stops`]).

use std::thread;

use tokio::sync::oneshot;

use super::trace::signals::Stops;
use crate::exit::{self, expected};

/// Does this, or ends as a program does that is interrupted (code 130), told to end (143) or hung up on (129).
///
/// Signals are heard from the first moment on: whoever sees a socket of ours can end us.
///
/// # Errors
/// Those of the work, and the interruption.
pub(super) async fn or_interrupted<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    unless(&Stops::listen()?, work).await
}

/// The same for somebody who listens already.
pub(super) async fn unless<T>(
    stops: &Stops,
    work: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<T> {
    tokio::select! {
        biased;
        result = work => result,
        () = stops.stopping() => {
            Err(expected(stops.exit_code().unwrap_or(exit::INTERRUPTED), "interrupted", None))
        }
    }
}

/// Works on a thread of its own, so that signals are heard meanwhile. The end of the program ends it too.
///
/// # Errors
/// There is no thread.
pub(super) async fn in_a_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> anyhow::Result<T> {
    let (tell, done) = oneshot::channel();
    thread::Builder::new().name("work".into()).spawn(move || {
        // Nobody listens any more when the program ends.
        let _ = tell.send(work());
    })?;
    Ok(done.await?)
}

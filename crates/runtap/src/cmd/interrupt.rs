//! Ctrl-C for what has nothing to finish: it ends at once, and what it holds is dropped, so that no socket stays behind.
//! Verbs with something to finish listen themselves ([`Stops`]).

use runtap_record::Stops;

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
pub(super) async fn unless<T, E: Into<anyhow::Error>>(
    stops: &Stops,
    work: impl Future<Output = Result<T, E>>,
) -> anyhow::Result<T> {
    tokio::select! {
        biased;
        result = work => result.map_err(Into::into),
        () = stops.stopping() => {
            Err(expected(stops.exit_code().unwrap_or(exit::INTERRUPTED), "interrupted", None))
        }
    }
}

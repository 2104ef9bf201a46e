//! Ctrl-C for verbs that stop immediately: their future is dropped, so that its sockets are removed. Verbs that must finish
//! a result handle signals themselves with [`Stops`].

use runtap_record::Stops;

use crate::exit::{self, expected};

/// Runs the work until it completes or a signal arrives: SIGINT (exit code 130), SIGTERM (143) or SIGHUP (129).
///
/// The signal handlers are installed before the work starts, so a signal never leaves a socket behind.
///
/// # Errors
/// The work failed or was interrupted.
pub(super) async fn or_interrupted<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    unless(&Stops::listen()?, work).await
}

/// Runs the work until it completes or `stops` reports a signal.
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

/// Does what Ctrl-C does. Called by full-screen interfaces, which exist on Unix only.
pub(super) fn interrupt() {
    #[cfg(unix)]
    // A signal to the own process does not fail.
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::INT);
}

//! Signals that request a stop.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use super::Requests;

/// Starts a task for each signal.
pub(super) fn listen(requests: &watch::Sender<Requests>) -> io::Result<()> {
    for kind in [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()] {
        if kind == SignalKind::hangup() && is_ignored(kind) {
            continue;
        }
        tokio::spawn(count(signal(kind)?, kind, requests.clone()));
    }
    Ok(())
}

/// Counts one signal forever.
async fn count(mut signal: Signal, kind: SignalKind, requests: watch::Sender<Requests>) {
    let number = u8::try_from(kind.as_raw_value()).ok();
    let mut again = false;
    while signal.recv().await.is_some() {
        requests.send_modify(|requests| requests.count(number, again));
        again = true;
    }
}

/// Whether this process was started with a signal ignored. False if unknown.
pub(crate) fn is_ignored(kind: SignalKind) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask & (1 << (kind.as_raw_value() - 1)) != 0
}

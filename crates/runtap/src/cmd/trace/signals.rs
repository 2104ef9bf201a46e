//! The signals that mean "enough", from the first moment of a recording to the last.

use std::future;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    /// Finish the recording.
    Stop,
    /// The same signal a second time: give up what is not there yet.
    GiveUp,
}

/// Listens for SIGINT, SIGTERM and SIGHUP. A hang-up that was ignored when we were started (`nohup`) stays ignored;
/// the others are heard all the same, because shells start jobs in the background with SIGINT ignored, and scripts
/// end just those with it.
pub(super) struct Signals {
    interrupt: Listener,
    terminate: Listener,
    hang_up: Listener,
    last: u8,
}

struct Listener {
    signal: Option<Signal>,
    seen: u32,
}

impl Signals {
    pub(super) fn listen() -> std::io::Result<Self> {
        let listener = |signal| Listener { signal, seen: 0 };
        let hang_up =
            if is_ignored(SignalKind::hangup()) { None } else { Some(signal(SignalKind::hangup())?) };
        Ok(Self {
            interrupt: listener(Some(signal(SignalKind::interrupt())?)),
            terminate: listener(Some(signal(SignalKind::terminate())?)),
            hang_up: listener(hang_up),
            last: 0,
        })
    }

    /// The next signal's wish. Dropping the future loses no signal.
    pub(super) async fn next(&mut self) -> Wish {
        let (number, seen) = tokio::select! {
            n = self.interrupt.next() => (2, n),
            n = self.terminate.next() => (15, n),
            n = self.hang_up.next() => (1, n),
        };
        self.last = number;
        if seen > 1 { Wish::GiveUp } else { Wish::Stop }
    }

    /// The exit code of a program that the last signal ended.
    pub(super) fn exit_code(&self) -> u8 {
        128 + self.last
    }
}

impl Listener {
    async fn next(&mut self) -> u32 {
        if let Some(signal) = &mut self.signal
            && signal.recv().await.is_some()
        {
            self.seen += 1;
            return self.seen;
        }
        // Ignored, or no more signals can come.
        future::pending().await
    }
}

/// Whether we were started with a signal ignored, which only the kernel knows; no where it can't be read.
fn is_ignored(kind: SignalKind) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask & (1 << (kind.as_raw_value() - 1)) != 0
}

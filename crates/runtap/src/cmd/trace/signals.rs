//! What means "enough", from the first moment of a recording to the last: signals, the end of `--duration`, and a
//! stopping event. Everything that has to end listens with an [`Ear`] of its own.

use std::future;
use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cmd) enum Wish {
    /// Finish the recording.
    Stop,
    /// The same signal a second time: give up what is not there yet.
    GiveUp,
}

/// What was heard so far.
#[derive(Debug, Clone, Copy, Default)]
struct Heard {
    stops: u32,
    give_ups: u32,
    /// The last signal.
    signal: Option<u8>,
}

/// Listens for SIGINT, SIGTERM and SIGHUP. A hang-up that was ignored when we were started (`nohup`) stays ignored;
/// the others are heard all the same, because shells start jobs in the background with SIGINT ignored, and scripts
/// end just those with it.
#[derive(Debug, Clone)]
pub(in crate::cmd) struct Stops {
    heard: watch::Sender<Heard>,
}

impl Stops {
    /// Listens from now on. Needs a tokio runtime.
    pub(in crate::cmd) fn listen() -> io::Result<Self> {
        let stops = Self { heard: watch::Sender::new(Heard::default()) };
        for kind in [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()] {
            if kind == SignalKind::hangup() && is_ignored(kind) {
                continue;
            }
            tokio::spawn(count(signal(kind)?, kind, stops.heard.clone()));
        }
        Ok(stops)
    }

    /// Asks for the end without a signal.
    pub(in crate::cmd) fn stop(&self) {
        self.heard.send_modify(|heard| heard.stops += 1);
    }

    /// Hears what comes from now on, and knows what came before.
    pub(in crate::cmd) fn ear(&self) -> Ear {
        let heard = self.heard.subscribe();
        let seen = *heard.borrow();
        Ear { heard, seen }
    }

    /// Whether the end was asked for.
    pub(in crate::cmd) fn is_stopping(&self) -> bool {
        let heard = self.heard.borrow();
        heard.stops + heard.give_ups > 0
    }

    /// Ready when the end was asked for, or has been.
    pub(in crate::cmd) async fn stopping(&self) {
        let mut heard = self.heard.subscribe();
        // Fails only without a sender, which is `self`.
        let _ = heard.wait_for(|heard| heard.stops + heard.give_ups > 0).await;
    }

    /// The exit code of a program that the last signal ended.
    pub(in crate::cmd) fn exit_code(&self) -> Option<u8> {
        self.heard.borrow().signal.map(|signal| 128 + signal)
    }
}

/// Somebody who listens.
#[derive(Debug)]
pub(in crate::cmd) struct Ear {
    heard: watch::Receiver<Heard>,
    seen: Heard,
}

impl Ear {
    /// The next wish; the stronger one of several. Dropping the future loses none.
    pub(in crate::cmd) async fn next(&mut self) -> Wish {
        let seen = self.seen;
        let news = |heard: &Heard| heard.stops > seen.stops || heard.give_ups > seen.give_ups;
        let Ok(heard) = self.heard.wait_for(news).await.map(|heard| *heard) else {
            // Nobody is left to ask for anything.
            return future::pending().await;
        };
        let wish = if heard.give_ups > seen.give_ups { Wish::GiveUp } else { Wish::Stop };
        self.seen = heard;
        wish
    }
}

/// Counts one signal for ever.
async fn count(mut signal: Signal, kind: SignalKind, heard: watch::Sender<Heard>) {
    let number = u8::try_from(kind.as_raw_value()).ok();
    let mut seen = 0u32;
    while signal.recv().await.is_some() {
        seen += 1;
        heard.send_modify(|heard| {
            heard.signal = number;
            if seen > 1 {
                heard.give_ups += 1;
            } else {
                heard.stops += 1;
            }
        });
    }
}

/// Whether we were started with a signal ignored, which only the kernel knows; no where it can't be read.
pub(in crate::cmd) fn is_ignored(kind: SignalKind) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask & (1 << (kind.as_raw_value() - 1)) != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_ear_hears_what_comes_and_the_stronger_of_two() {
        let stops = Stops { heard: watch::Sender::new(Heard::default()) };
        let mut early = stops.ear();
        assert!(!stops.is_stopping());
        stops.stop();
        assert_eq!(early.next().await, Wish::Stop);
        stops.stopping().await;
        let mut late = stops.ear();
        stops.heard.send_modify(|heard| {
            heard.stops += 1;
            heard.give_ups += 1;
        });
        assert_eq!((early.next().await, late.next().await), (Wish::GiveUp, Wish::GiveUp));
        assert!(stops.is_stopping());
        assert_eq!(stops.exit_code(), None);
    }
}

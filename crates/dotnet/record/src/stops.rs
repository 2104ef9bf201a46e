//! What means "enough", from the first moment of a recording to the last: signals, the end of the time, and a stop event.
//! Everything that has to end listens with a [`StopListener`] of its own.

use std::future;
use std::io;

use tokio::sync::watch;

#[cfg_attr(unix, path = "stops/unix.rs")]
#[cfg_attr(windows, path = "stops/windows.rs")]
mod native;

#[cfg(unix)]
pub(crate) use self::native::is_ignored;

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopRequest {
    /// Finish the recording.
    Stop,
    /// The same signal a second time: abandon what is not there yet.
    Abandon,
}

/// What was requested so far.
#[derive(Debug, Clone, Copy, Default)]
struct Requests {
    stops: u32,
    abandons: u32,
    /// The last signal.
    signal: Option<u8>,
}

/// Listens for SIGINT, SIGTERM and SIGHUP; on Windows for Ctrl-C, Ctrl-Break, a closed console and a shutdown. A hang-up that was ignored when we were started (`nohup`) stays ignored;
/// the others are handled all the same, because shells start jobs in the background with SIGINT ignored, and scripts
/// end just those with it.
#[derive(Debug, Clone)]
pub struct Stops {
    requests: watch::Sender<Requests>,
}

impl Stops {
    /// Listens from now on. Needs a tokio runtime.
    pub fn listen() -> io::Result<Self> {
        let stops = Self { requests: watch::Sender::new(Requests::default()) };
        native::listen(&stops.requests)?;
        Ok(stops)
    }

    /// Asks for the end without a signal.
    pub fn stop(&self) {
        self.requests.send_modify(|requests| requests.stops += 1);
    }

    /// Hears what comes from now on, and knows what came before.
    pub fn listener(&self) -> StopListener {
        let requests = self.requests.subscribe();
        let seen = *requests.borrow();
        StopListener { requests, seen }
    }

    /// Whether the end was asked for.
    pub fn is_stopping(&self) -> bool {
        let requests = self.requests.borrow();
        requests.stops + requests.abandons > 0
    }

    /// Ready when the end was asked for, or has been.
    pub async fn stopping(&self) {
        let mut requests = self.requests.subscribe();
        // Fails only without a sender, which is `self`.
        let _ = requests.wait_for(|requests| requests.stops + requests.abandons > 0).await;
    }

    /// The exit code of a program that the last signal ended.
    pub fn exit_code(&self) -> Option<u8> {
        self.requests.borrow().signal.map(|signal| 128 + signal)
    }
}

/// Somebody who listens.
#[derive(Debug)]
pub struct StopListener {
    requests: watch::Receiver<Requests>,
    seen: Requests,
}

impl StopListener {
    /// The next request; the stronger one of several. Dropping the future loses none.
    pub async fn next(&mut self) -> StopRequest {
        let seen = self.seen;
        let news = |requests: &Requests| requests.stops > seen.stops || requests.abandons > seen.abandons;
        let Ok(requests) = self.requests.wait_for(news).await.map(|requests| *requests) else {
            // Nobody is left to ask for anything.
            return future::pending().await;
        };
        let request =
            if requests.abandons > seen.abandons { StopRequest::Abandon } else { StopRequest::Stop };
        self.seen = requests;
        request
    }
}

impl Requests {
    /// One of the system's, for the first time or again.
    fn count(&mut self, number: Option<u8>, again: bool) {
        self.signal = number;
        if again {
            self.abandons += 1;
        } else {
            self.stops += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_listener_hears_what_comes_and_the_stronger_of_two() {
        let stops = Stops { requests: watch::Sender::new(Requests::default()) };
        let mut early = stops.listener();
        assert!(!stops.is_stopping());
        stops.stop();
        assert_eq!(early.next().await, StopRequest::Stop);
        stops.stopping().await;
        let mut late = stops.listener();
        stops.requests.send_modify(|requests| {
            requests.stops += 1;
            requests.abandons += 1;
        });
        assert_eq!((early.next().await, late.next().await), (StopRequest::Abandon, StopRequest::Abandon));
        assert!(stops.is_stopping());
        assert_eq!(stops.exit_code(), None);
    }
}

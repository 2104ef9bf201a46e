//! Requests to stop a recording: signals, the end of the duration, and a stop event. Every part that must stop has its own
//! [`StopListener`].

use std::future;
use std::io;

use tokio::sync::watch;

#[cfg_attr(unix, path = "stops/unix.rs")]
#[cfg_attr(windows, path = "stops/windows.rs")]
mod native;

#[cfg(unix)]
pub(crate) use self::native::is_ignored;

/// A request to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopRequest {
    /// Finish the recording.
    Stop,
    /// Abandon what is not complete: the signal was received again.
    Abandon,
}

/// The requests so far.
#[derive(Debug, Clone, Copy, Default)]
struct Requests {
    stops: u32,
    abandons: u32,
    /// The number of the last signal.
    signal: Option<u8>,
}

/// Listens for SIGINT, SIGTERM and SIGHUP; on Windows for Ctrl-C, Ctrl-Break, a closed console and a shutdown. A hang-up that was
/// ignored when this process was started (`nohup`) stays ignored. Other signals are handled even if ignored, because shells start
/// background jobs with SIGINT ignored, and scripts stop such jobs with it.
#[derive(Debug, Clone)]
pub struct Stops {
    requests: watch::Sender<Requests>,
}

impl Stops {
    /// Starts listening. Requires a tokio runtime.
    pub fn listen() -> io::Result<Self> {
        let stops = Self { requests: watch::Sender::new(Requests::default()) };
        native::listen(&stops.requests)?;
        Ok(stops)
    }

    /// Requests a stop without a signal.
    pub fn stop(&self) {
        self.requests.send_modify(|requests| requests.stops += 1);
    }

    /// Creates a listener for future requests.
    pub fn listener(&self) -> StopListener {
        let requests = self.requests.subscribe();
        let seen = *requests.borrow();
        StopListener { requests, seen }
    }

    /// Whether a stop has been requested.
    pub fn is_stopping(&self) -> bool {
        let requests = self.requests.borrow();
        requests.stops + requests.abandons > 0
    }

    /// Waits until a stop has been requested.
    pub async fn stopping(&self) {
        let mut requests = self.requests.subscribe();
        // Fails only without a sender, which is `self`.
        let _ = requests.wait_for(|requests| requests.stops + requests.abandons > 0).await;
    }

    /// Returns the exit code of a program that was stopped by the last signal. `None` without a signal.
    pub fn exit_code(&self) -> Option<u8> {
        self.requests.borrow().signal.map(|signal| 128 + signal)
    }
}

/// A listener for stop requests.
#[derive(Debug)]
pub struct StopListener {
    requests: watch::Receiver<Requests>,
    seen: Requests,
}

impl StopListener {
    /// Waits for the next request; the stronger one if there are several. Cancel safe.
    pub async fn next(&mut self) -> StopRequest {
        let seen = self.seen;
        let news = |requests: &Requests| requests.stops > seen.stops || requests.abandons > seen.abandons;
        let Ok(requests) = self.requests.wait_for(news).await.map(|requests| *requests) else {
            // No more requests can occur.
            return future::pending().await;
        };
        let request =
            if requests.abandons > seen.abandons { StopRequest::Abandon } else { StopRequest::Stop };
        self.seen = requests;
        request
    }
}

impl Requests {
    /// Counts a signal, received for the first time or again.
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
    async fn a_listener_receives_new_requests_and_the_stronger_of_two() {
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

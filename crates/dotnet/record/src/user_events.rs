//! Records to tracepoints of the kernel (`user_events`): the target writes its events there while the session exists, and other
//! tools read them. There is no stream and no file.

#![allow(clippy::doc_markdown, reason = "user_events is a word here, not code")]

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use runtap_diag::user_events::UserEventsSession;
use runtap_diag::{Client, Error, UserEventsConfig};
use tokio::time::sleep;

use crate::{StopRequest, Stops};

/// A recording to tracepoints.
#[derive(Debug)]
pub struct UserEvents {
    /// The events, and their tracepoints.
    pub config: UserEventsConfig,
    /// The file through which the target writes to the kernel, from [`open_data_file`](runtap_diag::user_events::open_data_file).
    pub descriptor: OwnedFd,
    /// The duration. `None` until a stop is requested.
    pub duration: Option<Duration>,
    /// Whether the runtime is resumed if it is suspended at startup.
    pub resume: bool,
}

/// An event that occurs during the recording.
#[derive(Debug)]
pub enum UserEvent<'a> {
    /// The runtime may be suspended and could not be resumed.
    NotResumed(&'a Error),
    /// The session has started.
    Started,
    /// The target has exited, or has ended the session.
    Ended,
    /// The recording was abandoned while the target was writing the names of its methods.
    Abandoned,
}

/// The result of a recording to tracepoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserEventsOutcome {
    /// The duration of the session.
    pub duration: Duration,
    /// Whether method names are missing.
    pub is_partial: bool,
}

impl UserEvents {
    /// Records a runtime until the end of the duration or a stop request. Returns `None` if a stop was requested before the session
    /// started.
    ///
    /// # Errors
    /// Returns an error if the runtime rejects the session, is too old, or does not answer.
    pub async fn record(
        self,
        client: &Client,
        stops: &Stops,
        tell: &dyn Fn(UserEvent<'_>),
    ) -> Result<Option<UserEventsOutcome>, Error> {
        let session = tokio::select! {
            biased;
            () = stops.stopping() => return Ok(None),
            session = client.start_user_events(&self.config, self.descriptor) => session?,
        };
        let started = Instant::now();
        if self.resume
            && let Err(error) = client.resume().await
        {
            tell(UserEvent::NotResumed(&error));
        }
        tell(UserEvent::Started);
        let is_partial = !hold(session, self.duration, stops, tell).await?;
        Ok(Some(UserEventsOutcome { duration: started.elapsed(), is_partial }))
    }
}

/// Waits for the end of the session, and stops it with the names of methods. Returns whether all of these were written.
async fn hold(
    mut session: UserEventsSession,
    duration: Option<Duration>,
    stops: &Stops,
    tell: &dyn Fn(UserEvent<'_>),
) -> Result<bool, Error> {
    let enough = async {
        match duration {
            Some(duration) => sleep(duration).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = session.ended() => {
            tell(UserEvent::Ended);
            return Ok(true);
        }
        () = stops.stopping() => {}
        () = enough => {}
    }
    let mut requests = stops.listener();
    let mut stopping = std::pin::pin!(session.stop());
    loop {
        tokio::select! {
            stopped = &mut stopping => return stopped.map(|()| true),
            request = requests.next() => if request == StopRequest::Abandon {
                tell(UserEvent::Abandoned);
                return Ok(false);
            },
        }
    }
}

//! Recording into tracepoints of the kernel (`user_events`): the target writes its events there for as long as we live, and
//! others read them. No stream comes back, and no file is written.

#![allow(clippy::doc_markdown, reason = "user_events is a word here, not code")]

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use runtap_diag::user_events::UserEventsSession;
use runtap_diag::{Client, Error, UserEventsConfig};
use tokio::time::sleep;

use crate::{StopRequest, Stops};

/// A recording into tracepoints.
#[derive(Debug)]
pub struct UserEvents {
    /// What is recorded, and where to.
    pub config: UserEventsConfig,
    /// The file through which the kernel is written to, from
    /// [`open_data_file`](runtap_diag::user_events::open_data_file).
    pub descriptor: OwnedFd,
    /// How long; without it until somebody asks for the end.
    pub duration: Option<Duration>,
    /// Whether the runtime is told to go on, in case it waits at its start.
    pub resume: bool,
}

/// What happens meanwhile.
#[derive(Debug)]
pub enum UserEvent<'a> {
    /// The runtime may be suspended, and could not be told to go on.
    NotResumed(&'a Error),
    /// The session has begun.
    Started,
    /// The target has ended, or has ended the session.
    Ended,
    /// The end was asked for once more, while the target still wrote the names of its methods.
    Abandoned,
}

/// A recording into tracepoints that is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserEventsOutcome {
    /// From the first moment of the session to its end.
    pub duration: Duration,
    /// Whether names of methods are missing.
    pub is_partial: bool,
}

impl UserEvents {
    /// Records a runtime until it is enough. `None` if the end was asked for before there was a session.
    ///
    /// # Errors
    /// The runtime refuses it, is too old, or does not answer.
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

/// Keeps the session until it is enough, and ends it with the names of the methods; whether all of these came.
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

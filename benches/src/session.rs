//! A session whose events a thread reads and counts while the program under test works.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use anyhow::{Context as _, Result, bail};
use runtap_diag::blocking::Client;
use runtap_diag::{Provider, SessionConfig, SessionId};
use runtap_nettrace::{Reader, StreamItem};
use runtap_transport::Endpoint;

/// A running session and the thread that reads it.
pub(crate) struct CountedSession {
    client: Client,
    id: SessionId,
    events: Arc<AtomicU64>,
    reading: JoinHandle<Result<u64>>,
}

impl CountedSession {
    /// Starts a session with one provider.
    pub(crate) fn start(endpoint: Endpoint, provider: Provider) -> Result<Self> {
        let client = Client::new(endpoint)?;
        let mut session = client.start_session(&SessionConfig::new(vec![provider]))?;
        let (id, events) = (session.id(), Arc::new(AtomicU64::new(0)));
        let count = Arc::clone(&events);
        let reading = thread::spawn(move || {
            let mut reader = Reader::new();
            while let Some(chunk) = session.next_chunk()? {
                reader.feed(&chunk);
                while let Some(item) = reader.next()? {
                    count.fetch_add(u64::from(matches!(item, StreamItem::Event(_))), Ordering::Relaxed);
                }
            }
            Ok(reader.lost())
        });
        Ok(Self { client, id, events, reading })
    }

    /// The number of events read so far.
    pub(crate) fn events(&self) -> u64 {
        self.events.load(Ordering::Relaxed)
    }

    /// Stops the session, waits for its end, and returns the number of lost events.
    pub(crate) fn stop(self) -> Result<u64> {
        self.client.stop_session(self.id).context("stop the session")?;
        let Ok(lost) = self.reading.join() else { bail!("the reader has failed") };
        lost
    }
}

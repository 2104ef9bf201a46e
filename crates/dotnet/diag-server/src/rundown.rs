//! The rundown at the end of a session, where the program describes the stream's addresses and ids.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::event::{Event, current_thread_id};

/// The level of a rundown session: all events.
const VERBOSE: u32 = 5;

type Source = Arc<dyn Fn(&mut Rundown<'_>) + Send + Sync>;

/// The functions to call at the end of each session.
#[derive(Default)]
pub(crate) struct Sources(Mutex<Vec<Source>>);

impl Sources {
    pub(crate) fn add(&self, source: impl Fn(&mut Rundown<'_>) + Send + Sync + 'static) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::new(source));
    }

    /// Calls all functions. They may register others meanwhile, for the next session.
    pub(crate) fn write(&self, keyword: u64, encoder: &mut dyn WriteRundown) {
        let sources = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for source in sources {
            source(&mut Rundown::new(keyword, encoder));
        }
    }
}

impl fmt::Debug for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sources").finish_non_exhaustive()
    }
}

/// The rundown of one session, where its addresses and ids are described. See
/// [`EventPipe::on_rundown`](crate::EventPipe::on_rundown).
#[derive(Debug)]
pub struct Rundown<'a> {
    keyword: u64,
    thread_id: u64,
    encoder: &'a mut dyn WriteRundown,
}

/// A writer of rundown events. Hides the lifetimes of the encoder.
pub(crate) trait WriteRundown: fmt::Debug {
    fn write(&mut self, definition: usize, thread: u64, payload: &[u8]);
}

impl<'a> Rundown<'a> {
    pub(crate) fn new(keyword: u64, encoder: &'a mut dyn WriteRundown) -> Self {
        Self { keyword, thread_id: current_thread_id(), encoder }
    }

    /// Returns the rundown keyword of the session; never 0.
    pub fn keyword(&self) -> u64 {
        self.keyword
    }

    /// Writes one event into this session only, if its keywords and level pass. Payloads above 64 KiB are omitted.
    ///
    /// `event` must belong to the pipe of this rundown.
    pub fn write(&mut self, event: &Event, payload: &[u8]) {
        let metadata = event.metadata();
        if metadata.level <= VERBOSE && (metadata.keywords == 0 || metadata.keywords & self.keyword != 0) {
            self.encoder.write(event.definition.index, self.thread_id, payload);
        }
    }
}

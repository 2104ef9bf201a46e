//! Consumers of streams: what a recording passes its bytes to if it writes no file.

use std::fmt;
use std::io;
use std::sync::Arc;

/// Consumes the stream of one process, on a thread of its own.
pub trait StreamConsumer: fmt::Debug + Send {
    /// Processes the next bytes. Called without bytes at the end of the stream.
    ///
    /// # Errors
    /// Returns an error if the result can't be written. The recording of the process then ends.
    fn consume(&mut self, bytes: &[u8]) -> io::Result<()>;
}

/// Creates a consumer for each process of a recording.
#[derive(Clone)]
pub struct Consumers(Arc<Create>);

type Create = dyn Fn(u32, &str) -> Box<dyn StreamConsumer> + Send + Sync;

impl Consumers {
    /// Creates consumers with a function of the process id (0 if unknown) and the name of the program.
    pub fn new(create: impl Fn(u32, &str) -> Box<dyn StreamConsumer> + Send + Sync + 'static) -> Self {
        Self(Arc::new(create))
    }

    pub(crate) fn create(&self, pid: u32, name: &str) -> Box<dyn StreamConsumer> {
        (self.0)(pid, name)
    }
}

impl fmt::Debug for Consumers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Consumers")
    }
}

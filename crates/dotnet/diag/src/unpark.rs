//! A waker for a parked thread.

use std::sync::Arc;
use std::task::Wake;
use std::thread::{self, Thread};

/// Unparks a thread.
pub(crate) struct Unpark(Thread);

impl Unpark {
    pub(crate) fn this_thread() -> Arc<Self> {
        Arc::new(Self(thread::current()))
    }
}

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

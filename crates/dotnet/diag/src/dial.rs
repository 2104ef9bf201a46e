//! Where a client's connections come from: it dials the runtime, or the runtime dials in.

use std::sync::Arc;
use std::time::Duration;

use runtap_transport::{Endpoint, Stream};

use crate::Error;
use crate::ports::Slot;

/// The way to one runtime. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) enum Dial {
    /// It listens there.
    Out(Endpoint),
    /// It dials in on a port of ours, once for each command.
    In(Arc<Slot>),
}

impl Dial {
    /// The name of the place, for messages.
    pub(crate) fn endpoint(&self) -> &Endpoint {
        match self {
            Self::Out(endpoint) => endpoint,
            Self::In(slot) => slot.endpoint(),
        }
    }

    /// A connection that nothing was sent on.
    pub(crate) async fn connect(&self, within: Duration) -> Result<Stream, Error> {
        match self {
            Self::Out(endpoint) => Ok(endpoint.connect(within).await?),
            Self::In(slot) => slot.take(within).await,
        }
    }
}

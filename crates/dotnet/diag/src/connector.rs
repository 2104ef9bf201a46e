//! The source of a client's connections: the client connects to the runtime, or the runtime connects to a port.

use std::sync::Arc;
use std::time::Duration;

use runtap_transport::{Endpoint, Stream};

use crate::Error;
use crate::ports::Slot;

/// A source of connections to one runtime. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) enum Connector {
    /// The runtime listens on this endpoint.
    Out(Endpoint),
    /// The runtime connects to a port of this process, once for each command.
    In(Arc<Slot>),
}

impl Connector {
    /// Returns the endpoint or port, for messages.
    pub(crate) fn endpoint(&self) -> &Endpoint {
        match self {
            Self::Out(endpoint) => endpoint,
            Self::In(slot) => slot.endpoint(),
        }
    }

    /// Returns a connection on which nothing was sent.
    pub(crate) async fn connect(&self, within: Duration) -> Result<Stream, Error> {
        match self {
            Self::Out(endpoint) => Ok(endpoint.connect(within).await?),
            Self::In(slot) => slot.take(within).await,
        }
    }
}

//! A second subscriber that receives no events. While a program has only one subscriber, `tracing` re-evaluates callsites
//! only if it is the default of the current thread, which is the server's. With a second one all subscribers are queried.

use std::sync::Arc;

use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber};

use super::Shared;

/// A subscriber with the layer's interest in callsites.
pub(super) struct Witness(pub(super) Arc<Shared>);

impl Subscriber for Witness {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        self.0.interest(metadata)
    }

    fn enabled(&self, _: &Metadata<'_>) -> bool {
        false
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

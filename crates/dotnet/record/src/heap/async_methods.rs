//! The async methods of a .NET process that wait, from its heap.

use std::time::Duration;

use runtap_clr::async_chains;
use runtap_model::Message;
use runtap_model::thread_dump::AsyncChains;
use runtap_model::units::{Bytes, Span, Things};
use runtap_os::in_a_thread;
use runtap_target::ResolvedTarget;

use super::session::{DescribedHeap, describe};
use super::{HeapError, HeapRequest, HeapSignal};
use crate::Error;
use crate::stops::Stops;

/// The async methods of a .NET program, and how they were determined.
#[derive(Debug, Clone)]
pub struct AsyncSnapshot {
    /// The methods.
    pub chains: AsyncChains,
    /// The number of objects in the heap.
    pub objects: u32,
    /// The size of the objects in bytes.
    pub heap_bytes: u64,
    /// The time until the runtime had described its heap.
    pub duration: Duration,
}

impl AsyncSnapshot {
    /// Returns the messages about the snapshot, and whether a part of it is missing.
    pub fn messages(&self) -> (Vec<Message>, bool) {
        let mut messages = vec![Message::Note(format!(
            "For the async methods, the runtime collected all garbage and described its heap of {} ({}) in {}; threads were suspended meanwhile.",
            Things(self.objects.into(), "object"),
            Bytes(self.heap_bytes),
            Span(self.duration)
        ))];
        if let Some(reason) = &self.chains.incomplete {
            messages.push(Message::Warning(format!("async methods may be missing: {reason}")));
        }
        (messages, self.chains.incomplete.is_some())
    }
}

/// Returns the async methods of a .NET program that wait. The runtime collects all garbage and describes its heap.
///
/// # Errors
/// Returns an error if the runtime does not describe its heap.
pub async fn take_async_snapshot(
    target: &ResolvedTarget,
    request: HeapRequest,
    stops: &Stops,
    tell: &dyn Fn(HeapSignal),
) -> Result<AsyncSnapshot, HeapError> {
    let DescribedHeap { heap, modules, duration } = describe(target, request, stops, tell).await?;
    // Large heaps take seconds.
    let read = in_a_thread(move || {
        let graph = heap.graph;
        let mut chains = async_chains(&graph, &modules);
        chains.incomplete = graph.incomplete().map(ToString::to_string);
        if heap.lost > 0 && chains.incomplete.is_none() {
            chains.incomplete = Some(format!("the target dropped {}", Things(heap.lost, "event")));
        }
        AsyncSnapshot { chains, objects: graph.object_count(), heap_bytes: graph.total_bytes(), duration }
    });
    tokio::select! {
        biased;
        snapshot = read => Ok(snapshot.map_err(Error::from)?),
        () = stops.stopping() => Err(HeapError::Interrupted),
    }
}

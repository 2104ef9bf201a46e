//! Finds requests that can't be shown below their outer request: they overlap others inside it, or outlive it.

use runtap_nettrace::TraceHeader;

use super::activity::Execution;
use super::collect::{Raw, RawKind};
use super::requests::Requests;
use super::spans::Span;
use crate::profile::since_start;

/// Marks these requests as detached. `raw` must be sorted by time.
pub(super) fn detach(raw: &[Raw], spans: &mut [Span], header: &TraceHeader) {
    let mut requests = Requests::of_view(header.process_id);
    let mut begun = Vec::new();
    for raw in raw {
        let (at, doing) = (since_start(header, raw.timestamp), Execution::Own(raw.thread));
        match raw.kind {
            RawKind::Begins(index) => {
                requests.settle();
                if let Some(span) = spans.get(index) {
                    requests.begin(span, raw.thread, at, doing);
                    begun.push(index);
                }
            }
            RawKind::Stops(index) => {
                requests.settle();
                if let Some(span) = spans.get(index) {
                    requests.end(span, at, doing);
                }
            }
            _ => {}
        }
    }
    requests.settle();
    for request in overlapping(&requests) {
        if let Some(span) = begun.get(request).and_then(|index| spans.get_mut(*index)) {
            span.detached = true;
        }
    }
}

fn overlapping(requests: &Requests) -> Vec<usize> {
    let mut found = Vec::new();
    // For each outer request, the inner one that ends last of those that have begun.
    let mut last: Vec<Option<(u64, usize)>> = vec![None; requests.len()];
    for (request, (outer, is_same, began, ended)) in requests.spans().enumerate() {
        // Two layers that report one request count as one.
        let Some(outer) = outer.filter(|_| !is_same) else { continue };
        let outer_ended = requests.end_of(outer);
        let end = match (ended, outer_ended) {
            (Some(end), _) => end,
            // A request without an end has an unknown duration.
            (None, Some(_)) => continue,
            (None, None) => u64::MAX,
        };
        if outer_ended.is_some_and(|outer| end > outer) {
            found.push(request);
        }
        let Some(last) = last.get_mut(outer) else { continue };
        if let Some((_, other)) = last.filter(|(end, _)| *end > began) {
            found.extend([other, request]);
        }
        if last.is_none_or(|(other, _)| other < end) {
            *last = Some((end, request));
        }
    }
    found
}

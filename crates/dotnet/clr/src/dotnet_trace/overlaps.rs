//! Which requests can't be shown below the one that they lie in: those that overlap others in it, or outlive it.

use runtap_nettrace::TraceHeader;

use super::activity::Doing;
use super::collect::{Raw, What};
use super::requests::Requests;
use super::spans::Span;
use crate::profile::since_start;

/// Marks them. `raw` is in the order of time.
pub(super) fn detach(raw: &[Raw], spans: &mut [Span], header: &TraceHeader) {
    let mut requests = Requests::of_view(header.process_id);
    let mut begun = Vec::new();
    for raw in raw {
        let (at, doing) = (since_start(header, raw.timestamp), Doing::Own(raw.thread));
        match raw.what {
            What::Begins(index) => {
                requests.settle();
                if let Some(span) = spans.get(index) {
                    requests.begin(span, raw.thread, at, doing);
                    begun.push(index);
                }
            }
            What::Stops(index) => {
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
    // Of each request that others lie in, the one of them that ends last of those that have begun.
    let mut last: Vec<Option<(u64, usize)>> = vec![None; requests.len()];
    for (request, (outer, is_same, began, ended)) in requests.spans().enumerate() {
        // Two layers that tell of one request are one.
        let Some(outer) = outer.filter(|_| !is_same) else { continue };
        let outer_ended = requests.end_of(outer);
        let end = match (ended, outer_ended) {
            (Some(end), _) => end,
            // Of one whose end is missing nothing is known.
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

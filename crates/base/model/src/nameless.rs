//! Frames without a name, of which only an address is known. Addresses mean nothing to users or in another process, so
//! tables for users contain one such frame per module.

use crate::builder::TraceBuilder;
use crate::frames::{Frame, FrameHandle};
use crate::samples::ThreadHandle;
use crate::stacks::StackHandle;
use crate::totals::{FrameTotals, StackWeights};
use crate::trace::Trace;
use crate::view::View;

/// The name of the frame that represents all addresses of a module.
const NO_NAME: &str = "?";

impl FrameTotals {
    /// Computes the totals of `view` by name: all addresses of a module are one frame named `?`. Returns them with a
    /// trace without threads that the handles belong to.
    pub fn by_name(trace: &Trace, view: View) -> (Trace, Self) {
        Self::by_name_in(trace, view, None)
    }

    /// Like [`by_name`](Self::by_name), in one thread, or in all threads if `thread` is `None`.
    pub fn by_name_in(trace: &Trace, view: View, thread: Option<ThreadHandle>) -> (Trace, Self) {
        let mut builder = TraceBuilder::new();
        let frames = merge_frames(trace, &mut builder);
        let stacks = merge_stacks(trace, &frames, &mut builder);
        let tables = builder.finish();
        let weights = StackWeights::new(trace, view, thread).moved(&stacks, tables.stacks().len());
        let totals = Self::of(&tables, &weights);
        (tables, totals)
    }
}

/// Adds the frames of a trace to the common table. Returns their handles there.
pub(crate) fn merge_frames(trace: &Trace, builder: &mut TraceBuilder) -> Vec<FrameHandle> {
    let name = |frame: Frame<'_>| if frame.has_name() { frame.name.to_owned() } else { NO_NAME.to_owned() };
    trace.all_frames().map(|(_, frame)| builder.frame(frame.module, &name(frame))).collect()
}

/// Adds the stacks of a trace to the common table. Returns their handles there.
pub(crate) fn merge_stacks(
    trace: &Trace,
    frames: &[FrameHandle],
    builder: &mut TraceBuilder,
) -> Vec<StackHandle> {
    let unnamed: Vec<bool> = trace.all_frames().map(|(_, frame)| !frame.has_name()).collect();
    let mut places: Vec<StackHandle> = Vec::with_capacity(trace.stacks().len());
    for (_, stack) in trace.stacks().iter() {
        let (index, frame) = (stack.frame.index(), frames[stack.frame.index()]);
        // Callers precede their callees.
        let onto = stack.parent.map(|parent| places[parent.index()]);
        // The number of consecutive frames without a name is meaningless.
        places.push(match onto {
            Some(place) if unnamed[index] && builder.callee(place).frame == frame => place,
            onto => builder.stack(onto, frame),
        });
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SampleKind;

    /// `app!Main` calls two addresses that call each other, and one of a library.
    #[test]
    fn totals_by_name_have_one_frame_for_all_addresses_of_a_module() {
        let mut builder = TraceBuilder::new();
        let main = builder.frame(Some("app"), "Main");
        let [one, two, other] = [(None, "0x1"), (None, "0x2"), (Some("lib"), "0x3")]
            .map(|(module, name)| builder.add_frame(&Frame::new(module, name).address()));
        let root = builder.stack(None, main);
        let first = builder.stack(Some(root), one);
        let inner = builder.stack(Some(first), two);
        let library = builder.stack(Some(inner), other);
        let thread = builder.thread(1);
        for (time, stack) in [first, inner, library, root].into_iter().enumerate() {
            builder.add_sample(thread, time as u64 * 10, SampleKind::MANAGED, Some(stack));
        }
        let trace = builder.finish();
        let (tables, totals) = FrameTotals::by_name(&trace, View::Cpu);
        let rows: Vec<_> = tables
            .all_frames()
            .map(|(handle, frame)| {
                (frame.to_string(), totals.self_weight(handle), totals.total_weight(handle))
            })
            .collect();
        let expected = [("app!Main", 10, 40), ("?!?", 20, 30), ("lib!?", 10, 10)];
        assert_eq!(rows, expected.map(|(name, own, total)| (name.to_owned(), own, total)));
    }
}

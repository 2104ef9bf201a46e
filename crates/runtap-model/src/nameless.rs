//! Frames without a name: an address is all that is known of them, which means nothing to people and nothing in another
//! process. Tables that are to be read have one frame for all of them in a module.

use crate::builder::TraceBuilder;
use crate::frames::{Frame, FrameHandle};
use crate::stacks::StackHandle;
use crate::totals::{FrameTotals, StackWeights};
use crate::trace::Trace;
use crate::view::View;

/// The name of all frames without one.
const NO_NAME: &str = "?";

impl Frame<'_> {
    /// Whether more than an address is known.
    pub fn has_name(&self) -> bool {
        let digits = self.name.strip_prefix("0x");
        !digits.is_some_and(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
    }
}

impl FrameTotals {
    /// The totals of `view` by name: what has none is one frame a module, called `?`. With the trace, without threads, that
    /// the handles are of.
    pub fn by_name(trace: &Trace, view: View) -> (Trace, Self) {
        let mut builder = TraceBuilder::new();
        let frames = merge_frames(trace, &mut builder);
        let stacks = merge_stacks(trace, &frames, &mut builder, |_| true);
        let tables = builder.finish();
        let weights = StackWeights::new(trace, view, None).moved(&stacks, tables.stacks().len());
        let totals = Self::of(&tables, &weights);
        (tables, totals)
    }
}

/// Adds the frames of a trace to a common table; where each of them is there.
pub(crate) fn merge_frames(trace: &Trace, builder: &mut TraceBuilder) -> Vec<FrameHandle> {
    let name = |frame: Frame<'_>| if frame.has_name() { frame.name.to_owned() } else { NO_NAME.to_owned() };
    trace.all_frames().map(|(_, frame)| builder.frame(frame.module, &name(frame))).collect()
}

/// Adds the stacks of a trace to the common table; where each of them is there. A stack begins with the first frame that
/// `begins` it, or with its own if none does.
pub(crate) fn merge_stacks(
    trace: &Trace,
    frames: &[FrameHandle],
    builder: &mut TraceBuilder,
    begins: impl Fn(FrameHandle) -> bool,
) -> Vec<StackHandle> {
    let unnamed: Vec<bool> = trace.all_frames().map(|(_, frame)| !frame.has_name()).collect();
    // Where a stack is, its own frame, and whether one that begins it was met.
    let mut places: Vec<(StackHandle, bool)> = Vec::with_capacity(trace.stacks().len());
    for (_, stack) in trace.stacks().iter() {
        let (index, frame) = (stack.frame.index(), frames[stack.frame.index()]);
        // Callers come before their callees.
        let parent = stack.parent.map(|parent| places[parent.index()]);
        let onto = match parent {
            Some((place, true)) => Some(place),
            Some((place, false)) if !begins(frame) => Some(place),
            _ => None,
        };
        // How many frames without a name follow each other is chance.
        let place = match onto {
            Some(place) if unnamed[index] && builder.callee(place).frame == frame => place,
            onto => builder.stack(onto, frame),
        };
        places.push((place, begins(frame) || parent.is_some_and(|(_, begun)| begun)));
    }
    places.into_iter().map(|(place, _)| place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SampleKind;

    #[test]
    fn addresses_are_no_names() {
        let has_name = |name| Frame { module: None, name }.has_name();
        assert_eq!(["0x7f", "0x", "0x7g", "A.B()", ""].map(has_name), [false, false, true, true, true]);
    }

    /// `app!Main` calls two addresses that call each other, and one of a library.
    #[test]
    fn totals_by_name_have_one_frame_for_all_addresses_of_a_module() {
        let mut builder = TraceBuilder::new();
        let [main, one, two, other] =
            [(Some("app"), "Main"), (None, "0x1"), (None, "0x2"), (Some("lib"), "0x3")]
                .map(|(module, name)| builder.frame(module, name));
        let root = builder.stack(None, main);
        let first = builder.stack(Some(root), one);
        let inner = builder.stack(Some(first), two);
        let library = builder.stack(Some(inner), other);
        let thread = builder.thread(1);
        for (time, stack) in [first, inner, library, root].into_iter().enumerate() {
            builder.add_sample(thread, time as u64 * 10, SampleKind::Managed, Some(stack));
        }
        let trace = builder.finish();
        let (tables, totals) = FrameTotals::by_name(&trace, View::Cpu);
        let rows: Vec<_> = tables
            .all_frames()
            .map(|(handle, frame)| (frame.to_string(), totals.self_ns(handle), totals.total_ns(handle)))
            .collect();
        let expected = [("app!Main", 10, 40), ("?!?", 20, 30), ("lib!?", 10, 10)];
        assert_eq!(rows, expected.map(|(name, own, total)| (name.to_owned(), own, total)));
    }
}

//! Aligns the stacks of two traces in one table, so that equal parts match.
//!
//! Runtime versions differ in internal frames, at the start of a thread or between two methods of the program, and
//! every stack above such a frame would differ. So alignment skips frames that only one trace has, before the first
//! frame that both have and between frames that also follow each other in the other trace. At the innermost end of a
//! stack they are kept, because the program really ran there.

use foldhash::fast::RandomState;
use hashbrown::HashSet;

use crate::builder::TraceBuilder;
use crate::frames::FrameHandle;
use crate::stacks::StackHandle;
use crate::trace::Trace;

/// Pairs of frames that both traces have, where the second follows the first if frames of only one trace are skipped.
type Steps = HashSet<(FrameHandle, FrameHandle), RandomState>;

/// Adds the stacks of two traces to the common table. `frames` maps frames of a trace to the table. Returns the handles
/// of the stacks in the table.
pub(crate) fn align(
    sides: [(&Trace, &[FrameHandle]); 2],
    builder: &mut TraceBuilder,
) -> [Vec<StackHandle>; 2] {
    let both = common(sides.map(|(_, frames)| frames));
    let steps = sides.map(|(trace, frames)| steps(trace, frames, &both));
    let [first, second] = sides;
    [place(first, &both, &steps[1], builder), place(second, &both, &steps[0], builder)]
}

/// Returns which frames of the common table both traces have.
fn common([before, after]: [&[FrameHandle]; 2]) -> Vec<bool> {
    let len = before.iter().chain(after).map(|frame| frame.index() + 1).max().unwrap_or(0);
    let has = |frames: &[FrameHandle]| {
        let mut has = vec![false; len];
        for frame in frames {
            has[frame.index()] = true;
        }
        has
    };
    has(before).into_iter().zip(has(after)).map(|(before, after)| before && after).collect()
}

fn steps(trace: &Trace, frames: &[FrameHandle], both: &[bool]) -> Steps {
    let mut steps = Steps::default();
    // The innermost frame of each stack that both traces have. Callers precede their callees.
    let mut last: Vec<Option<FrameHandle>> = Vec::with_capacity(trace.stacks().len());
    for (_, stack) in trace.stacks().iter() {
        let frame = frames[stack.frame.index()];
        let caller = stack.parent.and_then(|parent| last[parent.index()]);
        if both[frame.index()] {
            steps.extend(caller.map(|caller| (caller, frame)));
            last.push(Some(frame));
        } else {
            last.push(caller);
        }
    }
    steps
}

/// The position of a stack in the common table.
#[derive(Clone, Copy)]
struct Placed {
    whole: StackHandle,
    /// The stack up to the innermost frame that both traces have, and that frame.
    common: Option<(StackHandle, FrameHandle)>,
}

fn place(
    (trace, frames): (&Trace, &[FrameHandle]),
    both: &[bool],
    other: &Steps,
    builder: &mut TraceBuilder,
) -> Vec<StackHandle> {
    let unnamed: Vec<bool> = trace.all_frames().map(|(_, frame)| !frame.has_name()).collect();
    let mut places: Vec<Placed> = Vec::with_capacity(trace.stacks().len());
    for (_, stack) in trace.stacks().iter() {
        let (index, frame) = (stack.frame.index(), frames[stack.frame.index()]);
        let parent = stack.parent.map(|parent| places[parent.index()]);
        let is_common = both[frame.index()];
        let onto = match parent {
            Some(Placed { common: None, .. }) if is_common => None,
            Some(Placed { common: Some((place, caller)), .. })
                if is_common && other.contains(&(caller, frame)) =>
            {
                Some(place)
            }
            parent => parent.map(|parent| parent.whole),
        };
        // The number of consecutive frames without a name is meaningless.
        let whole = match onto {
            Some(place) if unnamed[index] && builder.callee(place).frame == frame => place,
            onto => builder.stack(onto, frame),
        };
        let common = if is_common { Some((whole, frame)) } else { parent.and_then(|parent| parent.common) };
        places.push(Placed { whole, common });
    }
    places.into_iter().map(|placed| placed.whole).collect()
}

//! Sums a profile's stacks by one frame of each.

use runtap_model::{FrameHandle, StackHandle, StackWeights, Trace, View, order};

/// A place in the code, and the sum of what happened there.
pub(super) struct PlaceTotals {
    pub(super) name: String,
    pub(super) module: Option<String>,
    pub(super) count: u64,
    pub(super) weight: u64,
    pub(super) label: String,
}

/// Which frame of a stack counts as the place.
#[derive(Debug, Clone, Copy)]
pub(super) enum PlaceFrame {
    Innermost,
    Caller,
    /// The innermost frame that is not the lock's own code.
    Locker,
}

impl PlaceFrame {
    fn of(self, trace: &Trace, handle: StackHandle) -> Option<FrameHandle> {
        let mut frames = trace.stacks().frames(handle);
        match self {
            Self::Innermost => frames.next(),
            Self::Caller => frames.nth(1),
            Self::Locker => {
                let of_lock = |frame: &FrameHandle| {
                    let name = trace.frame(*frame).name;
                    ["System.Threading.Monitor.", "System.Threading.Lock."]
                        .iter()
                        .any(|of| name.starts_with(of))
                };
                frames.find(|frame| !of_lock(frame)).or_else(|| trace.stacks().frames(handle).next())
            }
        }
    }
}

/// Returns the places of a view, heaviest first.
pub(super) fn places(trace: &Trace, view: View, which: PlaceFrame) -> Vec<PlaceTotals> {
    let weights = StackWeights::new(trace, view, None);
    let mut sums: Vec<(u64, u64)> = vec![(0, 0); trace.frames().len()];
    for (handle, _) in trace.stacks().iter() {
        let (count, weight) = (weights.self_ticks(handle), weights.self_weight(handle));
        if count == 0 {
            continue;
        }
        if let Some(sum) = which.of(trace, handle).and_then(|frame| sums.get_mut(frame.index())) {
            *sum = (sum.0 + count, sum.1.saturating_add(weight));
        }
    }
    let mut places: Vec<PlaceTotals> = trace
        .all_frames()
        .zip(sums)
        .filter(|(_, (count, _))| *count > 0)
        .map(|((_, frame), (count, weight))| PlaceTotals {
            name: frame.name.to_owned(),
            module: frame.module.map(str::to_owned).filter(|module| !module.is_empty()),
            count,
            weight,
            label: frame.to_string(),
        })
        .collect();
    order::sort_by_key(&mut places, |place| std::cmp::Reverse((place.weight, place.count)));
    places
}

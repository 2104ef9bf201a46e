//! Samples that are marked as waiting, and may have run.
//!
//! .NET 8 under load, and .NET 9 nearly always, mark running threads as if they were outside of managed code
//! (dotnet/runtime#123996). A method that waits is hardly ever found running: where the same method has a fair part of
//! its samples in managed code, the rest of them is in doubt. A method that computes and takes locks looks the same, so
//! this is good for a word of warning and not for a correction. Of a source that is not the CLR nothing of this is known.

use crate::totals::StackWeights;
use crate::trace::Trace;
use crate::view::View;

/// The part of a method's samples that has to be managed, as one in so many.
const FAIR: u64 = 10;
/// The part of what is shown that may be in doubt without a word, as one in so many.
const MUCH: u64 = 4;

impl Trace {
    /// How many ticks the view `cpu` may lack, if that is much of what it shows: those that end in the very methods that it
    /// shows and are not marked as managed. `None` where the source [makes no such error](crate::TraceBuilder::set_exact_states).
    pub fn doubtful_ticks(&self) -> Option<u64> {
        if self.has_exact_states {
            return None;
        }
        let [cpu, all] = [View::Cpu, View::ThreadTime].map(|view| StackWeights::new(self, view, None));
        let mut frames = vec![(0_u64, 0_u64); self.frames().len()];
        for (handle, stack) in self.stacks().iter() {
            let (managed, both) = &mut frames[stack.frame.index()];
            *managed += cpu.self_ticks(handle);
            *both += all.self_ticks(handle);
        }
        let fair =
            frames.iter().filter(|(managed, both)| *managed > 0 && managed.saturating_mul(FAIR) >= *both);
        let doubtful: u64 = fair.map(|(managed, both)| both - managed).sum();
        (doubtful > 0 && doubtful.saturating_mul(MUCH) >= cpu.ticks()).then_some(doubtful)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SampleKind, TraceBuilder};

    /// So many samples in managed code and outside of it, for each method.
    fn trace(methods: &[(u64, u64)]) -> Trace {
        with(TraceBuilder::new(), methods)
    }

    fn with(mut builder: TraceBuilder, methods: &[(u64, u64)]) -> Trace {
        let thread = builder.thread(1);
        let mut time = 0;
        for (index, (managed, external)) in methods.iter().enumerate() {
            let frame = builder.frame(None, &format!("M{index}"));
            let stack = builder.stack(None, frame);
            for (kind, times) in [(SampleKind::MANAGED, *managed), (SampleKind::EXTERNAL, *external)] {
                for _ in 0..times {
                    time += 1_000_000;
                    builder.add_sample(thread, time, kind, Some(stack));
                }
            }
        }
        builder.finish()
    }

    #[test]
    fn a_method_that_runs_and_is_said_to_wait_is_in_doubt() {
        assert_eq!(trace(&[(35, 65)]).doubtful_ticks(), Some(65));
        assert_eq!(trace(&[(100, 0), (30, 40)]).doubtful_ticks(), Some(40));
    }

    #[test]
    fn a_source_that_knows_better_is_not_doubted() {
        let exact = || {
            let mut builder = TraceBuilder::new();
            builder.set_exact_states();
            with(builder, &[(35, 65)])
        };
        assert_eq!(exact().doubtful_ticks(), None);
        assert_eq!(Trace::merge([exact(), exact()]).doubtful_ticks(), None);
        assert_eq!(Trace::merge([exact(), trace(&[(35, 65)])]).doubtful_ticks(), Some(130));
    }

    #[test]
    fn what_waits_is_not() {
        // Threads of a pool, one of which was caught on its way into the wait.
        assert_eq!(trace(&[(100, 0), (1, 900), (0, 500)]).doubtful_ticks(), None);
        assert_eq!(trace(&[(100, 20)]).doubtful_ticks(), None, "a few are no reason for a word");
        assert_eq!(trace(&[]).doubtful_ticks(), None);
        assert_eq!(trace(&[(0, 10)]).doubtful_ticks(), None);
    }
}

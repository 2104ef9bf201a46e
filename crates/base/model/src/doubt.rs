//! Samples that are marked as waiting although the thread may have been running.
//!
//! .NET 8 under load, and .NET 9 nearly always, mark running threads as outside of managed code
//! (dotnet/runtime#123996). A method that waits is rarely found running, so if a considerable part of a method's
//! samples is in managed code, the others are doubtful. A method that both computes and takes locks looks the same, so
//! this only justifies a warning, not a correction. Sources other than the CLR do not have this problem.

use crate::totals::StackWeights;
use crate::trace::Trace;
use crate::view::View;

/// Samples of a method are doubtful if at least one in this many is in managed code.
const MIN_MANAGED_PART: u64 = 10;
/// Doubtful samples are reported if they are at least one in this many of the shown samples.
const MIN_DOUBTFUL_PART: u64 = 4;

impl Trace {
    /// Returns the number of ticks that the view `cpu` may lack, if they are a considerable part: those in the methods
    /// that it shows that are not marked as managed. `None` otherwise, or if the source [reports exact
    /// states](crate::TraceBuilder::set_exact_states).
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
        let fair = frames
            .iter()
            .filter(|(managed, both)| *managed > 0 && managed.saturating_mul(MIN_MANAGED_PART) >= *both);
        let doubtful: u64 = fair.map(|(managed, both)| both - managed).sum();
        (doubtful > 0 && doubtful.saturating_mul(MIN_DOUBTFUL_PART) >= cpu.ticks()).then_some(doubtful)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SampleKind, TraceBuilder};

    /// A trace with the given numbers of samples in managed code and outside of it for each method.
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
    fn a_running_method_that_is_marked_as_waiting_is_doubtful() {
        assert_eq!(trace(&[(35, 65)]).doubtful_ticks(), Some(65));
        assert_eq!(trace(&[(100, 0), (30, 40)]).doubtful_ticks(), Some(40));
    }

    #[test]
    fn a_source_with_exact_states_is_not_doubted() {
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
    fn a_waiting_method_is_not_doubtful() {
        // Threads of a pool, one of which was sampled just before it waited.
        assert_eq!(trace(&[(100, 0), (1, 900), (0, 500)]).doubtful_ticks(), None);
        assert_eq!(trace(&[(100, 20)]).doubtful_ticks(), None, "a few are no reason for a word");
        assert_eq!(trace(&[]).doubtful_ticks(), None);
        assert_eq!(trace(&[(0, 10)]).doubtful_ticks(), None);
    }
}

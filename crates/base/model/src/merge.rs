//! Merges traces of several processes.
//!
//! The processes were recorded separately, with times relative to the start of each session. In the merged trace, times
//! are relative to the start of the first session. Weights do not change.

use std::sync::Arc;

use crate::builder::TraceBuilder;
use crate::frames::FrameHandle;
use crate::kinds::SampleKind;
use crate::samples::Thread;
use crate::stacks::StackHandle;
use crate::trace::{Process, Trace};

impl Trace {
    /// Merges traces into one that contains all threads, in the order of the traces. Each thread [has its
    /// process](crate::Thread::process). Properties of a single process are those of the first.
    pub fn merge(traces: impl IntoIterator<Item = Self>) -> Self {
        let traces: Vec<Self> = traces.into_iter().collect();
        let start = traces.iter().filter_map(|trace| trace.start_unix_ns).min();
        let Some(first) = traces.first() else { return Self::default() };
        let others = traces.len() - 1;
        let process = Process {
            pid: None,
            name: Some(match others {
                0 => first.process.label(),
                1 => format!("{} and another process", first.process.label()),
                n => format!("{} and {n} other processes", first.process.label()),
            }),
            command_line: first.process.command_line.clone(),
        };
        let period_ns = first.period_ns;
        // Only interns; does not compute weights.
        let mut builder = TraceBuilder::new();
        let mut threads = Vec::new();
        let (mut duration_ns, mut out_of_order, mut left_out) = (0, 0, 0);
        let (mut has_exact_states, mut lacks_resumptions) = (true, false);
        for trace in traces {
            has_exact_states &= trace.has_exact_states;
            lacks_resumptions |= trace.lacks_resumptions;
            let frames: Vec<FrameHandle> =
                trace.all_frames().map(|(_, frame)| builder.add_frame(&frame)).collect();
            // Callers precede their callees.
            let mut stacks: Vec<StackHandle> = Vec::with_capacity(trace.stacks.len());
            for (_, stack) in trace.stacks.iter() {
                let parent = stack.parent.map(|parent| stacks[parent.index()]);
                stacks.push(builder.stack(parent, frames[stack.frame.index()]));
            }
            let later = trace.start_unix_ns.zip(start).map_or(0, |(own, first)| own.saturating_sub(first));
            let later = u64::try_from(later).unwrap_or(0);
            let process = Arc::new(trace.process);
            duration_ns = duration_ns.max(later.saturating_add(trace.duration_ns));
            out_of_order += trace.out_of_order;
            left_out += trace.left_out;
            // If a class has too many kinds, keep the class, which is what views need.
            let kinds: Vec<(SampleKind, SampleKind)> = trace
                .kinds
                .iter()
                .map(|(kind, info)| (kind, builder.kind(info).unwrap_or_else(|| kind.first_of_class())))
                .collect();
            let moved = |thread: Thread| thread.moved(&process, later, &stacks, &kinds);
            threads.extend(trace.threads.into_iter().map(moved));
        }
        Self {
            threads,
            process,
            start_unix_ns: start,
            duration_ns,
            period_ns,
            out_of_order,
            left_out,
            has_exact_states,
            lacks_resumptions,
            ..builder.finish()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SampleKind, View};

    /// A process with one thread that is found in one of `frames` each millisecond.
    fn one(name: &str, start: i64, frames: &[&str]) -> Trace {
        let mut builder = TraceBuilder::new();
        builder.set_process(Process { pid: Some(7), name: Some(name.to_owned()), command_line: None });
        builder.set_start_unix_ns(start);
        let thread = builder.thread(70);
        for (n, name) in (0..).zip(frames) {
            let main = builder.frame(Some("app"), "Main()");
            let leaf = builder.frame(Some("app"), name);
            let stack = builder.stack_of([main, leaf]);
            builder.add_sample(thread, n * 1_000_000, SampleKind::MANAGED, stack);
        }
        builder.finish()
    }

    #[test]
    fn threads_keep_their_stacks_and_have_their_process() {
        let merged =
            Trace::merge([one("a", 5_000, &["A()", "B()"]), one("b", 2_000, &["B()", "C()", "C()"])]);
        let labels: Vec<String> = merged.threads().map(|(_, thread)| thread.label()).collect();
        assert_eq!(labels, ["a (7) Thread (70)", "b (7) Thread (70)"]);
        let own: Vec<String> = merged.threads().map(|(_, thread)| thread.own_label()).collect();
        assert_eq!(own, ["Thread (70)", "Thread (70)"]);
        let processes: Vec<_> =
            merged.threads().filter_map(|(_, thread)| thread.process()?.name.clone()).collect();
        assert_eq!(processes, ["a", "b"]);
        assert_eq!(merged.process().label(), "a (7) and another process");
        let seen: Vec<(u64, u64, String)> = merged
            .threads()
            .flat_map(|(_, thread)| thread.samples(View::Cpu))
            .map(|sample| {
                let frames: Vec<String> = merged
                    .stacks()
                    .frames(sample.stack.unwrap())
                    .map(|f| merged.frame(f).to_string())
                    .collect();
                (sample.time_ns, sample.weight, frames.join(" "))
            })
            .collect();
        let expected = [
            // The first session started 3 µs later.
            (3_000, 1_000_000, "app!A() app!Main()"),
            (1_003_000, 1_000_000, "app!B() app!Main()"),
            (0, 1_000_000, "app!B() app!Main()"),
            (1_000_000, 2_000_000, "app!C() app!Main()"),
        ];
        assert_eq!(seen, expected.map(|(time, weight, frames)| (time, weight, frames.to_owned())));
        // Main, A, B and C, once each.
        assert_eq!((merged.frames().len(), merged.stacks().len()), (4, 4));
        assert_eq!((merged.start_unix_ns(), merged.duration_ns()), (Some(2_000), 3_000_000));
    }

    #[test]
    fn merging_none_or_one() {
        assert_eq!(Trace::merge([]).threads().len(), 0);
        let alone = Trace::merge([one("a", 1, &["A()"])]);
        assert_eq!(alone.process().label(), "a (7)");
        assert_eq!(alone.ticks(View::ThreadTime), 1);
    }
}

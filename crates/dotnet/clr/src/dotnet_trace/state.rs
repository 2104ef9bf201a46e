//! Tracks whether a thread runs or waits, and attributes the time since its last event.

use runtap_model::StackHandle;

use super::requests::Request;

/// The thread at the root of a stack, the stack in the profile, and its purpose.
pub(super) type Rooted = (u64, StackHandle, Purpose);

/// The request for which a stack was executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Purpose {
    pub(super) request: Option<Request>,
    /// Whether the thread waits for a task. What that task does or awaits is more informative.
    pub(super) waits_for_task: bool,
}

/// The state of a thread.
#[derive(Debug, Default)]
pub(super) struct ThreadState {
    now: Now,
    /// The time and stack at which it last ran.
    ran: Option<(u64, Rooted)>,
    /// The time and stack at which it last waited.
    waited: Option<(u64, Rooted)>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq)]
enum Now {
    #[default]
    Unknown,
    Runs,
    Waits,
}

/// Time that was spent on a stack, from `from` until now.
#[derive(Debug, PartialEq)]
pub(super) struct Emit {
    pub(super) from: u64,
    pub(super) stack: Rooted,
    pub(super) on_cpu: bool,
}

impl ThreadState {
    /// Records that the thread is on a stack, running or not. Returns the time since the last call.
    ///
    /// A time of 0 counts as unknown.
    pub(super) fn log(&mut self, at: u64, stack: Rooted, on_cpu: bool) -> Option<Emit> {
        let since = |last: Option<(u64, Rooted)>, on_cpu| {
            last.filter(|(from, _)| *from > 0).map(|(from, stack)| Emit { from, stack, on_cpu })
        };
        let emitted = match (on_cpu, self.now) {
            (true, Now::Unknown | Now::Runs) | (false, Now::Runs) => since(self.ran, true),
            (true, Now::Waits) | (false, Now::Unknown | Now::Waits) => since(self.waited, false),
        };
        if on_cpu {
            self.ran = Some((at, stack));
            self.now = Now::Runs;
        } else {
            self.waited = Some((at, stack));
            self.now = if at > 0 { Now::Waits } else { Now::Unknown };
        }
        emitted
    }
}

#[cfg(test)]
mod tests {
    use runtap_model::TraceBuilder;

    use super::*;

    /// The time between calls: `+` the thread ran, `-` it waited; start, end.
    fn log(calls: &[(u64, bool)]) -> Vec<String> {
        let mut builder = TraceBuilder::new();
        let frame = builder.label("x");
        let stack = (1, builder.stack(None, frame), Purpose::default());
        let mut state = ThreadState::default();
        let emits = calls.iter().filter_map(|(at, on_cpu)| {
            let Emit { from, on_cpu, .. } = state.log(*at, stack, *on_cpu)?;
            Some(format!("{}{from}..{at}", if on_cpu { '+' } else { '-' }))
        });
        emits.collect()
    }

    #[test]
    fn time_counts_for_the_previous_state() {
        assert_eq!(
            log(&[(1, true), (2, true), (3, false), (4, false), (6, true), (7, true)]),
            ["+1..2", "+2..3", "-3..4", "-4..6", "+6..7"]
        );
        assert_eq!(log(&[(1, false), (2, false), (3, true)]), ["-1..2", "-2..3"]);
    }

    #[test]
    fn events_at_time_zero_do_not_count() {
        assert_eq!(log(&[(0, true), (2, true), (3, true)]), ["+2..3"]);
        assert_eq!(log(&[(0, false), (2, false), (3, false)]), ["-2..3"]);
    }
}

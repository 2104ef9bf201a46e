//! Determines on behalf of which code a thread runs.
//!
//! A task, a continuation or a work item of the thread pool remembers the stack of the code that started it. While it runs, that
//! stack replaces the thread's own frames up to the method that runs tasks.

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use super::collect::{Raw, RawKind, Work};
use super::frames::{Framed, Frames, FullStack, StackRange};
use super::part::MethodRole;
use super::paths::Path;
use super::requests::Requests;

/// The maximum length of a chain of tasks that start tasks.
const MAX_CHAIN: u32 = 1000;

/// An index into the list of activities.
type Id = usize;

/// A stack, and the thread on which it starts.
pub(super) type Rooted = (u64, Path);

/// What a thread executes: its own code, or an activity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Execution {
    Own(u64),
    Task(Id),
}

#[derive(Debug)]
struct Activity {
    work: Option<Work>,
    /// The stack of the code that started it. `None` if unknown.
    origin: Option<Rooted>,
    creator: Option<Execution>,
    created: u64,
    /// Whether its thread is blocked until it ends.
    blocks: bool,
    awaits: bool,
    /// What its thread executed before.
    before: Option<Execution>,
    /// Whether the chain of `before` ends in the thread's own code.
    leads_to_own: bool,
    chain: u32,
}

/// The end of an await.
pub(super) struct Awaited {
    pub(super) since: u64,
    pub(super) stack: Rooted,
    /// The await itself.
    pub(super) doing: Execution,
}

#[derive(Debug, Default)]
pub(super) struct Activities {
    list: Vec<Activity>,
    by_work: HashMap<Work, Id, RandomState>,
    /// What each thread executes. Filled in on demand.
    current: HashMap<u64, Execution, RandomState>,
    /// The first awaits of an activity or a thread that have not ended.
    awaits: HashMap<Execution, Vec<Id>, RandomState>,
    /// The activity at which each operation resumes, by the number of the operation: its last await, or its start.
    operations: HashMap<u32, Id, RandomState>,
    /// The activities that each thread has resumed and not yet suspended, most recent last.
    resumed: HashMap<u64, Vec<Option<Id>>, RandomState>,
}

impl Activities {
    /// Returns what a thread executes now: its own code if nothing else is known.
    pub(super) fn doing(&mut self, thread: u64) -> Execution {
        *self.current.entry(thread).or_insert(Execution::Own(thread))
    }

    /// Processes an event of a task. Returns the end of the await that blocked an activity, if the event ends it.
    pub(super) fn take(
        &mut self,
        raw: &Raw,
        now: u64,
        frames: &mut Frames<'_>,
        requests: &mut Requests,
    ) -> Option<Awaited> {
        match raw.kind {
            // A continuation may be scheduled a second time as a task.
            RawKind::Scheduled(work) if self.by_work.contains_key(&work) => {}
            RawKind::Scheduled(work) | RawKind::Continues(work) | RawKind::Queued(work) => {
                self.create(work, raw, now, frames, requests);
            }
            RawKind::OperationBegins(number) if !self.operations.contains_key(&number) => {
                let id = self.create(Work::Operation(number), raw, now, frames, requests);
                self.operations.insert(number, id);
            }
            RawKind::OperationEnds(Work::Continuation(number)) => {
                self.operations.remove(&number);
            }
            RawKind::Resumes(number) => self.resume(number, raw.thread, now, requests),
            RawKind::Suspends => {
                let id = self.resumed.get_mut(&raw.thread).and_then(Vec::pop).flatten();
                if id.is_some_and(|id| self.is_doing(raw.thread, id)) {
                    self.stop(id, raw.thread);
                }
            }
            RawKind::Awaits { task, by, blocks } => {
                let id = self.create(task, raw, now, frames, requests);
                if by != 0 {
                    self.operations.insert(by, id);
                }
                if let Some(new) = self.list.get_mut(id) {
                    (new.awaits, new.blocks) = (true, blocks);
                    if let Some(creator) = new.creator {
                        self.awaits.entry(creator).or_default().push(id);
                    }
                }
            }
            RawKind::Started(work) | RawKind::Dequeued(work) => self.start(work, raw),
            RawKind::AwaitEnds(work) => {
                if let Some(Execution::Task(current)) = self.current.get(&raw.thread).copied()
                    && self.list.get(current).is_some_and(|it| it.awaits)
                {
                    self.stop(Some(current), raw.thread);
                }
                let id = self.by_work.get(&work).copied();
                let awaited = id.and_then(|id| self.unblock(id, frames));
                self.start(work, raw);
                return awaited;
            }
            RawKind::Ended(work) => {
                let id = self.by_work.get(&work).copied();
                self.stop(id, raw.thread);
            }
            RawKind::Parks => {
                self.do_something_unknown(raw.thread, now);
            }
            _ => {}
        }
        None
    }

    fn create(
        &mut self,
        work: Work,
        raw: &Raw,
        now: u64,
        frames: &mut Frames<'_>,
        requests: &mut Requests,
    ) -> Id {
        let creator = self.doing(raw.thread);
        let whole = frames.of_stream(raw.stack, raw.timestamp);
        let chain = match creator {
            Execution::Task(id) => self.list.get(id).map_or(0, |creator| creator.chain),
            Execution::Own(_) => 0,
        };
        let origin = self.rooted(&whole, whole.without_telling(), raw.thread, frames);
        let id = self.list.len();
        self.list.push(Activity {
            work: Some(work),
            origin: (chain < MAX_CHAIN).then_some(origin),
            creator: Some(creator),
            created: now,
            blocks: false,
            awaits: false,
            before: None,
            leads_to_own: false,
            chain: chain + 1,
        });
        self.by_work.insert(work, id);
        requests.inherit(creator, Execution::Task(id));
        id
    }

    /// Starts an unknown activity on a thread.
    fn do_something_unknown(&mut self, thread: u64, now: u64) -> Id {
        let before = self.current.get(&thread).copied();
        let (id, leads_to_own) = (self.list.len(), self.leads_to_own(before));
        self.list.push(Activity {
            work: None,
            origin: None,
            creator: None,
            created: now,
            blocks: false,
            awaits: false,
            before,
            leads_to_own,
            chain: 0,
        });
        self.current.insert(thread, Execution::Task(id));
        id
    }

    /// Resumes an operation or a task on a thread, whatever the thread executed before.
    fn resume(&mut self, number: Option<u32>, thread: u64, now: u64, requests: &mut Requests) {
        let id = number.map(|number| {
            let task = || self.by_work.get(&Work::Task(number)).copied();
            match self.operations.get(&number).copied().or_else(task) {
                Some(id) if self.current.get(&thread) == Some(&Execution::Task(id)) => id,
                Some(id) if self.list.get(id).is_none_or(|activity| activity.before.is_none()) => {
                    self.start_known(id, thread);
                    id
                }
                // The end of the previous resumption is missing, so create a copy of the activity.
                Some(id) => {
                    let new = self.do_something_unknown(thread, now);
                    let origin = self.list.get(id).and_then(|activity| activity.origin);
                    if let Some(activity) = self.list.get_mut(new) {
                        activity.origin = origin;
                    }
                    requests.inherit(Execution::Task(id), Execution::Task(new));
                    self.operations.insert(number, new);
                    new
                }
                None => self.do_something_unknown(thread, now),
            }
        });
        self.resumed.entry(thread).or_default().push(id);
    }

    /// Whether what a thread executes leads back to an activity.
    fn is_doing(&self, thread: u64, id: Id) -> bool {
        let mut at = self.current.get(&thread).copied();
        for _ in 0..MAX_CHAIN {
            match at {
                Some(Execution::Task(task)) if task == id => return true,
                Some(Execution::Task(task)) => at = self.list.get(task).and_then(|activity| activity.before),
                _ => break,
            }
        }
        false
    }

    fn start(&mut self, work: Work, raw: &Raw) {
        if let Some(id) = self.by_work.get(&work).copied() {
            self.start_known(id, raw.thread);
        }
    }

    fn start_known(&mut self, id: Id, thread: u64) {
        let current = self.current.get(&thread).copied();
        let leads_to_own = self.leads_to_own(current);
        let Some(activity) = self.list.get_mut(id) else { return };
        if activity.before.is_some() || current == Some(Execution::Task(id)) {
            return;
        }
        (activity.before, activity.leads_to_own) = (current, leads_to_own);
        let blocks = activity.blocks;
        self.current.insert(thread, Execution::Task(id));
        if blocks {
            self.stop(Some(id), thread);
        }
    }

    /// Whether what a thread executes leads back to the thread's own code.
    fn leads_to_own(&self, doing: Option<Execution>) -> bool {
        match doing {
            Some(Execution::Own(_)) => true,
            Some(Execution::Task(id)) => self.list.get(id).is_some_and(|activity| activity.leads_to_own),
            None => false,
        }
    }

    /// Ends an activity of a thread and everything that it started since. If the activity is unknown, only the thread's chain ends,
    /// unless that leads back to the thread's own code.
    fn stop(&mut self, id: Option<Id>, thread: u64) {
        let mut top = self.current.get(&thread).copied();
        let Some(id) = id else {
            if !self.leads_to_own(top) {
                self.current.remove(&thread);
            }
            return;
        };
        while let Some(Execution::Task(at)) = top {
            top = self.list.get_mut(at).and_then(|activity| activity.before.take());
            self.forget(at);
            if id == at {
                break;
            }
        }
        match top {
            Some(doing) => self.current.insert(thread, doing),
            None => self.current.remove(&thread),
        };
        self.forget(id);
    }

    fn forget(&mut self, id: Id) {
        if let Some(work) = self.list.get(id).and_then(|activity| activity.work) {
            self.by_work.remove(&work);
        }
    }

    /// Of all awaits that an activity started, only the first to end counts; the others overlap it.
    fn unblock(&mut self, id: Id, frames: &mut Frames<'_>) -> Option<Awaited> {
        let activity = self.list.get(id)?;
        let (thread, origin) = activity.origin?;
        let begun = self.awaits.get_mut(&activity.creator?)?;
        if !begun.contains(&id) {
            return None;
        }
        begun.clear();
        let stack = (thread, frames.start_task(origin));
        Some(Awaited { since: activity.created, stack, doing: Execution::Task(id) })
    }

    /// Returns the stack of an event, with the origin of its activity.
    pub(super) fn stack(&mut self, raw: &Raw, frames: &mut Frames<'_>) -> Rooted {
        let whole = frames.of_stream(raw.stack, raw.timestamp);
        self.doing(raw.thread);
        self.rooted(&whole, whole.all(), raw.thread, frames)
    }

    /// Returns the stack of an event without the frames that only write the event.
    pub(super) fn stack_of_await(&mut self, raw: &Raw, frames: &mut Frames<'_>) -> Rooted {
        let whole = frames.of_stream(raw.stack, raw.timestamp);
        self.doing(raw.thread);
        self.rooted(&whole, whole.without_telling(), raw.thread, frames)
    }

    /// Returns the stack of what a thread executes, for an event without a stack.
    pub(super) fn stack_without_event(&mut self, raw: &Raw, frames: &mut Frames<'_>) -> Rooted {
        self.doing(raw.thread);
        let none = FullStack::new(Vec::new(), None);
        self.rooted(&none, none.all(), raw.thread, frames)
    }

    fn rooted(&self, whole: &FullStack, piece: StackRange, thread: u64, frames: &mut Frames<'_>) -> Rooted {
        let origin = match self.current.get(&thread) {
            Some(Execution::Task(id)) => self.list.get(*id).and_then(|activity| activity.origin),
            _ => None,
        };
        if let Some((root, origin)) = origin
            && let Some(own) = whole.own(piece)
        {
            if !piece.is_empty() && frames.ends_in_task(origin, whole, own) {
                return (root, origin);
            }
            let start = frames.start_task(origin);
            return (root, frames.put(start, whole, own));
        }
        (thread, frames.put(Path::default(), whole, piece))
    }
}

/// Returns the frames of a task: those above the method that runs it. `None` if no method on the stack runs tasks.
pub(super) fn own_frames(whole: &[Framed]) -> Option<&[Framed]> {
    if whole.is_empty() {
        return Some(whole);
    }
    let mut end = None;
    for (depth, Framed { part, .. }) in whole.iter().enumerate() {
        match *part {
            Some(MethodRole::RUNS) => return whole.get(..end.unwrap_or(depth)),
            Some(MethodRole::HELPS_TO_RUN) => end = Some(depth),
            Some(_) => {}
            None => end = None,
        }
    }
    None
}

/// Returns a stack without the frames that only write the event.
pub(super) fn without_telling(whole: &[Framed]) -> &[Framed] {
    let mut rest = whole;
    let mut told = false;
    for (depth, Framed { part, .. }) in whole.iter().enumerate() {
        match *part {
            Some(MethodRole::HELPS_TO_TELL) if told => rest = whole.get(depth + 1..).unwrap_or_default(),
            Some(MethodRole::TELLS) if !told => {
                told = true;
                rest = whole.get(depth + 1..).unwrap_or_default();
            }
            Some(_) if told => break,
            _ => {}
        }
    }
    rest
}

#[cfg(test)]
mod tests {
    use runtap_model::TraceBuilder;

    use super::super::paths::PathFrame;
    use super::*;

    /// Frames, leaf first: `r` runs tasks, `h` helps to run, `t` writes the event, `s` helps to write it, `?` is unknown.
    fn frames(text: &str) -> Vec<Framed> {
        let frame = TraceBuilder::new().label("x");
        let part = |c| match c {
            'r' => Some(MethodRole::RUNS),
            'h' => Some(MethodRole::HELPS_TO_RUN),
            't' => Some(MethodRole::TELLS),
            's' => Some(MethodRole::HELPS_TO_TELL),
            '?' => None,
            _ => Some(MethodRole::default()),
        };
        text.chars().map(|c| Framed { place: PathFrame { ip: None, frame }, part: part(c) }).collect()
    }

    #[test]
    fn a_task_ends_where_it_is_run() {
        for (stack, own) in [
            ("aabrcc", Some(3)),
            ("aahhrcr", Some(3)),
            ("ah?rc", Some(3)),
            ("aa", None),
            ("aah", None),
            ("", Some(0)),
            ("rc", Some(0)),
        ] {
            assert_eq!(own_frames(&frames(stack)).map(<[_]>::len), own, "{stack}");
        }
    }

    #[test]
    fn frames_that_write_the_event_are_not_part_of_its_origin() {
        for (stack, rest) in
            [("tssab", 2), ("atsb", 1), ("sab", 3), ("ab", 2), ("t?sb", 1), ("tasb", 3), ("", 0)]
        {
            assert_eq!(without_telling(&frames(stack)).len(), rest, "{stack}");
        }
    }
}

//! What a thread does on behalf of which other code.
//!
//! A task, a continuation or an item of the thread pool remembers the stack of the code that started it. While it runs,
//! that stack takes the place of the thread's own beginning, up to the method that runs tasks.

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use super::collect::{Raw, What, Work};
use super::frames::{Framed, Frames, Piece, Whole};
use super::part::Part;
use super::paths::Path;
use super::requests::Requests;

/// Longest chain of tasks that start tasks.
const MAX_CHAIN: u32 = 1000;

/// An index into the list of activities.
type Id = usize;

/// A stack, and the thread that it begins on.
pub(super) type Rooted = (u64, Path);

/// What a thread does: what it was started for, or a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Doing {
    Own(u64),
    Task(Id),
}

#[derive(Debug)]
struct Activity {
    work: Option<Work>,
    /// The stack of the code that started it; none for one that nobody did.
    origin: Option<Rooted>,
    creator: Option<Doing>,
    created: u64,
    /// Its thread does nothing else until it ends.
    blocks: bool,
    awaits: bool,
    /// What its thread did before.
    before: Option<Doing>,
    /// Whether that leads to what the thread was started for.
    leads_to_own: bool,
    chain: u32,
}

/// The end of an await: where and since when it lasted.
pub(super) struct Awaited {
    pub(super) since: u64,
    pub(super) stack: Rooted,
    /// The await itself.
    pub(super) doing: Doing,
}

#[derive(Debug, Default)]
pub(super) struct Activities {
    list: Vec<Activity>,
    by_work: HashMap<Work, Id, RandomState>,
    /// What each thread does; nothing is known of a thread that nobody asked for.
    current: HashMap<u64, Doing, RandomState>,
    /// The first awaits of an activity that have not ended, or of a thread.
    awaits: HashMap<Doing, Vec<Id>, RandomState>,
    /// The activity at which each operation resumes, by the operation's number: its last await, or its start.
    operations: HashMap<u32, Id, RandomState>,
    /// The activities that each thread has resumed and not yet suspended, the latest last.
    resumed: HashMap<u64, Vec<Option<Id>>, RandomState>,
}

impl Activities {
    /// What a thread does now: what it was started for, if nothing else is known.
    pub(super) fn doing(&mut self, thread: u64) -> Doing {
        *self.current.entry(thread).or_insert(Doing::Own(thread))
    }

    /// Takes an event of a task. The end of the await that kept an activity from going on is returned.
    pub(super) fn take(
        &mut self,
        raw: &Raw,
        now: u64,
        frames: &mut Frames<'_>,
        requests: &mut Requests,
    ) -> Option<Awaited> {
        match raw.what {
            // A continuation may be scheduled once more as a task.
            What::Scheduled(work) if self.by_work.contains_key(&work) => {}
            What::Scheduled(work) | What::Continues(work) | What::Queued(work) => {
                self.create(work, raw, now, frames, requests);
            }
            What::OperationBegins(number) if !self.operations.contains_key(&number) => {
                let id = self.create(Work::Operation(number), raw, now, frames, requests);
                self.operations.insert(number, id);
            }
            What::OperationEnds(Work::Continuation(number)) => {
                self.operations.remove(&number);
            }
            What::Resumes(number) => self.resume(number, raw.thread, now, requests),
            What::Suspends => {
                let id = self.resumed.get_mut(&raw.thread).and_then(Vec::pop).flatten();
                if id.is_some_and(|id| self.is_doing(raw.thread, id)) {
                    self.stop(id, raw.thread);
                }
            }
            What::Awaits { task, by, blocks } => {
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
            What::Started(work) | What::Dequeued(work) => self.start(work, raw),
            What::AwaitEnds(work) => {
                if let Some(Doing::Task(current)) = self.current.get(&raw.thread).copied()
                    && self.list.get(current).is_some_and(|it| it.awaits)
                {
                    self.stop(Some(current), raw.thread);
                }
                let id = self.by_work.get(&work).copied();
                let awaited = id.and_then(|id| self.unblock(id, frames));
                self.start(work, raw);
                return awaited;
            }
            What::Ended(work) => {
                let id = self.by_work.get(&work).copied();
                self.stop(id, raw.thread);
            }
            What::Parks => {
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
            Doing::Task(id) => self.list.get(id).map_or(0, |creator| creator.chain),
            Doing::Own(_) => 0,
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
        requests.inherit(creator, Doing::Task(id));
        id
    }

    /// Starts an activity of which nothing is known on a thread.
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
        self.current.insert(thread, Doing::Task(id));
        id
    }

    /// Resumes an operation or a task on a thread, whatever the thread did before.
    fn resume(&mut self, number: Option<u32>, thread: u64, now: u64, requests: &mut Requests) {
        let id = number.map(|number| {
            let task = || self.by_work.get(&Work::Task(number)).copied();
            match self.operations.get(&number).copied().or_else(task) {
                Some(id) if self.current.get(&thread) == Some(&Doing::Task(id)) => id,
                Some(id) if self.list.get(id).is_none_or(|activity| activity.before.is_none()) => {
                    self.start_known(id, thread);
                    id
                }
                // The end of what was resumed before is missing: this is the same anew.
                Some(id) => {
                    let new = self.do_something_unknown(thread, now);
                    let origin = self.list.get(id).and_then(|activity| activity.origin);
                    if let Some(activity) = self.list.get_mut(new) {
                        activity.origin = origin;
                    }
                    requests.inherit(Doing::Task(id), Doing::Task(new));
                    self.operations.insert(number, new);
                    new
                }
                None => self.do_something_unknown(thread, now),
            }
        });
        self.resumed.entry(thread).or_default().push(id);
    }

    /// Whether what a thread does leads to an activity.
    fn is_doing(&self, thread: u64, id: Id) -> bool {
        let mut at = self.current.get(&thread).copied();
        for _ in 0..MAX_CHAIN {
            match at {
                Some(Doing::Task(task)) if task == id => return true,
                Some(Doing::Task(task)) => at = self.list.get(task).and_then(|activity| activity.before),
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
        if activity.before.is_some() || current == Some(Doing::Task(id)) {
            return;
        }
        (activity.before, activity.leads_to_own) = (current, leads_to_own);
        let blocks = activity.blocks;
        self.current.insert(thread, Doing::Task(id));
        if blocks {
            self.stop(Some(id), thread);
        }
    }

    /// Whether what a thread does leads to what it was started for.
    fn leads_to_own(&self, doing: Option<Doing>) -> bool {
        match doing {
            Some(Doing::Own(_)) => true,
            Some(Doing::Task(id)) => self.list.get(id).is_some_and(|activity| activity.leads_to_own),
            None => false,
        }
    }

    /// Ends an activity of a thread and all that it began since. Of one that is not known nothing ends but the thread's
    /// chain, unless that leads to what the thread was started for.
    fn stop(&mut self, id: Option<Id>, thread: u64) {
        let mut top = self.current.get(&thread).copied();
        let Some(id) = id else {
            if !self.leads_to_own(top) {
                self.current.remove(&thread);
            }
            return;
        };
        while let Some(Doing::Task(at)) = top {
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

    /// Of all awaits that an activity began only the first to end counts; the others lie within it.
    fn unblock(&mut self, id: Id, frames: &mut Frames<'_>) -> Option<Awaited> {
        let activity = self.list.get(id)?;
        let (thread, origin) = activity.origin?;
        let begun = self.awaits.get_mut(&activity.creator?)?;
        if !begun.contains(&id) {
            return None;
        }
        begun.clear();
        let stack = (thread, frames.start_task(origin));
        Some(Awaited { since: activity.created, stack, doing: Doing::Task(id) })
    }

    /// The stack of an event, with its activity's origin.
    pub(super) fn stack(&mut self, raw: &Raw, frames: &mut Frames<'_>) -> Rooted {
        let whole = frames.of_stream(raw.stack, raw.timestamp);
        self.doing(raw.thread);
        self.rooted(&whole, whole.all(), raw.thread, frames)
    }

    /// The stack of an event without the frames that only tell it.
    pub(super) fn stack_of_await(&mut self, raw: &Raw, frames: &mut Frames<'_>) -> Rooted {
        let whole = frames.of_stream(raw.stack, raw.timestamp);
        self.doing(raw.thread);
        self.rooted(&whole, whole.without_telling(), raw.thread, frames)
    }

    /// The stack of what a thread does, for an event that has none.
    pub(super) fn stack_without_event(&mut self, raw: &Raw, frames: &mut Frames<'_>) -> Rooted {
        self.doing(raw.thread);
        let none = Whole::new(Vec::new(), None);
        self.rooted(&none, none.all(), raw.thread, frames)
    }

    fn rooted(&self, whole: &Whole, piece: Piece, thread: u64, frames: &mut Frames<'_>) -> Rooted {
        let origin = match self.current.get(&thread) {
            Some(Doing::Task(id)) => self.list.get(*id).and_then(|activity| activity.origin),
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

/// The frames of a task: those above the method that runs it. `None` if no method on the stack runs tasks.
pub(super) fn own_frames(whole: &[Framed]) -> Option<&[Framed]> {
    if whole.is_empty() {
        return Some(whole);
    }
    let mut end = None;
    for (depth, Framed { part, .. }) in whole.iter().enumerate() {
        match *part {
            Some(Part::RUNS) => return whole.get(..end.unwrap_or(depth)),
            Some(Part::HELPS_TO_RUN) => end = Some(depth),
            Some(_) => {}
            None => end = None,
        }
    }
    None
}

/// A stack without the frames that only tell the event.
pub(super) fn without_telling(whole: &[Framed]) -> &[Framed] {
    let mut rest = whole;
    let mut told = false;
    for (depth, Framed { part, .. }) in whole.iter().enumerate() {
        match *part {
            Some(Part::HELPS_TO_TELL) if told => rest = whole.get(depth + 1..).unwrap_or_default(),
            Some(Part::TELLS) if !told => {
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

    use super::super::paths::Place;
    use super::*;

    /// Frames, leaf first: `r` runs tasks, `h` helps to, `t` tells, `s` helps to tell, `?` is not known.
    fn frames(text: &str) -> Vec<Framed> {
        let frame = TraceBuilder::new().label("x");
        let part = |c| match c {
            'r' => Some(Part::RUNS),
            'h' => Some(Part::HELPS_TO_RUN),
            't' => Some(Part::TELLS),
            's' => Some(Part::HELPS_TO_TELL),
            '?' => None,
            _ => Some(Part::default()),
        };
        text.chars().map(|c| Framed { place: Place { ip: None, frame }, part: part(c) }).collect()
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
    fn what_tells_the_event_is_no_part_of_its_origin() {
        for (stack, rest) in
            [("tssab", 2), ("atsb", 1), ("sab", 3), ("ab", 2), ("t?sb", 1), ("tasb", 3), ("", 0)]
        {
            assert_eq!(without_telling(&frames(stack)).len(), rest, "{stack}");
        }
    }
}

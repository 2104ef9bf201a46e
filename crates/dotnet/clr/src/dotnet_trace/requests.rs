//! Tracks for which activities a thread works, by their start and end events.
//!
//! An activity is a mark on what a thread executes ([`Execution`]), which tasks that are started there inherit. An end takes effect with
//! the next event; until then the thread still works for the activity.

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use super::activity::Execution;
use super::ids;
use super::spans::Span;

/// The number of nested activities that are followed.
const MAX_DEPTH: usize = 1000;

/// An index into the list of activities.
pub(super) type Request = usize;

#[derive(Debug)]
struct Activity {
    creator: Option<Request>,
    /// The outermost of its creators, or itself.
    outermost: Request,
    id: [u8; 16],
    /// The label of its frame, and of the group in front of it.
    label: String,
    group: Option<String>,
    thread: u64,
    began: u64,
    /// The duration, once its end event was seen. An activity of duration 0 never counts as ended.
    took: u64,
    ended: bool,
    /// Whether the id is a path.
    is_path: bool,
    detached: bool,
}

#[derive(Debug, Default)]
pub(super) struct Requests {
    list: Vec<Activity>,
    open: HashMap<[u8; 16], Request, RandomState>,
    marks: HashMap<Execution, Request, RandomState>,
    /// An end that has not taken effect: the activity, and what its thread executed.
    pending: Option<(Request, Execution)>,
    /// Whether labels are those of the view `request`.
    pub(super) plain: bool,
    /// The process id in activity ids, and the open activities by the texts of their paths.
    process: u32,
    paths: HashMap<String, Request, RandomState>,
}

impl Requests {
    /// Creates a tracker for the view `request`.
    pub(super) fn of_view(process: u32) -> Self {
        Self { plain: true, process, ..Self::default() }
    }

    /// Returns the activity with this id, or the innermost open one around it.
    fn at_path(&self, id: &[u8; 16]) -> Option<Request> {
        if let Some(known) = self.open.get(id) {
            return Some(*known);
        }
        let text = ids::text(id, self.process);
        let mut path = text.as_str();
        while let Some((outer, _)) = path.trim_end_matches('/').rsplit_once(['/', '$']) {
            path = outer;
            if let Some(known) = self.paths.get(path) {
                return Some(*known);
            }
        }
        None
    }

    /// Records the activity id of an event, which is more reliable than the activity that started the code.
    pub(super) fn seen(&mut self, id: Option<[u8; 16]>, doing: Execution) {
        let mark = self.live(self.marks.get(&doing).copied());
        // An activity whose id is not a path is inside one whose id is.
        if mark.and_then(|mark| self.list.get(mark)).is_some_and(|activity| !activity.is_path) {
            return;
        }
        match id.and_then(|id| self.at_path(&id)) {
            Some(request) => self.marks.insert(doing, request),
            None => self.marks.remove(&doing),
        };
    }

    pub(super) fn begin(&mut self, span: &Span, thread: u64, at: u64, doing: Execution) {
        let open = |id: Option<[u8; 16]>| self.open.get(&id?).copied();
        let mark = self.marks.get(&doing).copied();
        let inside = match mark {
            Some(_) => span.inside.and_then(|_| self.live(mark)),
            None => open(span.inside),
        };
        let creator = if self.plain && span.is_path {
            open(span.related).or_else(|| self.at_path(&span.id))
        } else {
            inside.or_else(|| open(span.related)).or_else(|| self.live(mark))
        };
        let new = self.list.len();
        if self.plain && span.is_path {
            let path = ids::text(&span.id, self.process);
            self.paths.insert(path.trim_end_matches('/').to_owned(), new);
        }
        self.list.push(Activity {
            creator,
            outermost: creator.filter(|_| !span.detached).map_or(new, |creator| self.outermost(creator)),
            id: span.id,
            label: span.label.clone(),
            group: creator.and_then(|_| group(&span.task, &span.label)),
            thread,
            began: at,
            took: 0,
            ended: false,
            is_path: span.is_path,
            detached: span.detached,
        });
        self.open.insert(span.id, new);
        self.marks.insert(doing, new);
    }

    pub(super) fn end(&mut self, span: &Span, at: u64, doing: Execution) {
        let Some(ended) = self.open.get(&span.id).copied() else { return };
        if let Some(activity) = self.list.get_mut(ended) {
            activity.took = at.saturating_sub(activity.began);
            self.pending = Some((ended, doing));
        }
    }

    /// Applies the pending end.
    pub(super) fn settle(&mut self) {
        let Some((ended, doing)) = self.pending.take() else { return };
        let Some(activity) = self.list.get_mut(ended) else { return };
        activity.ended = true;
        let (id, creator) = (activity.id, activity.creator);
        if self.plain && activity.is_path {
            self.paths.remove(ids::text(&id, self.process).trim_end_matches('/'));
        }
        let outer = self.live(creator);
        match outer {
            Some(outer) => self.marks.insert(doing, outer),
            None => self.marks.remove(&doing),
        };
        // Exceptions have the id of the activity in which they occur.
        match outer.filter(|outer| self.list.get(*outer).is_some_and(|outer| outer.id == id)) {
            Some(outer) => self.open.insert(id, outer),
            None => self.open.remove(&id),
        };
    }

    /// Marks a new task with the activity of its creator.
    pub(super) fn inherit(&mut self, creator: Execution, new: Execution) {
        if let Some(mark) = self.marks.get(&creator).copied() {
            self.marks.insert(new, mark);
        }
    }

    /// Removes the mark of a thread that is idle. Its tasks continue elsewhere.
    pub(super) fn leave(&mut self, doing: Execution) {
        if matches!(doing, Execution::Own(_)) {
            self.marks.remove(&doing);
        }
    }

    /// Returns the activity for which this is executed.
    pub(super) fn of(&self, doing: Execution) -> Option<Request> {
        self.live(self.marks.get(&doing).copied())
    }

    /// Returns the activity of an await that began at `since`. It may have ended, but not before that.
    pub(super) fn of_await(&self, doing: Execution, since: u64) -> Option<Request> {
        let mark = self.marks.get(&doing).copied()?;
        let activity = self.list.get(mark)?;
        let over =
            activity.took != 0 && activity.ended && activity.began.saturating_add(activity.took) < since;
        if over { self.live(Some(mark)) } else { Some(mark) }
    }

    /// Returns the innermost activity, from this one outwards, that has not ended.
    fn live(&self, mut request: Option<Request>) -> Option<Request> {
        for _ in 0..MAX_DEPTH {
            let activity = self.list.get(request?)?;
            if !(activity.ended && activity.took != 0) {
                return request;
            }
            request = activity.creator;
        }
        None
    }

    /// Returns the number of activities.
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns the outermost activity around this one.
    pub(super) fn outermost(&self, request: Request) -> Request {
        self.list.get(request).map_or(request, |activity| activity.outermost)
    }

    /// Returns the thread on which an activity began, its start and its end. If it did not end, `end` is used.
    pub(super) fn span(&self, request: Request, end: u64) -> Option<(u64, u64, u64)> {
        let activity = self.list.get(request)?;
        let to = self.end_of(request).unwrap_or(end);
        (to > activity.began).then_some((activity.thread, activity.began, to))
    }

    /// Returns the end of an activity. `None` if it did not end.
    pub(super) fn end_of(&self, request: Request) -> Option<u64> {
        let activity = self.list.get(request).filter(|activity| activity.ended)?;
        Some(activity.began.saturating_add(activity.took))
    }

    /// Returns for each activity the outer one, whether both have equal labels, its start and its end.
    pub(super) fn spans(&self) -> impl Iterator<Item = (Option<Request>, bool, u64, Option<u64>)> {
        self.list.iter().enumerate().map(|(request, activity)| {
            let outer = activity.creator.and_then(|creator| self.list.get(creator));
            let is_same = outer.is_some_and(|outer| outer.label == activity.label);
            (activity.creator, is_same, activity.began, self.end_of(request))
        })
    }

    /// Returns the labels of an activity and all around it, outermost first.
    pub(super) fn labels(&self, request: Request) -> Vec<&str> {
        let mut labels = Vec::new();
        let mut next = Some(request);
        for _ in 0..MAX_DEPTH {
            let Some(activity) = next.and_then(|it| self.list.get(it)) else { break };
            labels.push(activity.label.as_str());
            labels.extend(activity.group.as_deref());
            next = activity.creator.filter(|_| !activity.detached);
        }
        labels.reverse();
        // A request that two layers report counts once.
        if self.plain {
            labels.dedup();
        }
        labels
    }
}

/// Returns the label of the group above activities of some kinds.
fn group(task: &str, label: &str) -> Option<String> {
    let kind = match task {
        "HttpGetResponse" | "HttpGetRequestStream" => "HTTP",
        "SQLCommand" => "SQL",
        "OperationDispatch" | "DispatchMessage" | "WebHostRequest" | "ClientOperation" => "WCF",
        "ActorMethod" | "ActorSaveState" => "Service Fabric Reliable Actor",
        _ => return None,
    };
    let azure = if label.contains(".core.windows.net") {
        [
            (".blob.", "Azure Blob"),
            (".table.", "Azure Table"),
            (".queue.", "Azure Queue"),
            (".file.", "Azure File"),
        ]
        .into_iter()
        .find(|(part, _)| label.contains(part))
        .map(|(_, name)| name)
    } else {
        (kind == "SQL" && label.contains(".database.windows.net")).then_some("Azure Database")
    };
    Some(match azure {
        Some(azure) => format!("{kind} ({azure}) Activities"),
        None => format!("{kind} Activities"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(id: u8, related: Option<u8>, label: &str) -> Span {
        let of = |id| [id; 16];
        Span {
            id: of(id),
            related: related.map(of),
            inside: None,
            task: label.to_owned(),
            label: label.to_owned(),
            is_path: false,
            detached: false,
        }
    }

    fn labels(requests: &Requests, thread: u64) -> String {
        requests.of(Execution::Own(thread)).map(|it| requests.labels(it).join(" ")).unwrap_or_default()
    }

    /// One thread of a program with nested pairs of events, and with exceptions, which have the id of the pair in which they occur.
    /// An exception whose handler throws has no end event.
    #[test]
    fn an_exception_consumes_the_end_of_its_outer_activity() {
        let (mut requests, mut at) = (Requests::default(), 0);
        let mut after = |begins: bool, span: Span| {
            at += 1;
            requests.settle();
            if begins {
                requests.begin(&span, 7, at, Execution::Own(7));
            } else {
                requests.end(&span, at, Execution::Own(7));
            }
            requests.settle();
            labels(&requests, 7)
        };
        assert_eq!(after(true, span(27, None, "Outer")), "Outer");
        assert_eq!(after(true, span(28, Some(27), "Inner")), "Outer Inner");
        assert_eq!(after(false, span(28, None, "")), "Outer");
        assert_eq!(after(true, span(27, None, "Exception")), "Outer Exception");
        assert_eq!(after(true, span(27, None, "Exception")), "Outer Exception Exception");
        assert_eq!(after(false, span(27, None, "")), "Outer Exception");
        assert_eq!(after(false, span(27, None, "")), "Outer");
        assert_eq!(after(true, span(30, None, "Next")), "Outer Next");
        assert_eq!(after(false, span(30, None, "")), "Outer");
    }

    #[test]
    fn a_command_is_inside_the_activity_of_its_thread_or_event() {
        let command =
            |id, inside: u8, related| Span { inside: Some([inside; 16]), ..span(id, related, "SQL") };
        let mut requests = Requests::default();
        requests.begin(&span(1, None, "A"), 7, 10, Execution::Own(7));
        requests.begin(&span(2, None, "B"), 8, 11, Execution::Own(8));
        requests.begin(&command(3, 1, Some(1)), 8, 12, Execution::Own(8));
        assert_eq!(labels(&requests, 8), "B SQL", "what the thread does counts before all ids");
        requests.begin(&command(4, 2, Some(1)), 9, 13, Execution::Own(9));
        assert_eq!(labels(&requests, 9), "B SQL", "its own id before the related one");
        requests.begin(&command(5, 99, Some(1)), 10, 14, Execution::Own(10));
        assert_eq!(labels(&requests, 10), "A SQL");
    }

    #[test]
    fn an_end_takes_effect_with_the_next_event_and_tasks_inherit() {
        let mut requests = Requests::default();
        requests.begin(&span(1, None, "A"), 7, 10, Execution::Own(7));
        requests.inherit(Execution::Own(7), Execution::Task(3));
        requests.end(&span(1, None, ""), 20, Execution::Own(7));
        assert_eq!(labels(&requests, 7), "A");
        requests.settle();
        assert_eq!(labels(&requests, 7), "");
        assert_eq!(requests.of(Execution::Task(3)), None, "it has ended for all");
        // Its awaits are below it, unless they began later.
        assert_eq!(requests.of_await(Execution::Task(3), 15), Some(0));
        assert_eq!(requests.of_await(Execution::Task(3), 25), None);
        assert_eq!(requests.span(0, 99), Some((7, 10, 20)));
    }
}

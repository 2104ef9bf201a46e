//! Extracts from events what the profile needs. Fields are read by position, because these payloads never change.

use runtap_nettrace::{Event, IdTable};

use super::spans::{Pairs, Span};
use crate::clr;
use crate::payload::{Payload, Schema};

/// The name of a thread's role.
pub(super) type ThreadRole = &'static str;

/// Collects events, and caches the kind of each metadata id.
#[derive(Debug, Clone, Default)]
pub(super) struct Collector {
    pub(super) raw: Vec<Raw>,
    /// The spans of [`RawKind::Begins`] and [`RawKind::Stops`].
    pub(super) spans: Vec<Span>,
    /// Whether it collects for the view `request`.
    pub(super) requests: bool,
    /// The distinct activity ids of events.
    ids: Vec<[u8; 16]>,
    by_id: hashbrown::HashMap<[u8; 16], u32, foldhash::fast::RandomState>,
    kinds: IdTable<EventKind>,
    /// The schemas of kinds that begin or end activities.
    schemas: IdTable<Box<Schema>>,
}

/// A collected event.
#[derive(Debug, Clone, Copy)]
pub(super) struct Raw {
    pub(super) timestamp: u64,
    pub(super) thread: u64,
    /// The index of its stack in the stream's stacks.
    pub(super) stack: u32,
    /// The activity of its thread, for the view `request`: one more than an index into `ids`, or 0.
    pub(super) activity: u32,
    pub(super) kind: RawKind,
}

/// What a collected event reports.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum RawKind {
    /// A sample of a thread in managed code.
    Managed,
    /// A sample of a thread in unmanaged code.
    Unmanaged,
    Allocated,
    /// A task is ready to run.
    Scheduled(Work),
    Started(Work),
    Ended(Work),
    /// A task awaits another one, or its thread blocks until that ends.
    Awaits {
        task: Work,
        /// The number of the operation that resumes after the await. 0 if unknown.
        by: u32,
        blocks: bool,
    },
    AwaitEnds(Work),
    /// An operation that may be awaited has ended. For the view `request`.
    OperationEnds(Work),
    /// An operation yields its thread for the first time. For the view `request`, like the next two.
    OperationBegins(u32),
    /// A thread resumes an operation or a task. `None` if it notifies awaiters that an operation ended.
    Resumes(Option<u32>),
    /// The operation that the thread resumed last is suspended.
    Suspends,
    /// A continuation is ready to run.
    Continues(Work),
    /// Work was queued to the thread pool.
    Queued(Work),
    Dequeued(Work),
    /// A thread of the pool becomes idle.
    Parks,
    /// The thread belongs to the runtime.
    Is(ThreadRole),
    /// An activity begins or ends. The index of the span.
    Begins(usize),
    Stops(usize),
}

/// Work that is run later, by the kind of its number and the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Work {
    Task(u32),
    Continuation(u32),
    Pool(u64),
    Io(u64),
    Operation(u32),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum EventKind {
    Nothing,
    Sample,
    Tpl(u32),
    Runtime(u32),
    Is(ThreadRole),
    Pair(Pairs),
}

const POOL: ThreadRole = ".NET ThreadPool";
const FINALIZER: ThreadRole = ".NET Finalizer Thread";
pub(super) const IO_POOL: ThreadRole = ".NET IO ThreadPool Worker";
const BACKGROUND_GC: ThreadRole = ".NET Background GC Thread";

impl EventKind {
    fn of(provider: &str, id: u32) -> Self {
        match (provider, id) {
            (clr::SAMPLE_PROFILER, 0) => Self::Sample,
            (clr::TPL, 7..=12) => Self::Tpl(id),
            (clr::RUNTIME, 10 | 20 | 32 | 57 | 61..=65) => Self::Runtime(id),
            (clr::RUNTIME, 13 | 14) => Self::Is(FINALIZER),
            (clr::RUNTIME, 54) => Self::Is(POOL),
            ("Microsoft-Windows-DotNETRuntimePrivate", 11 | 13 | 20 | 21) => Self::Is(BACKGROUND_GC),
            _ => Self::Nothing,
        }
    }
}

impl Collector {
    /// Returns what an event reports, if the profile needs it.
    #[inline]
    pub(super) fn kind_of(&mut self, event: &Event<'_>, process: u32, pointer_size: u32) -> Option<RawKind> {
        let kind = match self.kinds.get(event.metadata_id) {
            Some(kind) => *kind,
            None => self.define(event, pointer_size),
        };
        match kind {
            EventKind::Nothing => None,
            EventKind::Sample => Some(match event.payload.first_chunk::<4>() {
                Some([2, 0, 0, 0]) => RawKind::Managed,
                _ => RawKind::Unmanaged,
            }),
            EventKind::Is(role) => Some(RawKind::Is(role)),
            EventKind::Tpl(id) => tpl(id, event.payload),
            EventKind::Runtime(id) => runtime(id, event.payload),
            EventKind::Pair(pair) => {
                let index = self.spans.len();
                let span = if self.requests { Pairs::span_of_kind } else { Pairs::span };
                let payload = Payload::new(self.schemas.get(event.metadata_id)?, event.payload);
                self.spans.push(span(pair, event, payload, process)?);
                Some(if matches!(pair, Pairs::Start(_)) {
                    RawKind::Begins(index)
                } else {
                    RawKind::Stops(index)
                })
            }
        }
    }

    /// Returns the index of an event's activity. 0 if it has none.
    pub(super) fn activity(&mut self, event: &Event<'_>) -> u32 {
        let Some(id) = event.activity_id.filter(|id| self.requests && !id.is_nil()) else { return 0 };
        *self.by_id.entry(id.to_bytes_le()).or_insert_with_key(|id| {
            self.ids.push(*id);
            u32::try_from(self.ids.len()).unwrap_or(u32::MAX)
        })
    }

    /// Returns the activity id of an index.
    pub(super) fn id(&self, activity: u32) -> Option<[u8; 16]> {
        self.ids.get(usize::try_from(activity).ok()?.checked_sub(1)?).copied()
    }

    /// Forgets a metadata id that is redefined.
    pub(super) fn redefined(&mut self, metadata_id: u32) {
        self.kinds.remove(metadata_id);
        self.schemas.remove(metadata_id);
    }

    /// Forgets all metadata ids.
    pub(super) fn forget_kinds(&mut self) {
        self.kinds.clear();
        self.schemas.clear();
    }

    #[cold]
    fn define(&mut self, event: &Event<'_>, pointer_size: u32) -> EventKind {
        let Some(metadata) = event.metadata else { return EventKind::Nothing };
        let mut kind = EventKind::of(&metadata.provider, metadata.event_id);
        if self.requests && metadata.provider == clr::TPL && matches!(metadata.event_id, 14 | 15 | 17 | 18) {
            kind = EventKind::Tpl(metadata.event_id);
        }
        if kind == EventKind::Nothing
            && let Some(pair) = if self.requests { Pairs::of_requests(metadata) } else { Pairs::of(metadata) }
        {
            kind = EventKind::Pair(pair);
            self.schemas.insert(event.metadata_id, Box::new(Schema::of(metadata, pointer_size)));
        }
        self.kinds.insert(event.metadata_id, kind);
        kind
    }
}

/// The kind of synchronous work that executes the code of an operation.
const EXECUTION: u32 = 2;

/// Parses an event of the task library: the scheduler, the current task, the task concerned, and how it is awaited.
fn tpl(id: u32, payload: &[u8]) -> Option<RawKind> {
    let at = |offset: usize| Some(u32::from_le_bytes(*payload.get(offset..)?.first_chunk()?));
    match id {
        14 => return Some(RawKind::OperationBegins(at(0)?)),
        15 => return Some(RawKind::OperationEnds(Work::Continuation(at(0)?))),
        17 => return Some(RawKind::Resumes((at(4)? == EXECUTION).then_some(at(0)?))),
        18 => return Some(RawKind::Suspends),
        _ => {}
    }
    let number = at(8)?;
    let task = Work::Task(number);
    Some(match id {
        7 => RawKind::Scheduled(task),
        8 => RawKind::Started(task),
        9 => RawKind::Ended(task),
        10 => {
            let by = at(16).unwrap_or(0);
            RawKind::Awaits { task: Work::Continuation(number), by, blocks: at(12)? == 1 }
        }
        11 => RawKind::AwaitEnds(Work::Continuation(number)),
        12 => RawKind::Continues(task),
        _ => return None,
    })
}

fn runtime(id: u32, payload: &[u8]) -> Option<RawKind> {
    // A pointer, followed by another pointer or two bytes.
    let number = match payload {
        [a, b, c, d, _, _] => Some(u64::from(u32::from_le_bytes([*a, *b, *c, *d]))),
        _ => payload.first_chunk::<8>().map(|bytes| u64::from_le_bytes(*bytes)),
    };
    Some(match id {
        10 | 20 | 32 => RawKind::Allocated,
        57 => RawKind::Parks,
        61 => RawKind::Queued(Work::Pool(number?)),
        62 => RawKind::Dequeued(Work::Pool(number?)),
        63 | 65 => RawKind::Queued(Work::Io(number?)),
        64 => RawKind::Dequeued(Work::Io(number?)),
        _ => return None,
    })
}

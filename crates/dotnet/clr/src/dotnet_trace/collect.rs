//! What the profile needs of the events, by position: these payloads never change.

use runtap_nettrace::{Event, IdTable};

use super::spans::{Pairs, Span};
use crate::clr;
use crate::payload::{Payload, Schema};

/// The name for what a thread is for.
pub(super) type Role = &'static str;

/// Keeps events, and what each kind of event is, by metadata id.
#[derive(Debug, Clone, Default)]
pub(super) struct Collector {
    pub(super) raw: Vec<Raw>,
    /// What [`What::Begins`] and [`What::Stops`] tell.
    pub(super) spans: Vec<Span>,
    /// For the view `request`.
    pub(super) requests: bool,
    /// The ids of activities that events have, each once.
    ids: Vec<[u8; 16]>,
    by_id: hashbrown::HashMap<[u8; 16], u32, foldhash::fast::RandomState>,
    kinds: IdTable<Kind>,
    /// Of the kinds that are pairs.
    schemas: IdTable<Box<Schema>>,
}

/// An event.
#[derive(Debug, Clone, Copy)]
pub(super) struct Raw {
    pub(super) timestamp: u64,
    pub(super) thread: u64,
    /// Index into the stream's stacks.
    pub(super) stack: u32,
    /// The activity that its thread was in, for the view `request`: an index into the collector's ids.
    pub(super) activity: u32,
    pub(super) what: What,
}

/// What it tells.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum What {
    /// A sample of a thread in managed code.
    Managed,
    /// A sample of a thread elsewhere.
    Unmanaged,
    Allocated,
    /// A task waits to run.
    Scheduled(Work),
    Started(Work),
    Ended(Work),
    /// A task awaits another one, or its thread waits for it.
    Awaits {
        task: Work,
        /// The number of the operation that resumes after the await; 0 if unknown.
        by: u32,
        blocks: bool,
    },
    AwaitEnds(Work),
    /// What somebody may await has ended; for the view `request`.
    OperationEnds(Work),
    /// An operation gives up its thread for the first time; for the view `request`, as the next two.
    OperationBegins(u32),
    /// A thread resumes an operation or a task. `None`: it notifies awaiters that an operation ended.
    Resumes(Option<u32>),
    /// The operation that the thread resumed last is suspended.
    Suspends,
    /// A continuation waits to run.
    Continues(Work),
    /// The thread pool was given work.
    Queued(Work),
    Dequeued(Work),
    /// A thread of the pool has nothing to do.
    Parks,
    /// The thread is one of the runtime's own.
    Is(Role),
    /// An activity begins, or ends: the index of what is told.
    Begins(usize),
    Stops(usize),
}

/// Something that is run later: what kind of number it has, and the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Work {
    Task(u32),
    Continuation(u32),
    Pool(u64),
    Io(u64),
    Operation(u32),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Nothing,
    Sample,
    Tpl(u32),
    Runtime(u32),
    Is(Role),
    Pair(Pairs),
}

const POOL: Role = ".NET ThreadPool";
const FINALIZER: Role = ".NET Finalizer Thread";
pub(super) const IO_POOL: Role = ".NET IO ThreadPool Worker";
const BACKGROUND_GC: Role = ".NET Background GC Thread";

impl Kind {
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
    /// What an event tells that the profile needs.
    #[inline]
    pub(super) fn what(&mut self, event: &Event<'_>, process: u32, pointer_size: u32) -> Option<What> {
        let kind = match self.kinds.get(event.metadata_id) {
            Some(kind) => *kind,
            None => self.define(event, pointer_size),
        };
        match kind {
            Kind::Nothing => None,
            Kind::Sample => Some(match event.payload.first_chunk::<4>() {
                Some([2, 0, 0, 0]) => What::Managed,
                _ => What::Unmanaged,
            }),
            Kind::Is(role) => Some(What::Is(role)),
            Kind::Tpl(id) => tpl(id, event.payload),
            Kind::Runtime(id) => runtime(id, event.payload),
            Kind::Pair(pair) => {
                let index = self.spans.len();
                let span = if self.requests { Pairs::span_of_kind } else { Pairs::span };
                let payload = Payload::new(self.schemas.get(event.metadata_id)?, event.payload);
                self.spans.push(span(pair, event, payload, process)?);
                Some(if matches!(pair, Pairs::Start(_)) { What::Begins(index) } else { What::Stops(index) })
            }
        }
    }

    /// The index of an event's activity.
    pub(super) fn activity(&mut self, event: &Event<'_>) -> u32 {
        let Some(id) = event.activity_id.filter(|id| self.requests && !id.is_nil()) else { return 0 };
        *self.by_id.entry(id.to_bytes_le()).or_insert_with_key(|id| {
            self.ids.push(*id);
            u32::try_from(self.ids.len()).unwrap_or(u32::MAX)
        })
    }

    /// The id of an index.
    pub(super) fn id(&self, activity: u32) -> Option<[u8; 16]> {
        self.ids.get(usize::try_from(activity).ok()?.checked_sub(1)?).copied()
    }

    /// A kind of event is defined anew.
    pub(super) fn redefined(&mut self, metadata_id: u32) {
        self.kinds.remove(metadata_id);
        self.schemas.remove(metadata_id);
    }

    /// All kinds of events will be defined anew.
    pub(super) fn forget_kinds(&mut self) {
        self.kinds.clear();
        self.schemas.clear();
    }

    #[cold]
    fn define(&mut self, event: &Event<'_>, pointer_size: u32) -> Kind {
        let Some(metadata) = event.metadata else { return Kind::Nothing };
        let mut kind = Kind::of(&metadata.provider, metadata.event_id);
        if self.requests && metadata.provider == clr::TPL && matches!(metadata.event_id, 14 | 15 | 17 | 18) {
            kind = Kind::Tpl(metadata.event_id);
        }
        if kind == Kind::Nothing
            && let Some(pair) = if self.requests { Pairs::of_requests(metadata) } else { Pairs::of(metadata) }
        {
            kind = Kind::Pair(pair);
            self.schemas.insert(event.metadata_id, Box::new(Schema::of(metadata, pointer_size)));
        }
        self.kinds.insert(event.metadata_id, kind);
        kind
    }
}

/// The kind of synchronous work that is the code of an operation.
const EXECUTION: u32 = 2;

/// The scheduler, the task that was running, the task that is meant, and, where it awaits, how.
fn tpl(id: u32, payload: &[u8]) -> Option<What> {
    let at = |offset: usize| Some(u32::from_le_bytes(*payload.get(offset..)?.first_chunk()?));
    match id {
        14 => return Some(What::OperationBegins(at(0)?)),
        15 => return Some(What::OperationEnds(Work::Continuation(at(0)?))),
        17 => return Some(What::Resumes((at(4)? == EXECUTION).then_some(at(0)?))),
        18 => return Some(What::Suspends),
        _ => {}
    }
    let number = at(8)?;
    let task = Work::Task(number);
    Some(match id {
        7 => What::Scheduled(task),
        8 => What::Started(task),
        9 => What::Ended(task),
        10 => {
            let by = at(16).unwrap_or(0);
            What::Awaits { task: Work::Continuation(number), by, blocks: at(12)? == 1 }
        }
        11 => What::AwaitEnds(Work::Continuation(number)),
        12 => What::Continues(task),
        _ => return None,
    })
}

fn runtime(id: u32, payload: &[u8]) -> Option<What> {
    // A pointer, and behind it another one or two bytes.
    let number = match payload {
        [a, b, c, d, _, _] => Some(u64::from(u32::from_le_bytes([*a, *b, *c, *d]))),
        _ => payload.first_chunk::<8>().map(|bytes| u64::from_le_bytes(*bytes)),
    };
    Some(match id {
        10 | 20 | 32 => What::Allocated,
        57 => What::Parks,
        61 => What::Queued(Work::Pool(number?)),
        62 => What::Dequeued(Work::Pool(number?)),
        63 | 65 => What::Queued(Work::Io(number?)),
        64 => What::Dequeued(Work::Io(number?)),
        _ => return None,
    })
}

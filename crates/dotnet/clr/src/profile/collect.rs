//! Collects the events of a view until all names are known.

use runtap_model::View;
use runtap_nettrace::{Event, Metadata, Observe, StreamItem};

use crate::clr;
use crate::payload::{Decoder, Payload};
use crate::report::whole;
use crate::suspensions::Why;

/// Collects the events of a view.
#[derive(Debug, Clone)]
pub(super) struct Collector {
    view: View,
    decoder: Decoder,
    pub(super) raw: Vec<Raw>,
    pub(super) texts: Texts,
    /// The names of types, by the type id in allocation events.
    pub(super) types: hashbrown::HashMap<u64, Text, foldhash::fast::RandomState>,
    pub(super) malformed: u64,
}

/// A collected event.
#[derive(Debug, Clone, Copy)]
pub(super) struct Raw {
    pub(super) timestamp: u64,
    pub(super) thread: u64,
    /// The index of its stack in the stream's stacks.
    pub(super) stack: u32,
    pub(super) kind: RawKind,
}

/// What a collected event reports.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum RawKind {
    Allocated {
        by: Sampling,
        bytes: u64,
        of: Type,
    },
    Thrown {
        of: Text,
    },
    LockWanted,
    /// The duration of the wait in nanoseconds, if the runtime reports it.
    LockTaken {
        ns: Option<u64>,
    },
    Suspending {
        why: Why,
    },
    Collecting {
        generation: u32,
        reason: u32,
        kind: u32,
    },
    /// Code that caused a collection. Of all events of a collection, only this one has a stack.
    Triggered,
    Resumed,
    Compiling {
        method: u64,
        module: u64,
        name: Text,
    },
    Compiled {
        method: u64,
    },
    TaskBegins {
        task: u32,
        name: Text,
    },
    TaskEnds {
        task: u32,
    },
    TaskAwaits {
        task: u32,
        awaited: u32,
    },
    TaskRuns {
        task: u32,
    },
}

/// How the runtime sampled allocations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sampling {
    /// One in about 100 kB of each kind. The event has the bytes since the last one.
    Tick,
    /// Some of each type. The event has the bytes of that type since the last one.
    ByType,
    /// At random, with equal probability for each byte.
    Random,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    Named(Text),
    /// The name is in another event.
    Id(u64),
}

/// A handle of a text in [`Texts`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Text(u32);

/// Distinct texts.
#[derive(Debug, Clone, Default)]
pub(super) struct Texts {
    list: Vec<Box<str>>,
    index: hashbrown::HashMap<Box<str>, u32, foldhash::fast::RandomState>,
}

impl Texts {
    fn add(&mut self, text: String) -> Text {
        if let Some(known) = self.index.get(text.as_str()) {
            return Text(*known);
        }
        let new = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
        self.list.push(text.as_str().into());
        self.index.insert(text.into(), new);
        Text(new)
    }

    pub(super) fn get(&self, text: Text) -> &str {
        self.list.get(usize::try_from(text.0).unwrap_or(usize::MAX)).map_or("", |text| text)
    }
}

impl Collector {
    pub(super) fn new(view: View) -> Self {
        Self {
            view,
            decoder: Decoder::new(),
            raw: Vec::new(),
            texts: Texts::default(),
            types: hashbrown::HashMap::default(),
            malformed: 0,
        }
    }

    /// Processes an item that is not an event.
    pub(super) fn item(&mut self, item: &StreamItem<'_>) {
        self.decoder.item(item);
    }

    /// Whether the view needs events of this kind.
    pub(super) fn wants(&self, metadata: &Metadata) -> bool {
        let (provider, id) = (metadata.provider.as_str(), metadata.event_id);
        match self.view {
            View::Alloc => provider == clr::RUNTIME && matches!(id, 10 | 15 | 20 | 32 | 303),
            View::Exceptions => provider == clr::RUNTIME && id == 80,
            View::Contention => provider == clr::RUNTIME && matches!(id, 81 | 91),
            View::Gc => provider == clr::RUNTIME && matches!(id, 1 | 3 | 9 | 35),
            View::Jit => provider == clr::RUNTIME && matches!(id, 141 | 143 | 145),
            View::Async => provider == clr::TPL && matches!(id, 10 | 14 | 15 | 17),
            _ => false,
        }
    }

    /// Processes an event for which [`wants`](Self::wants) is true. `stack` is the index of its stack.
    pub(super) fn event(&mut self, metadata: &Metadata, event: &Event<'_>, stack: u32) {
        let Self { view, decoder, texts, types, .. } = self;
        let payload = decoder.payload(event);
        if metadata.event_id == 15 && *view == View::Alloc {
            bulk_type(payload, texts, types);
            return;
        }
        match kind_of(*view, metadata.event_id, payload, texts) {
            Some(kind) => {
                let (timestamp, thread) = (event.timestamp, event.thread_id);
                self.raw.push(Raw { timestamp, thread, stack, kind });
            }
            // An await that blocks its thread and continues no task is ignored.
            None if metadata.provider == clr::TPL => {}
            None => self.malformed += 1,
        }
    }
}

/// Returns what an event reports.
fn kind_of(view: View, id: u32, payload: Payload<'_>, texts: &mut Texts) -> Option<RawKind> {
    let number = |name| payload.u64(name);
    let small = |name| payload.u64(name).and_then(|n| u32::try_from(n).ok());
    let task = |name| small(name).filter(|task| *task != 0);
    Some(match (view, id) {
        (View::Alloc, 10) => RawKind::Allocated {
            by: Sampling::Tick,
            bytes: number("AllocationAmount64").or_else(|| number("AllocationAmount"))?,
            of: Type::Named(texts.add(payload.text("TypeName").unwrap_or_default())),
        },
        (View::Alloc, 20 | 32) => RawKind::Allocated {
            by: Sampling::ByType,
            bytes: number("TotalSizeForTypeSample")?,
            of: Type::Id(number("TypeID")?),
        },
        (View::Alloc, 303) => RawKind::Allocated {
            by: Sampling::Random,
            bytes: standing_for(number("ObjectSize")?),
            of: Type::Named(texts.add(payload.text("TypeName")?)),
        },
        (View::Exceptions, _) => {
            RawKind::Thrown { of: texts.add(payload.text("ExceptionType").unwrap_or_default()) }
        }
        (View::Contention, 81) => RawKind::LockWanted,
        (View::Contention, _) => RawKind::LockTaken { ns: payload.f64("DurationNs").and_then(whole) },
        (View::Gc, 9) => RawKind::Suspending { why: Why::of(number("Reason")?) },
        (View::Gc, 1) => RawKind::Collecting {
            generation: small("Depth")?,
            reason: small("Reason")?,
            kind: small("Type")?,
        },
        (View::Gc, 35) => RawKind::Triggered,
        (View::Gc, _) => RawKind::Resumed,
        (View::Jit, 145) => {
            let part = |name| payload.text(name).unwrap_or_default();
            let (space, name, signature) =
                (part("MethodNamespace"), part("MethodName"), part("MethodSignature"));
            let arguments = signature.find('(').and_then(|at| signature.get(at..)).unwrap_or_default();
            let dot = if space.is_empty() { "" } else { "." };
            RawKind::Compiling {
                method: number("MethodID")?,
                module: number("ModuleID")?,
                name: texts.add(format!("{space}{dot}{name}{arguments}")),
            }
        }
        (View::Jit, _) => RawKind::Compiled { method: number("MethodID")? },
        (View::Async, 10) => {
            RawKind::TaskAwaits { task: task("ContinueWithTaskID")?, awaited: task("TaskID")? }
        }
        (View::Async, 14) => {
            RawKind::TaskBegins { task: task("TaskID")?, name: texts.add(payload.text("OperationName")?) }
        }
        (View::Async, 15) => RawKind::TaskEnds { task: task("TaskID")? },
        (View::Async, 17) => RawKind::TaskRuns { task: task("TaskID")? },
        _ => return None,
    })
}

/// Returns the number of bytes that a randomly sampled object represents: a byte is sampled with probability 1 : 102,400, an object
/// of `size` bytes with `1 - e^(-size/102400)`; it represents its size divided by that.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an estimate"
)]
fn standing_for(size: u64) -> u64 {
    const MEAN: f64 = 102_400.0;
    let size = size as f64;
    let chance = -(-size / MEAN).exp_m1();
    if chance > 0.0 { (size / chance).round() as u64 } else { MEAN as u64 }
}

fn bulk_type(
    payload: Payload<'_>,
    texts: &mut Texts,
    types: &mut hashbrown::HashMap<u64, Text, foldhash::fast::RandomState>,
) {
    let Some(crate::payload::Value::Array(values)) = payload.get("Values") else { return };
    for fields in values.objects() {
        let id = fields.get("TypeID").and_then(|id| id.as_u64());
        let name = fields.get("Name").and_then(|name| name.as_text());
        if let (Some(id), Some(name)) = (id, name) {
            types.insert(id, texts.add(name));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_objects_represent_the_mean_and_large_ones_themselves() {
        assert!((102_400..102_500).contains(&standing_for(24)));
        assert_eq!(standing_for(10_000_000), 10_000_000);
        assert_eq!(standing_for(0), 102_400);
    }
}

//! Determines what to keep of a truncated or damaged payload: the entries before the damage, without those that refer to
//! missing definitions.

use std::borrow::Cow;
use std::ops::Range;

use foldhash::fast::FixedState;
use hashbrown::HashSet;
use runtap_wire::{DecodeError, DecodeErrorKind, Reader as Bytes};

use super::{events, hole};
use crate::block::label::pass_list;
use crate::block::netperf::{self, NetPerfEvent};
use crate::block::point::removed_thread;
use crate::metadata::UNDEFINED;
use crate::raw::{Format, ObjectKind};
use crate::{Error, Metadata, SequencePoint, Thread};

/// The error of a definition with unreadable fields.
pub(super) const UNREADABLE: DecodeErrorKind = DecodeErrorKind::Invalid("has fields that can't be read");

/// The part of a payload to keep.
pub(super) enum KeptPayload {
    All,
    Nothing(Option<Error>),
    Shortened {
        kept: Vec<u8>,
        damage: Option<Error>,
        /// The position in the payload from which on nothing is kept. `None` if the payload was read to its end.
        ended: Option<usize>,
    },
}

/// The definitions that were kept. Other tools reject a stream with an event without a definition.
#[derive(Debug, Default)]
pub(super) struct Defined {
    ids: HashSet<u32, FixedState>,
    /// The ids that were added since [`Self::begin_trial`] and may be undone.
    on_trial: Option<Vec<u32>>,
    /// Whether other definitions were unreadable.
    pub(super) lost: bool,
    /// The number of events that were removed because their definition is missing.
    pub(super) events_left_out: u64,
    /// The stack ids that are defined.
    pub(super) stacks: KnownStacks,
    /// The number of events that were kept with an undefined stack.
    pub(super) events_without_stack: u64,
}

/// A state to restore with [`Defined::undo`], without the ids, which may be millions.
pub(super) struct Checkpoint {
    lost: bool,
    events_left_out: u64,
    stacks: KnownStacks,
    events_without_stack: u64,
}

/// The stack ids that are defined. They increase between two sequence points.
#[derive(Debug, Clone, Copy, Default)]
pub(super) enum KnownStacks {
    #[default]
    All,
    /// No ids: none was defined since stacks may have been lost.
    None,
    /// The ids from this one on.
    From(u32),
}

impl Defined {
    /// Starts adding events and definitions that may be undone.
    pub(super) fn begin_trial(&mut self) -> Checkpoint {
        self.on_trial = Some(Vec::new());
        let Self { lost, events_left_out, stacks, events_without_stack, .. } = *self;
        Checkpoint { lost, events_left_out, stacks, events_without_stack }
    }

    /// Makes the additions permanent.
    pub(super) fn end_trial(&mut self) {
        self.on_trial = None;
    }

    /// Undoes the additions since `before`.
    pub(super) fn undo(&mut self, before: &Checkpoint) {
        for id in self.on_trial.take().unwrap_or_default() {
            self.ids.remove(&id);
        }
        let Checkpoint { lost, events_left_out, stacks, events_without_stack } = *before;
        (self.lost, self.stacks) = (lost, stacks);
        (self.events_left_out, self.events_without_stack) = (events_left_out, events_without_stack);
    }

    /// Marks that definitions and stacks were lost, and perhaps a sequence point.
    pub(super) fn lose(&mut self) {
        (self.lost, self.stacks) = (true, KnownStacks::None);
    }

    /// Counts an event with this stack.
    pub(super) fn count_stack(&mut self, id: u32) {
        let is_known = match self.stacks {
            KnownStacks::All => true,
            KnownStacks::None => false,
            KnownStacks::From(first) => id >= first,
        };
        self.events_without_stack += u64::from(!is_known && id != 0);
    }

    /// Returns whether this metadata id is defined.
    pub(super) fn has(&self, id: u32) -> bool {
        self.ids.contains(&id)
    }

    /// Adds a definition that begins at `offset`, and returns its bytes to write.
    pub(super) fn add<'a>(
        &mut self,
        definition: Result<(Metadata, Cow<'a, [u8]>), DecodeError>,
        offset: u64,
    ) -> Result<Cow<'a, [u8]>, DecodeError> {
        let definition = definition.and_then(|(metadata, bytes)| match metadata.id {
            0 => Err(DecodeError::new(offset, "metadata id", UNDEFINED)),
            id => Ok((id, bytes)),
        });
        match definition {
            Ok((id, bytes)) => {
                if self.ids.insert(id)
                    && let Some(added) = &mut self.on_trial
                {
                    added.push(id);
                }
                Ok(bytes)
            }
            Err(error) => {
                self.lost = true;
                Err(error)
            }
        }
    }
}

/// Determines the readable part of a payload in a stream of this `version`.
pub(super) fn keep(
    (format, version): (Format, u32),
    kind: ObjectKind,
    payload: &[u8],
    offset: u64,
    defined: &mut Defined,
) -> KeptPayload {
    let mut r = Bytes::at(payload, offset);
    match (kind, format) {
        (ObjectKind::Event, Format::NetPerf3) => netperf_events(payload, offset, version, defined),
        (ObjectKind::Event, Format::Nettrace6) => events::keep::<true>(payload, offset, defined),
        (ObjectKind::Event, _) => events::keep::<false>(payload, offset, defined),
        (ObjectKind::Metadata, Format::Nettrace4) => events::keep_definitions(payload, offset, defined),
        (ObjectKind::Metadata, Format::Nettrace6) => definitions(payload, r, defined),
        (ObjectKind::Thread, _) => rows(payload, r, |r| {
            let size = r.u16("size of a thread")?;
            Thread::decode(r.sub(size.into(), "thread")?)
        }),
        (ObjectKind::RemoveThread, _) => rows(payload, r, removed_thread),
        (ObjectKind::Stack, _) => {
            if let (KnownStacks::None, Ok(first)) = (&defined.stacks, r.clone().u32("first id")) {
                defined.stacks = KnownStacks::From(first);
            }
            counted(payload, &mut r, |r| {
                let size = r.u32("stack length")?;
                r.bytes(usize::try_from(size).unwrap_or(usize::MAX), "stack").map(|_| Some(()))
            })
        }
        (ObjectKind::LabelList, _) => counted(payload, &mut r, pass_list),
        (ObjectKind::SequencePoint, _) => match SequencePoint::decode(&mut r, format) {
            Ok(point) => {
                defined.stacks = KnownStacks::All;
                if point.flushes_metadata() {
                    defined.ids.clear();
                }
                KeptPayload::All
            }
            // Without a sequence point, stack ids would keep their old meaning: write a point that lists no thread.
            Err(error) => match payload.first_chunk::<8>() {
                Some(timestamp) => {
                    let mut point = timestamp.to_vec();
                    point.resize(if format == Format::Nettrace6 { 16 } else { 12 }, 0);
                    KeptPayload::Shortened { kept: point, damage: Some(error.into()), ended: None }
                }
                None => KeptPayload::Nothing(Some(error.into())),
            },
        },
        _ => KeptPayload::Nothing(None),
    }
}

/// Keeps the readable events and definitions of `NetPerf` 3.
fn netperf_events(payload: &[u8], offset: u64, version: u32, defined: &mut Defined) -> KeptPayload {
    let (mut kept, mut at, mut first_error, mut ended) = (Vec::new(), 0, None, None);
    while at < payload.len() {
        let place = match netperf::frame(payload, at) {
            Ok(place) => place,
            Err(fault) => {
                first_error.get_or_insert_with(|| fault.into_error(offset + payload.len() as u64).into());
                ended = Some(at);
                break;
            }
        };
        if hole::touches(payload, &place, 4) {
            first_error
                .get_or_insert_with(|| DecodeError::new(offset + at as u64, "event", hole::HOLE).into());
            ended = Some(at);
            break;
        }
        match netperf_event(Format::NetPerf3, version, payload, &place, offset, defined) {
            Ok(None) => kept.extend_from_slice(payload.get(place.clone()).unwrap_or_default()),
            Ok(Some((range, repaired))) => {
                first_error.get_or_insert_with(|| DecodeError::new(offset, "definition", UNREADABLE).into());
                kept.extend_from_slice(payload.get(place.start..range.start).unwrap_or_default());
                kept.extend_from_slice(&repaired);
                kept.extend_from_slice(payload.get(range.end..place.end).unwrap_or_default());
            }
            Err(error) => {
                first_error.get_or_insert(Error::Decode(error));
            }
        }
        at = place.end;
    }
    match first_error {
        None => KeptPayload::All,
        error if kept.is_empty() => KeptPayload::Nothing(error),
        damage => KeptPayload::Shortened { kept, damage, ended },
    }
}

/// The range of a payload to replace, with the new bytes.
pub(super) type Replacement = (Range<usize>, Vec<u8>);

/// Checks whether to keep the event or definition of `NetPerf` at the range `place` of a payload that begins at `offset`.
/// Returns a replacement for its own payload, if it needs one.
pub(super) fn netperf_event(
    format: Format,
    version: u32,
    payload: &[u8],
    place: &Range<usize>,
    offset: u64,
    defined: &mut Defined,
) -> Result<Option<Replacement>, DecodeError> {
    let start = offset + place.start as u64;
    let event =
        NetPerfEvent::decode(payload, place).map_err(|fault| fault.into_error(offset + place.end as u64))?;
    if event.metadata_id != 0 {
        let known = defined.has(event.metadata_id);
        defined.events_left_out += u64::from(!known);
        return if known { Ok(None) } else { Err(DecodeError::new(start, "metadata id", UNDEFINED)) };
    }
    let record = payload.get(event.payload.clone()).unwrap_or_default();
    let definition = if format == Format::NetPerf1 {
        let mut r = Bytes::at(record, start);
        Metadata::decode_netperf(&mut r, format, start, version).map(|metadata| (metadata, record.into()))
    } else {
        Metadata::repair_v4(record, start)
    };
    Ok(match defined.add(definition, start)? {
        Cow::Borrowed(_) => None,
        Cow::Owned(repaired) => Some((event.payload, repaired)),
    })
}

/// Keeps the readable definitions of Nettrace 6, until the end of one is unknown.
fn definitions(payload: &[u8], mut r: Bytes<'_>, defined: &mut Defined) -> KeptPayload {
    let header = r.u16("size of the block header").and_then(|size| r.bytes(size.into(), "block header"));
    if let Err(error) = header {
        defined.lost = true;
        return KeptPayload::Nothing(Some(error.into()));
    }
    let place = |r: &Bytes<'_>| payload.len() - r.remaining();
    let mut kept = payload.get(..place(&r)).unwrap_or_default().to_vec();
    let (mut damage, mut ended) = (None, None);
    while !r.is_empty() {
        let start = place(&r);
        if hole::around(payload, start, 2).is_some() {
            defined.lost = true;
            damage.get_or_insert_with(|| r.error("definition", hole::HOLE));
            ended = Some(start);
            break;
        }
        match r.u16("size of a definition").and_then(|size| r.sub(size.into(), "definition")) {
            Ok(row) => {
                let at = row.offset();
                match defined.add(Metadata::repair_v6(row.rest(), at), at) {
                    Ok(definition) => {
                        kept.extend_from_slice(payload.get(start..start + 2).unwrap_or_default());
                        kept.extend_from_slice(&definition);
                        if let Cow::Owned(_) = definition {
                            damage.get_or_insert_with(|| DecodeError::new(at, "definition", UNREADABLE));
                        }
                    }
                    Err(error) => {
                        damage.get_or_insert(error);
                    }
                }
            }
            Err(error) => {
                defined.lost = true;
                damage.get_or_insert(error);
                ended = Some(start);
                break;
            }
        }
    }
    match damage {
        None => KeptPayload::All,
        Some(error) => KeptPayload::Shortened { kept, damage: Some(error.into()), ended },
    }
}

/// Keeps the rows of Nettrace 6 until one cannot be read.
fn rows<T>(
    payload: &[u8],
    mut r: Bytes<'_>,
    mut row: impl FnMut(&mut Bytes<'_>) -> Result<T, DecodeError>,
) -> KeptPayload {
    while !r.is_empty() {
        let before = r.clone();
        if let Err(error) = row(&mut r) {
            let end = payload.len() - before.remaining();
            let kept = payload.get(..end).unwrap_or_default().to_vec();
            return KeptPayload::Shortened { kept, damage: Some(error.into()), ended: Some(end) };
        }
    }
    KeptPayload::All
}

/// Keeps the entries of a block with a count in its second field, until one is unreadable or unknown, and at most as many
/// as the count.
fn counted(
    payload: &[u8],
    r: &mut Bytes<'_>,
    mut entry: impl FnMut(&mut Bytes<'_>) -> Result<Option<()>, DecodeError>,
) -> KeptPayload {
    let count = match r.u32("first id").and_then(|_first| r.u32("number of entries")) {
        Ok(count) => count,
        Err(error) => return KeptPayload::Nothing(Some(error.into())),
    };
    let (mut whole, mut end, mut damage) = (0_u32, payload.len() - r.remaining(), None);
    while whole < count {
        match entry(r) {
            Ok(Some(())) if hole::touches(payload, &(end..payload.len() - r.remaining()), 4) => {
                damage = Some(r.error("entry", hole::HOLE).into());
                break;
            }
            Ok(Some(())) => {}
            Ok(None) => break,
            Err(error) => {
                damage = Some(error.into());
                break;
            }
        }
        whole += 1;
        end = payload.len() - r.remaining();
    }
    if whole == count && r.is_empty() {
        return KeptPayload::All;
    }
    if whole == count {
        // Some readers read to the end of the block, whatever its count.
        let kind = DecodeErrorKind::Invalid("has more than it counts");
        damage = Some(r.error("block", kind).into());
    } else if whole == 0 {
        return KeptPayload::Nothing(damage);
    }
    let mut kept = payload.get(..end).unwrap_or_default().to_vec();
    if let Some(place) = kept.get_mut(4..8) {
        place.copy_from_slice(&whole.to_le_bytes());
    }
    KeptPayload::Shortened { kept, damage, ended: Some(end) }
}

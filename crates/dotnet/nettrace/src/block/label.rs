//! Label lists of Nettrace 6, valid until the next sequence point. Source: nettrace format, "V6, labels".
//! [`Event`](crate::Event) applies the labels that override its definition.

use std::borrow::Cow;

use runtap_wire::{DecodeError, DecodeErrorKind, Reader, Uuid, Writer};

use super::stack::ID_OVERHEAD;
use crate::table::IdTable;
use crate::text::{string, write_string};

/// One label of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Label<'a> {
    /// 1: the activity that the event belongs to.
    ActivityId(Uuid),
    /// 2: the activity that started the event's activity.
    RelatedActivityId(Uuid),
    /// 3: the trace id of W3C Trace Context, in network byte order.
    TraceId([u8; 16]),
    /// 4: the span id of W3C Trace Context.
    SpanId(u64),
    /// 5: a name and a text.
    Text(Cow<'a, str>, Cow<'a, str>),
    /// 6: a name and a number.
    Number(Cow<'a, str>, LabelNumber),
    /// 7: overrides the opcode of the definition.
    Opcode(u8),
    /// 8: overrides the keywords of the definition.
    Keywords(u64),
    /// 9: overrides the level of the definition.
    Level(u8),
    /// 10: overrides the version of the definition.
    Version(u8),
}

/// The number of a label, for which two encodings are in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LabelNumber {
    /// The unsigned encoded number. `record-trace` of one-collect writes its numbers without zig-zag encoding.
    pub raw: u64,
}

impl LabelNumber {
    /// Encodes a number as the format's specification requires.
    pub fn new(value: i64) -> Self {
        Self { raw: (value.cast_unsigned() << 1) ^ (value >> 63).cast_unsigned() }
    }

    /// Decodes the number as the specification requires: zig-zag, as in Protocol Buffers.
    pub fn value(self) -> i64 {
        (self.raw >> 1).cast_signed() ^ -(self.raw & 1).cast_signed()
    }
}

/// The bit that marks the last label of a list in the label's kind.
const LAST: u8 = 0x80;

impl<'a> Label<'a> {
    /// Reads a label, and whether it is the last one of its list. `None` if its kind is unknown.
    fn decode(r: &mut Reader<'a>) -> Result<Option<(Self, bool)>, DecodeError> {
        let kind = r.u8("kind of a label")?;
        let label = match kind & !LAST {
            1 => Self::ActivityId(r.guid("activity id")?),
            2 => Self::RelatedActivityId(r.guid("related activity id")?),
            3 => Self::TraceId(r.array("trace id")?),
            4 => Self::SpanId(r.u64("span id")?),
            5 => Self::Text(string(r, "name of a label")?, string(r, "text of a label")?),
            6 => {
                let key = string(r, "name of a label")?;
                Self::Number(key, LabelNumber { raw: r.varu64("number of a label")? })
            }
            7 => Self::Opcode(r.u8("opcode")?),
            8 => Self::Keywords(r.u64("keywords")?),
            9 => Self::Level(r.u8("event level")?),
            10 => Self::Version(r.u8("event version")?),
            _ => return Ok(None),
        };
        Ok(Some((label, kind & LAST != 0)))
    }

    pub(crate) fn encode(&self, last: bool, w: &mut Writer) {
        let kind = |kind: u8| if last { kind | LAST } else { kind };
        match self {
            Self::ActivityId(id) => w.u8(kind(1)).guid(*id),
            Self::RelatedActivityId(id) => w.u8(kind(2)).guid(*id),
            Self::TraceId(id) => w.u8(kind(3)).bytes(id),
            Self::SpanId(id) => w.u8(kind(4)).u64(*id),
            Self::Text(key, text) => {
                write_string(key, w.u8(kind(5)));
                write_string(text, w);
                w
            }
            Self::Number(key, number) => {
                write_string(key, w.u8(kind(6)));
                w.varu64(number.raw)
            }
            Self::Opcode(opcode) => w.u8(kind(7)).u8(*opcode),
            Self::Keywords(keywords) => w.u8(kind(8)).u64(*keywords),
            Self::Level(level) => w.u8(kind(9)).u8(*level),
            Self::Version(version) => w.u8(kind(10)).u8(*version),
        };
    }
}

/// Skips a list. `None` if it contains a label of an unknown kind.
pub(crate) fn pass_list(r: &mut Reader<'_>) -> Result<Option<()>, DecodeError> {
    Ok(FirstLabels::of_list(r)?.map(drop))
}

/// The positions of the first label of each kind in a list. Determined once, when the list is read: a list can be long,
/// and used by millions of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FirstLabels {
    /// Bytes from the start of the list, plus one; 0 if there is no such label.
    places: [u32; LabelKind::ALL],
}

/// The kinds of labels that [`FirstLabels`] locates.
#[derive(Debug, Clone, Copy)]
enum LabelKind {
    ActivityId,
    RelatedActivityId,
    TraceId,
    SpanId,
    Opcode,
    Keywords,
    Level,
    Version,
}

impl LabelKind {
    const ALL: usize = 8;

    fn of(label: &Label<'_>) -> Option<Self> {
        Some(match label {
            Label::ActivityId(_) => Self::ActivityId,
            Label::RelatedActivityId(_) => Self::RelatedActivityId,
            Label::TraceId(_) => Self::TraceId,
            Label::SpanId(_) => Self::SpanId,
            Label::Text(..) | Label::Number(..) => return None,
            Label::Opcode(_) => Self::Opcode,
            Label::Keywords(_) => Self::Keywords,
            Label::Level(_) => Self::Level,
            Label::Version(_) => Self::Version,
        })
    }
}

impl FirstLabels {
    /// The encoded length in bytes, before each list in the arena.
    const SIZE: usize = size_of::<u32>() * LabelKind::ALL;

    /// Skips a list and locates its labels. `None` if it contains a label of an unknown kind.
    fn of_list(r: &mut Reader<'_>) -> Result<Option<Self>, DecodeError> {
        let all = r.remaining();
        let mut firsts = Self { places: [0; LabelKind::ALL] };
        loop {
            let place = u32::try_from(all - r.remaining()).unwrap_or(u32::MAX);
            let Some((label, last)) = Label::decode(r)? else { return Ok(None) };
            if let Some(first) = LabelKind::of(&label).and_then(|kind| firsts.places.get_mut(kind as usize))
                && *first == 0
            {
                *first = place.saturating_add(1);
            }
            if last {
                return Ok(Some(firsts));
            }
        }
    }
}

/// The label lists of one epoch, that is, between two sequence points.
#[derive(Debug, Clone, Default)]
pub(crate) struct LabelTable {
    /// All lists of the epoch, each after its [`FirstLabels`].
    arena: Vec<u8>,
    /// The position of each list in the arena: (start, end).
    places: IdTable<(u32, u32)>,
}

impl LabelTable {
    /// Handles a sequence point: ids are reassigned after it.
    pub(crate) fn next_epoch(&mut self) {
        self.arena.clear();
        self.places.clear();
    }

    /// Adds a block. The result tells whether all lists were read. A label of an unknown kind, whose length is unknown, and
    /// an error end the reading of the block; the lists before stay.
    pub(crate) fn add_block(&mut self, r: &mut Reader<'_>, max_bytes: usize) -> Result<bool, DecodeError> {
        let mut id = r.u32("first id of a label list")?;
        let count = r.u32("number of label lists")?;
        let max_bytes = max_bytes.min(usize::try_from(u32::MAX).unwrap_or(usize::MAX));
        for _ in 0..count {
            let list = r.rest();
            let Some(firsts) = FirstLabels::of_list(r)? else { return Ok(false) };
            let list = list.get(..list.len() - r.remaining()).unwrap_or_default();
            let (start, size) = (self.arena.len(), FirstLabels::SIZE + list.len());
            // A list with one short label needs memory, too.
            let held = start + size + (self.places.len() + 1) * ID_OVERHEAD;
            if held > max_bytes {
                let kind = DecodeErrorKind::TooLarge { value: held as u64, limit: max_bytes as u64 };
                return Err(r.error("labels since the last sequence point", kind));
            }
            self.arena.extend(firsts.places.iter().flat_map(|place| place.to_le_bytes()));
            self.arena.extend_from_slice(list);
            // Below the limit that was just checked.
            let place = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
            self.places.insert(id, (place(start), place(start + size)));
            id = id.wrapping_add(1);
        }
        Ok(true)
    }

    pub(crate) fn is_defined(&self, id: u32) -> bool {
        self.places.get(id).is_some()
    }

    #[inline]
    pub(crate) fn list(&self, id: u32) -> Labels<'_> {
        // Most events have no labels.
        if id == 0 { Labels::default() } else { self.defined(id) }
    }

    fn defined(&self, id: u32) -> Labels<'_> {
        let place = self.places.get(id).and_then(|(start, end)| {
            let (start, end) = (usize::try_from(*start).ok()?, usize::try_from(*end).ok()?);
            self.arena.get(start..end)
        });
        Labels { bytes: place.unwrap_or_default() }
    }
}

/// The labels of an event, in the order of the stream. Empty for all events of versions before 6.
#[derive(Clone, Copy, Default)]
pub struct Labels<'a> {
    /// Validated before; preceded by its [`FirstLabels`].
    bytes: &'a [u8],
}

impl<'a> Labels<'a> {
    /// Returns whether there are no labels.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns all labels. Methods for a single label, such as [`trace_id`](Self::trace_id), are faster.
    pub fn iter(self) -> impl Iterator<Item = Label<'a>> {
        let mut r = Reader::new(self.bytes.get(FirstLabels::SIZE..).unwrap_or_default());
        std::iter::from_fn(move || Label::decode(&mut r).ok().flatten().map(|(label, _last)| label))
    }

    /// Returns the first label of a kind.
    #[inline]
    fn first(self, kind: LabelKind) -> Option<Label<'a>> {
        if self.is_empty() { None } else { self.found(kind) }
    }

    fn found(self, kind: LabelKind) -> Option<Label<'a>> {
        let (places, list) = self.bytes.split_at_checked(FirstLabels::SIZE)?;
        let place = places.as_chunks().0.get(kind as usize)?;
        let place = usize::try_from(u32::from_le_bytes(*place)).ok()?.checked_sub(1)?;
        Label::decode(&mut Reader::new(list.get(place..)?)).ok().flatten().map(|(label, _last)| label)
    }

    /// Returns the trace id of W3C Trace Context. `None` if there is no such label.
    pub fn trace_id(self) -> Option<[u8; 16]> {
        if let Label::TraceId(id) = self.first(LabelKind::TraceId)? { Some(id) } else { None }
    }

    /// Returns the span id of W3C Trace Context. `None` if there is no such label.
    pub fn span_id(self) -> Option<u64> {
        if let Label::SpanId(id) = self.first(LabelKind::SpanId)? { Some(id) } else { None }
    }

    #[inline]
    pub(crate) fn activity_id(self) -> Option<Uuid> {
        if let Label::ActivityId(id) = self.first(LabelKind::ActivityId)? { Some(id) } else { None }
    }

    #[inline]
    pub(crate) fn related_activity_id(self) -> Option<Uuid> {
        if let Label::RelatedActivityId(id) = self.first(LabelKind::RelatedActivityId)? {
            Some(id)
        } else {
            None
        }
    }

    #[inline]
    pub(crate) fn opcode(self) -> Option<u8> {
        if let Label::Opcode(opcode) = self.first(LabelKind::Opcode)? { Some(opcode) } else { None }
    }

    #[inline]
    pub(crate) fn keywords(self) -> Option<u64> {
        if let Label::Keywords(keywords) = self.first(LabelKind::Keywords)? { Some(keywords) } else { None }
    }

    #[inline]
    pub(crate) fn level(self) -> Option<u8> {
        if let Label::Level(level) = self.first(LabelKind::Level)? { Some(level) } else { None }
    }

    #[inline]
    pub(crate) fn version(self) -> Option<u8> {
        if let Label::Version(version) = self.first(LabelKind::Version)? { Some(version) } else { None }
    }
}

impl std::fmt::Debug for Labels<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<Label<'static>> {
        vec![
            Label::ActivityId(Uuid::from_u128(1)),
            Label::RelatedActivityId(Uuid::from_u128(2)),
            Label::TraceId(*b"0123456789abcdef"),
            Label::SpanId(u64::MAX),
            Label::Text("k".into(), "wört".into()),
            Label::Number("n".into(), LabelNumber::new(-3)),
            Label::Opcode(11),
            Label::Keywords(1 << 40),
            Label::Level(3),
            Label::Version(4),
        ]
    }

    fn block(lists: &[&[Label<'_>]]) -> Vec<u8> {
        let mut w = Writer::new();
        w.u32(5).u32(u32::try_from(lists.len()).unwrap());
        for list in lists {
            for (i, label) in list.iter().enumerate() {
                label.encode(i + 1 == list.len(), &mut w);
            }
        }
        w.into_bytes()
    }

    #[test]
    fn lists_round_trip() {
        let mut table = LabelTable::default();
        let bytes = block(&[&all(), &all()[6..7]]);
        assert_eq!(table.add_block(&mut Reader::new(&bytes), 1000), Ok(true));
        assert_eq!(table.list(5).iter().collect::<Vec<_>>(), all());
        assert_eq!(table.list(6).iter().collect::<Vec<_>>(), [Label::Opcode(11)]);
        assert_eq!(table.list(5).trace_id(), Some(*b"0123456789abcdef"));
        assert_eq!(table.list(5).span_id(), Some(u64::MAX));
        assert_eq!(table.list(5).activity_id(), Some(Uuid::from_u128(1)));
        assert_eq!(table.list(5).related_activity_id(), Some(Uuid::from_u128(2)));
        let replaced = table.list(5);
        assert_eq!((replaced.opcode(), replaced.keywords()), (Some(11), Some(1 << 40)));
        assert_eq!((replaced.level(), replaced.version()), (Some(3), Some(4)));
        assert!(table.list(7).is_empty() && table.list(0).is_empty());
        table.next_epoch();
        assert!(table.list(5).is_empty());
    }

    #[test]
    fn the_first_label_of_a_kind_is_used() {
        let text = || Label::Text("k".into(), "long enough to lie in front".into());
        let list = [text(), Label::Level(3), text(), Label::Level(4), Label::SpanId(7), Label::SpanId(8)];
        let mut table = LabelTable::default();
        let bytes = block(&[&[text()], &list]);
        assert_eq!(table.add_block(&mut Reader::new(&bytes), 1000), Ok(true));
        assert_eq!(table.list(5).iter().collect::<Vec<_>>(), [text()]);
        assert_eq!((table.list(5).level(), table.list(5).span_id()), (None, None));
        assert_eq!(table.list(6).iter().collect::<Vec<_>>(), list);
        assert_eq!((table.list(6).level(), table.list(6).span_id()), (Some(3), Some(7)));
        assert_eq!(
            (table.list(6).version(), table.list(6).opcode(), table.list(6).keywords()),
            (None, None, None)
        );
    }

    #[test]
    fn numbers_in_both_encodings() {
        for (raw, value) in [(0, 0), (1, -1), (2, 1), (u64::MAX, i64::MIN), (u64::MAX - 1, i64::MAX)] {
            assert_eq!(LabelNumber { raw }.value(), value);
            assert_eq!(LabelNumber::new(value).raw, raw);
        }
    }

    #[test]
    fn damage_and_limits() {
        let whole = block(&[&all()[6..7], &all()]);
        for n in 0..whole.len() {
            let mut table = LabelTable::default();
            assert!(table.add_block(&mut Reader::new(&whole[..n]), 1000).unwrap_err().is_incomplete());
            assert_eq!(table.list(5).is_empty(), n < 10);
        }
        let mut table = LabelTable::default();
        let unknown = [1, 0, 0, 0, 2, 0, 0, 0, 0x87, 9, 0x8b, 1, 2, 3];
        assert_eq!(table.add_block(&mut Reader::new(&unknown), 1000), Ok(false));
        assert_eq!(table.list(1).iter().collect::<Vec<_>>(), [Label::Opcode(9)]);
        assert!(table.list(2).is_empty());
        let error = table.add_block(&mut Reader::new(&whole), 20).unwrap_err();
        assert!(matches!(error.kind, DecodeErrorKind::TooLarge { .. }), "{error}");
    }
}

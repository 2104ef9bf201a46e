//! Layouts of payloads and names of events.

use runtap_nettrace::{Field, FieldType, Metadata};

use super::native::{self, Native};
use super::words::{self, NamedField};
use super::{names, weight};

/// The layout of an event's payload, and the event's name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Schema {
    pub(super) name: String,
    pub(super) opcode: Option<u8>,
    pub(super) fields: Layout,
    /// Whether the fields are known.
    pub(super) described: bool,
    /// The fields whose numbers have names.
    pub(super) named: Box<[NamedField]>,
    /// The variants of an event that stands for several, by the text at the start of the payload.
    pub(super) kinds: Box<[(&'static str, Self)]>,
}

/// Consecutive fields.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Layout {
    fields: Box<[FieldDef]>,
    /// The number of bytes, if it is constant.
    size: Option<usize>,
}

impl Layout {
    pub(super) fn new(fields: Vec<FieldDef>) -> Self {
        let add = |sum: usize, field: &FieldDef| sum.checked_add(field.kind.size()?);
        Self { size: fields.iter().try_fold(0, add), fields: fields.into() }
    }

    #[inline]
    pub(super) fn fields(&self) -> &[FieldDef] {
        &self.fields
    }
}

/// A field of a layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FieldDef {
    pub(super) name: Box<str>,
    pub(super) kind: FieldKind,
    /// Whether a payload may end before this field, as in older versions.
    pub(super) optional: bool,
    /// The slot that keeps its value as the length of an array that follows.
    pub(super) keep: Option<Slot>,
}

impl FieldDef {
    pub(super) fn new(name: impl Into<Box<str>>, kind: FieldKind) -> Self {
        Self { name: name.into(), kind, optional: false, keep: None }
    }
}

/// The index of a kept array length. Four lengths per object are enough.
pub(super) type Slot = u8;
pub(super) const SLOTS: usize = 4;

/// The encoding of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FieldKind {
    Bool32,
    Bool8,
    Char,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F32,
    F64,
    /// An address of a 32-bit process.
    Hex32,
    /// An identifier of 8 bytes, or an address of a 64-bit process.
    Hex64,
    Utf16z,
    Utf8z,
    /// UTF-8 after a `u16` number of bytes.
    Utf8Counted,
    /// A byte of UTF-8, as an array element.
    Utf8Unit,
    /// A signed LEB128 number in zig-zag encoding.
    VarInt,
    /// An unsigned LEB128 number.
    VarUInt,
    Guid,
    Decimal,
    FileTime,
    Object(Box<Layout>),
    Array(Box<Self>, Length),
    /// Elements elsewhere in the payload: offset and size. The offset is relative to the end of the field, or to the start of the
    /// payload.
    Located(Box<Self>, From),
    /// An unknown encoding. Fields after it can't be read.
    Opaque,
}

/// The number of elements of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Length {
    /// A `u16` before the elements.
    Counted,
    /// The value of an earlier field.
    Kept(Slot),
    /// A constant.
    Fixed(u16),
}

/// The base of an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum From {
    Field,
    Payload,
}

impl FieldKind {
    /// Returns the number of bytes, if it is constant.
    pub(super) fn size(&self) -> Option<usize> {
        Some(match self {
            Self::I8 | Self::U8 | Self::Bool8 | Self::Utf8Unit => 1,
            Self::Char | Self::I16 | Self::U16 => 2,
            Self::Bool32 | Self::I32 | Self::U32 | Self::F32 | Self::Hex32 | Self::Located(..) => 4,
            Self::I64 | Self::U64 | Self::F64 | Self::Hex64 | Self::FileTime => 8,
            Self::Guid | Self::Decimal => 16,
            Self::Object(layout) => layout.size?,
            // Elements without bytes are rejected when they are read.
            Self::Array(element, Length::Fixed(n)) => {
                element.size().filter(|each| *each > 0)?.checked_mul(usize::from(*n))?
            }
            Self::Utf16z
            | Self::Utf8z
            | Self::Utf8Counted
            | Self::VarInt
            | Self::VarUInt
            | Self::Array(..)
            | Self::Opaque => return None,
        })
    }
}

impl Schema {
    /// Returns the schema of an event that the stream defines: from the fields of the definition, or else from the built-in table.
    /// `pointer_size` is that of the process: 4 or 8 bytes.
    ///
    /// The definition's fields are ignored if many of them have no bytes. If the only field of an event is an unnamed object (as in
    /// `EventCounters`, and for `EventSource.Write`), the fields of that object are used.
    pub fn of(metadata: &Metadata, pointer_size: u32) -> Self {
        let native = native::find(&metadata.provider, metadata.event_id, &metadata.name, pointer_size);
        let (native_name, native_opcode, native_fields) = match native {
            Some(native) => (Some(native.name), native.opcode, Some(native.fields)),
            None => (None, None, None),
        };
        let named = !metadata.name.is_empty();
        let fields = if metadata.fields.is_empty() || weight::is_excessive(&metadata.fields) {
            native_fields
        } else {
            Some(Layout::new(unwrapped(fields(&metadata.fields, 0))))
        };
        // A self-describing event without fields has a name; native events have neither.
        let described = fields.is_some();
        let kinds = native::kinds(&metadata.provider, metadata.event_id, pointer_size);
        Self {
            name: if named { metadata.name.clone() } else { native_name.unwrap_or_default().to_owned() },
            opcode: metadata.opcode.or(native_opcode),
            fields: fields.unwrap_or_default(),
            described,
            named: words::find(&metadata.provider, metadata.event_id),
            kinds: kinds.into_iter().map(|(text, native)| (text, Self::of_kind(native))).collect(),
        }
    }

    fn of_kind(native: Native) -> Self {
        Self {
            name: native.name.to_owned(),
            opcode: native.opcode,
            fields: native.fields,
            described: true,
            ..Self::default()
        }
    }

    /// Returns the name in the definition, or `Task/Opcode` (`GC/Start`) for the runtime's native events. Empty if unknown.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the name, and those of the variants.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self).chain(self.kinds.iter().map(|(_, kind)| kind)).map(Self::name)
    }

    /// Returns the names of all top-level fields that payloads may have.
    pub(crate) fn field_names(&self) -> impl Iterator<Item = &str> {
        let schemas = std::iter::once(self).chain(self.kinds.iter().map(|(_, kind)| kind));
        schemas.flat_map(|schema| schema.fields.fields().iter().map(|field| &*field.name))
    }

    /// Returns the name in the form `Task/Opcode`, as used by `PerfView` and dotnet-trace: `RequestStart` is `Request/Start`.
    pub fn task_and_opcode(&self) -> String {
        match self.opcode {
            _ if self.name.contains('/') => self.name.clone(),
            None | Some(1 | 2) => {
                for end in ["Start", "Stop"] {
                    if let Some(task) = strip_end(&self.name, end)
                        && !task.is_empty()
                    {
                        return format!("{task}/{end}");
                    }
                }
                match self.opcode {
                    Some(1) => format!("{}/Start", self.name),
                    Some(2) => format!("{}/Stop", self.name),
                    _ => self.name.clone(),
                }
            }
            // Opcode 0 is Info, without a suffix.
            Some(0) => self.name.clone(),
            Some(opcode) => match opcode_name(opcode) {
                Some(opcode) => format!("{}/{opcode}", strip_end(&self.name, opcode).unwrap_or(&self.name)),
                None => format!("{}/{opcode}", self.name),
            },
        }
    }

    /// Returns the opcode from the definition or the table.
    pub fn opcode(&self) -> Option<u8> {
        self.opcode
    }

    /// Whether numbers in some fields have names.
    pub fn has_names(&self) -> bool {
        !self.named.is_empty()
    }

    /// Whether the fields are known. Otherwise only the bytes can be shown.
    pub fn is_described(&self) -> bool {
        self.described
    }
}

/// Returns `text` without the suffix `end` in any case.
fn strip_end<'a>(text: &'a str, end: &str) -> Option<&'a str> {
    let (task, rest) = text.split_at_checked(text.len().checked_sub(end.len())?)?;
    rest.eq_ignore_ascii_case(end).then_some(task)
}

/// Returns the name of an opcode that is common to all providers.
fn opcode_name(opcode: u8) -> Option<&'static str> {
    Some(match opcode {
        1 => "Start",
        2 => "Stop",
        3 => "DCStart",
        4 => "DCStop",
        5 => "Extension",
        6 => "Reply",
        7 => "Resume",
        8 => "Suspend",
        9 => "Send",
        240 => "Receive",
        _ => return None,
    })
}

fn fields(fields: &[Field], depth: u32) -> Vec<FieldDef> {
    let names = names::distinct(fields.iter().map(|field| field.name.as_str()));
    fields
        .iter()
        .zip(names)
        .map(|(field, name)| FieldDef::new(name, kind(&field.field_type, depth)))
        .collect()
}

/// Returns the encoding of a field type. `depth` 0 is a top-level field.
fn kind(field_type: &FieldType, depth: u32) -> FieldKind {
    let element = |inner: &FieldType| match inner {
        FieldType::Utf8Unit => Box::new(FieldKind::Utf8Unit),
        inner => Box::new(kind(inner, depth + 1)),
    };
    match field_type {
        FieldType::Object(fields) => {
            FieldKind::Object(Box::new(Layout::new(self::fields(fields, depth + 1))))
        }
        FieldType::Bool => FieldKind::Bool32,
        FieldType::Char => FieldKind::Char,
        FieldType::I8 => FieldKind::I8,
        FieldType::U8 => FieldKind::U8,
        FieldType::I16 => FieldKind::I16,
        FieldType::U16 => FieldKind::U16,
        FieldType::I32 => FieldKind::I32,
        FieldType::U32 => FieldKind::U32,
        FieldType::I64 => FieldKind::I64,
        FieldType::U64 => FieldKind::U64,
        FieldType::F32 => FieldKind::F32,
        FieldType::F64 => FieldKind::F64,
        FieldType::Decimal => FieldKind::Decimal,
        FieldType::DateTime => FieldKind::FileTime,
        FieldType::Guid => FieldKind::Guid,
        FieldType::String => FieldKind::Utf16z,
        FieldType::Array(inner) => FieldKind::Array(element(inner), Length::Counted),
        FieldType::FixedArray(inner, n) => FieldKind::Array(element(inner), Length::Fixed(*n)),
        FieldType::VarInt => FieldKind::VarInt,
        FieldType::VarUInt => FieldKind::VarUInt,
        FieldType::Bool8 => FieldKind::Bool8,
        // No known field is a single byte of text: the only known writer means a whole text.
        FieldType::Utf8Unit => FieldKind::Utf8Counted,
        // At deeper levels, many fields could refer to the same bytes.
        FieldType::RelLoc(inner) if depth == 0 => FieldKind::Located(element(inner), From::Field),
        FieldType::DataLoc(inner) if depth == 0 => FieldKind::Located(element(inner), From::Payload),
        _ => FieldKind::Opaque,
    }
}

/// Returns the fields of a single unnamed object. In `EventCounters` there are two such levels.
fn unwrapped(fields: Vec<FieldDef>) -> Vec<FieldDef> {
    match <[FieldDef; 1]>::try_from(fields) {
        Ok([FieldDef { name, kind: FieldKind::Object(inner), .. }]) if name.is_empty() => {
            match <[FieldDef; 1]>::try_from(inner.fields.into_vec()) {
                Ok([FieldDef { name, kind: FieldKind::Object(inner), .. }]) if &*name == "Payload" => {
                    inner.fields.into_vec()
                }
                Ok(other) => other.into(),
                Err(fields) => fields,
            }
        }
        Ok(other) => other.into(),
        Err(fields) => fields,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(name: &str, opcode: Option<u8>) -> Schema {
        let mut metadata = Metadata::new("P", 1, name);
        metadata.opcode = opcode;
        Schema::of(&metadata, 8)
    }

    #[test]
    fn tasks_and_opcodes() {
        for (name, opcode, shown) in [
            ("RequestStart", Some(1), "Request/Start"),
            ("RequestStop", None, "Request/Stop"),
            ("requeststop", Some(2), "request/Stop"),
            ("Request", Some(1), "Request/Start"),
            ("Start", None, "Start"),
            ("Tick", None, "Tick"),
            ("Tick", Some(0), "Tick"),
            ("Transfer", Some(9), "Transfer/Send"),
            ("TestEvent3", Some(24), "TestEvent3/24"),
        ] {
            assert_eq!(schema(name, opcode).task_and_opcode(), shown);
        }
        let native = Schema::of(&Metadata::new(crate::clr::RUNTIME, 1, ""), 8);
        assert_eq!(
            (native.name(), native.task_and_opcode().as_str(), native.opcode()),
            ("GC/Start", "GC/Start", Some(1))
        );
    }

    #[test]
    fn counters_are_unwrapped() {
        let n = || vec![Field::new("n", FieldType::I32)];
        let payload = vec![Field::new("Payload", FieldType::Object(n()))];
        for fields in [
            n(),
            vec![Field::new("", FieldType::Object(n()))],
            vec![Field::new("", FieldType::Object(payload))],
        ] {
            let mut metadata = Metadata::new("P", 1, "EventCounters");
            metadata.fields = fields;
            let schema = Schema::of(&metadata, 8);
            assert_eq!(schema.fields.fields(), [FieldDef::new("n", FieldKind::I32)]);
        }
    }
}

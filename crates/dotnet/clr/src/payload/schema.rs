//! How a payload is laid out, and what its event is called.

use runtap_nettrace::{Field, FieldType, Metadata};

use super::native::{self, Native};
use super::words::{self, Named};
use super::{names, weight};

/// The layout of an event's payload, and the event's name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Schema {
    pub(super) name: String,
    pub(super) opcode: Option<u8>,
    pub(super) fields: Layout,
    /// Whether anybody says what the fields are.
    pub(super) described: bool,
    /// Fields whose numbers have names.
    pub(super) named: Box<[Named]>,
    /// For events of which one is several: what they are, by the text that they begin with.
    pub(super) kinds: Box<[(&'static str, Self)]>,
}

/// Fields one after the other.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Layout {
    fields: Box<[FieldDef]>,
    /// The number of bytes, where it is always the same: not to be added up again for each payload.
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
    pub(super) kind: Kind,
    /// Whether a payload may end before it, because older versions did.
    pub(super) optional: bool,
    /// Where its value is kept as the length of an array that follows.
    pub(super) keep: Option<Slot>,
}

impl FieldDef {
    pub(super) fn new(name: impl Into<Box<str>>, kind: Kind) -> Self {
        Self { name: name.into(), kind, optional: false, keep: None }
    }
}

/// A place for the length of an array; more than this many lengths in one object nobody needs.
pub(super) type Slot = u8;
pub(super) const SLOTS: usize = 4;

/// How the bytes of a field are to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
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
    /// A `u16` number of bytes, then UTF-8.
    Utf8Counted,
    /// A byte of UTF-8, as the element of an array.
    Utf8Unit,
    /// LEB128, in zig-zag form.
    VarInt,
    /// LEB128.
    VarUInt,
    Guid,
    Decimal,
    FileTime,
    Object(Box<Layout>),
    Array(Box<Self>, Length),
    /// Elements elsewhere in the payload: place and size, the place counted from behind the field or from the payload's
    /// start.
    Located(Box<Self>, From),
    /// Nothing is known of its bytes, so that nothing behind it can be read.
    Opaque,
}

/// How many elements an array has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Length {
    /// Told by a `u16` in front of them.
    Counted,
    /// Told by an earlier field.
    Kept(Slot),
    /// Always the same.
    Fixed(u16),
}

/// Where a place is counted from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum From {
    Field,
    Payload,
}

impl Kind {
    /// The number of bytes, where it is always the same.
    pub(super) fn size(&self) -> Option<usize> {
        Some(match self {
            Self::I8 | Self::U8 | Self::Bool8 | Self::Utf8Unit => 1,
            Self::Char | Self::I16 | Self::U16 => 2,
            Self::Bool32 | Self::I32 | Self::U32 | Self::F32 | Self::Hex32 | Self::Located(..) => 4,
            Self::I64 | Self::U64 | Self::F64 | Self::Hex64 | Self::FileTime => 8,
            Self::Guid | Self::Decimal => 16,
            Self::Object(layout) => layout.size?,
            // Elements without bytes are refused where they are read.
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
    /// The schema of an event that the stream defines: by the definition's own fields, else by what is built in.
    /// `pointer_size` is that of the process: 4 bytes or 8.
    ///
    /// Fields of the definition count if few of them take no bytes. An event whose only field is an object without a name (`EventCounters`, and all that are written with
    /// `EventSource.Write`) is taken for that object.
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
        // A self-describing event without fields says so by its name; the native ones have neither.
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

    /// The name: that of the definition, or `Task/Opcode` (`GC/Start`) for the runtime's native events, which bring none.
    /// Empty where nobody knows it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name, and those of the events that it stands for.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self).chain(self.kinds.iter().map(|(_, kind)| kind)).map(Self::name)
    }

    /// The names of all fields that its payloads can have, without those inside objects.
    pub(crate) fn field_names(&self) -> impl Iterator<Item = &str> {
        let schemas = std::iter::once(self).chain(self.kinds.iter().map(|(_, kind)| kind));
        schemas.flat_map(|schema| schema.fields.fields().iter().map(|field| &*field.name))
    }

    /// `Task/Opcode`, as `PerfView` and dotnet-trace call the event: `RequestStart` is `Request/Start`.
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
            // Info and nothing in particular.
            Some(0) => self.name.clone(),
            Some(opcode) => match opcode_name(opcode) {
                Some(opcode) => format!("{}/{opcode}", strip_end(&self.name, opcode).unwrap_or(&self.name)),
                None => format!("{}/{opcode}", self.name),
            },
        }
    }

    /// The opcode, by the definition or by the table.
    pub fn opcode(&self) -> Option<u8> {
        self.opcode
    }

    /// Whether numbers of some fields have names.
    pub fn has_names(&self) -> bool {
        !self.named.is_empty()
    }

    /// Whether the fields are known. If not, a payload can only be shown as bytes.
    pub fn is_described(&self) -> bool {
        self.described
    }
}

/// `text` without `end` in any case.
fn strip_end<'a>(text: &'a str, end: &str) -> Option<&'a str> {
    let (task, rest) = text.split_at_checked(text.len().checked_sub(end.len())?)?;
    rest.eq_ignore_ascii_case(end).then_some(task)
}

/// The opcodes that have the same name for every provider.
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

/// `depth` 0 is a field of the payload itself.
fn kind(field_type: &FieldType, depth: u32) -> Kind {
    let element = |inner: &FieldType| match inner {
        FieldType::Utf8Unit => Box::new(Kind::Utf8Unit),
        inner => Box::new(kind(inner, depth + 1)),
    };
    match field_type {
        FieldType::Object(fields) => Kind::Object(Box::new(Layout::new(self::fields(fields, depth + 1)))),
        FieldType::Bool => Kind::Bool32,
        FieldType::Char => Kind::Char,
        FieldType::I8 => Kind::I8,
        FieldType::U8 => Kind::U8,
        FieldType::I16 => Kind::I16,
        FieldType::U16 => Kind::U16,
        FieldType::I32 => Kind::I32,
        FieldType::U32 => Kind::U32,
        FieldType::I64 => Kind::I64,
        FieldType::U64 => Kind::U64,
        FieldType::F32 => Kind::F32,
        FieldType::F64 => Kind::F64,
        FieldType::Decimal => Kind::Decimal,
        FieldType::DateTime => Kind::FileTime,
        FieldType::Guid => Kind::Guid,
        FieldType::String => Kind::Utf16z,
        FieldType::Array(inner) => Kind::Array(element(inner), Length::Counted),
        FieldType::FixedArray(inner, n) => Kind::Array(element(inner), Length::Fixed(*n)),
        FieldType::VarInt => Kind::VarInt,
        FieldType::VarUInt => Kind::VarUInt,
        FieldType::Bool8 => Kind::Bool8,
        // A single byte of text is no field that anybody has; the one known writer means a whole text.
        FieldType::Utf8Unit => Kind::Utf8Counted,
        // Deeper inside, many of them could point to the same bytes.
        FieldType::RelLoc(inner) if depth == 0 => Kind::Located(element(inner), From::Field),
        FieldType::DataLoc(inner) if depth == 0 => Kind::Located(element(inner), From::Payload),
        _ => Kind::Opaque,
    }
}

/// The fields of an only object that has no name, nor anything beside it; `EventCounters` has two of these around it.
fn unwrapped(fields: Vec<FieldDef>) -> Vec<FieldDef> {
    match <[FieldDef; 1]>::try_from(fields) {
        Ok([FieldDef { name, kind: Kind::Object(inner), .. }]) if name.is_empty() => {
            match <[FieldDef; 1]>::try_from(inner.fields.into_vec()) {
                Ok([FieldDef { name, kind: Kind::Object(inner), .. }]) if &*name == "Payload" => {
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
            assert_eq!(schema.fields.fields(), [FieldDef::new("n", Kind::I32)]);
        }
    }
}

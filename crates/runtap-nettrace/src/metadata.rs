//! Definitions of events: what a metadata id in an event header stands for.
//! Source: nettrace format, "metadata records". Does not decode payloads and knows no provider.

use runtap_wire::{DecodeError, DecodeErrorKind, Reader, Writer};

use crate::Limits;
use crate::table::IdTable;

/// Deepest nesting of field types that is followed; deeper ones cost the field list, not the event.
const MAX_DEPTH: u32 = 16;

/// The definition of an event.
///
/// Only [`Self::id`] is a key: provider, event id and version together are not unique, and one event may be defined
/// under several ids.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metadata {
    /// The number that event headers use in this stream.
    pub id: u32,
    /// Name of the provider, as `Microsoft-Windows-DotNETRuntime`.
    pub provider: String,
    /// Number of the event in its provider.
    pub event_id: u32,
    /// Name of the event; empty for the runtime's native providers, which bring no fields either.
    pub name: String,
    /// Keywords (categories) of the event, one bit each.
    pub keywords: u64,
    /// Version of the event: later ones append fields.
    pub version: u32,
    /// Level: 1 critical, 2 error, 3 warning, 4 informational, 5 verbose; 0 always.
    pub level: u32,
    /// Opcode, if the definition states one.
    pub opcode: Option<u8>,
    /// Fields of the payload in their order; empty if there are none, or the stream does not describe them.
    pub fields: Vec<Field>,
}

/// One field of a payload, or of an object in it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Field {
    /// Name of the field.
    pub name: String,
    /// How its bytes are to be read.
    pub field_type: FieldType,
}

impl Field {
    /// A field.
    pub fn new(name: impl Into<String>, field_type: FieldType) -> Self {
        Self { name: name.into(), field_type }
    }
}

/// How the bytes of a field are to be read; everything is little-endian and packed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldType {
    /// 1: fields one after the other.
    Object(Vec<Field>),
    /// 3: 4 bytes, 0 is false.
    Bool,
    /// 4: one UTF-16 unit.
    Char,
    /// 5: 1 byte.
    I8,
    /// 6: 1 byte.
    U8,
    /// 7: 2 bytes.
    I16,
    /// 8: 2 bytes.
    U16,
    /// 9: 4 bytes.
    I32,
    /// 10: 4 bytes.
    U32,
    /// 11: 8 bytes.
    I64,
    /// 12: 8 bytes.
    U64,
    /// 13: 4 bytes.
    F32,
    /// 14: 8 bytes.
    F64,
    /// 15: 16 bytes.
    Decimal,
    /// 16: 8 bytes, a Windows FILETIME (100 ns since 1601, UTC), whatever the format's document says.
    DateTime,
    /// 17: 16 bytes.
    Guid,
    /// 18: UTF-16 with a final NUL unit.
    String,
    /// 19: a `u16` count, then elements.
    Array(Box<Self>),
    /// A code that this reader does not know. The payload cannot be followed beyond such a field.
    Other(u32),
}

impl FieldType {
    pub(crate) const OBJECT: u32 = 1;
    pub(crate) const ARRAY: u32 = 19;

    /// The code on the wire.
    pub fn code(&self) -> u32 {
        match self {
            Self::Object(_) => Self::OBJECT,
            Self::Bool => 3,
            Self::Char => 4,
            Self::I8 => 5,
            Self::U8 => 6,
            Self::I16 => 7,
            Self::U16 => 8,
            Self::I32 => 9,
            Self::U32 => 10,
            Self::I64 => 11,
            Self::U64 => 12,
            Self::F32 => 13,
            Self::F64 => 14,
            Self::Decimal => 15,
            Self::DateTime => 16,
            Self::Guid => 17,
            Self::String => 18,
            Self::Array(_) => Self::ARRAY,
            Self::Other(code) => *code,
        }
    }

    /// Whether older readers could not find the end of such a field.
    fn needs_v2(&self) -> bool {
        match self {
            Self::Array(_) | Self::Other(_) => true,
            Self::Object(fields) => fields.iter().any(|field| field.field_type.needs_v2()),
            _ => false,
        }
    }

    fn encode(&self, layout: Layout, w: &mut Writer) -> Result<(), NulInName> {
        w.u32(self.code());
        match self {
            Self::Object(fields) => encode_fields(fields, layout, w),
            Self::Array(element) => element.encode(layout, w),
            _ => Ok(()),
        }
    }

    /// The type of a code that nothing follows on the wire.
    fn plain(code: u32) -> Self {
        match code {
            3 => Self::Bool,
            4 => Self::Char,
            5 => Self::I8,
            6 => Self::U8,
            7 => Self::I16,
            8 => Self::U16,
            9 => Self::I32,
            10 => Self::U32,
            11 => Self::I64,
            12 => Self::U64,
            13 => Self::F32,
            14 => Self::F64,
            15 => Self::Decimal,
            16 => Self::DateTime,
            17 => Self::Guid,
            18 => Self::String,
            other => Self::Other(other),
        }
    }
}

/// Kinds of the tags that may follow the fields.
pub(crate) mod tag {
    pub(crate) const OPCODE: u8 = 1;
    pub(crate) const V2_PARAMS: u8 = 2;
}

/// Two layouts of a list of fields: the second one can hold arrays.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// type, name
    V1,
    /// size, name, type
    V2,
}

/// A name that has a NUL in it cannot be written.
pub(crate) struct NulInName;

impl Metadata {
    /// A definition to be written: version 0, no keywords, level 4 (informational), no fields.
    pub fn new(provider: impl Into<String>, event_id: u32, name: impl Into<String>) -> Self {
        Self {
            id: 0,
            provider: provider.into(),
            event_id,
            name: name.into(),
            keywords: 0,
            version: 0,
            level: 4,
            opcode: None,
            fields: Vec::new(),
        }
    }

    /// Writes a record with the given id.
    pub(crate) fn encode(&self, id: u32, w: &mut Writer) -> Result<(), NulInName> {
        w.u32(id);
        name(&self.provider, w)?;
        w.u32(self.event_id);
        name(&self.name, w)?;
        w.u64(self.keywords).u32(self.version).u32(self.level);
        let v2 = self.fields.iter().any(|field| field.field_type.needs_v2());
        if v2 {
            w.u32(0);
        } else {
            encode_fields(&self.fields, Layout::V1, w)?;
        }
        if let Some(opcode) = self.opcode {
            w.u32(1).u8(tag::OPCODE).u8(opcode);
        }
        if v2 {
            let mut data = Writer::new();
            encode_fields(&self.fields, Layout::V2, &mut data)?;
            w.u32(len_u32(data.len())).u8(tag::V2_PARAMS).bytes(data.as_bytes());
        }
        Ok(())
    }

    /// Reads a record. Whatever is wrong behind the level costs fields and opcode only.
    pub(crate) fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut metadata = Self {
            id: r.u32("metadata id")?,
            provider: r.utf16z("provider name")?.to_string(),
            event_id: r.u32("event id")?,
            name: r.utf16z("event name")?.to_string(),
            keywords: r.u64("keywords")?,
            version: r.u32("event version")?,
            level: r.u32("event level")?,
            opcode: None,
            fields: Vec::new(),
        };
        if metadata.extras(r).is_err() {
            metadata.fields.clear();
        }
        Ok(metadata)
    }

    /// The fields and the tags, each of which may be missing.
    fn extras(&mut self, r: &mut Reader<'_>) -> Result<(), DecodeError> {
        if r.is_empty() {
            return Ok(());
        }
        self.fields = fields(r, Layout::V1, 0)?;
        while !r.is_empty() {
            let size = r.u32("tag size")?;
            let kind = r.u8("tag kind")?;
            let mut data = r.sub(usize::try_from(size).unwrap_or(usize::MAX), "tag")?;
            match kind {
                tag::OPCODE => self.opcode = Some(data.u8("opcode")?),
                tag::V2_PARAMS => self.fields = fields(&mut data, Layout::V2, 0)?,
                _ => {}
            }
        }
        Ok(())
    }
}

fn fields(r: &mut Reader<'_>, layout: Layout, depth: u32) -> Result<Vec<Field>, DecodeError> {
    let count = r.u32("field count")?;
    // No allocation by the count: a field takes several bytes on the wire, so that this ends with them.
    let mut fields = Vec::new();
    for _ in 0..count {
        fields.push(match layout {
            Layout::V1 => {
                let field_type = field_type(r, layout, depth)?;
                if matches!(field_type, FieldType::Other(_)) {
                    // Without a size, the next field cannot be found.
                    return Err(r.error("field type", DecodeErrorKind::Invalid("is not known")));
                }
                Field { name: r.utf16z("field name")?.to_string(), field_type }
            }
            Layout::V2 => {
                let size = r.u32("field size")?.saturating_sub(4);
                let mut r = r.sub(usize::try_from(size).unwrap_or(usize::MAX), "field")?;
                let name = r.utf16z("field name")?.to_string();
                Field { name, field_type: field_type(&mut r, layout, depth)? }
            }
        });
    }
    Ok(fields)
}

fn field_type(r: &mut Reader<'_>, layout: Layout, depth: u32) -> Result<FieldType, DecodeError> {
    if depth > MAX_DEPTH {
        return Err(r.error("field type", DecodeErrorKind::Invalid("is nested too deeply")));
    }
    Ok(match r.u32("field type")? {
        FieldType::OBJECT => FieldType::Object(fields(r, layout, depth + 1)?),
        FieldType::ARRAY => FieldType::Array(Box::new(field_type(r, layout, depth + 1)?)),
        code => FieldType::plain(code),
    })
}

fn encode_fields(fields: &[Field], layout: Layout, w: &mut Writer) -> Result<(), NulInName> {
    w.u32(len_u32(fields.len()));
    for field in fields {
        match layout {
            Layout::V1 => {
                field.field_type.encode(layout, w)?;
                name(&field.name, w)?;
            }
            Layout::V2 => {
                let start = w.len();
                w.u32(0);
                name(&field.name, w)?;
                field.field_type.encode(layout, w)?;
                w.patch_u32(start, len_u32(w.len() - start));
            }
        }
    }
    Ok(())
}

fn name(name: &str, w: &mut Writer) -> Result<(), NulInName> {
    if name.contains('\0') {
        return Err(NulInName);
    }
    w.utf16z(name);
    Ok(())
}

/// Longer than that is refused by whoever writes the record.
fn len_u32(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

/// All definitions of a stream by id; the last one of an id counts.
#[derive(Debug, Default)]
pub(crate) struct MetadataTable {
    /// Each with its size on the wire.
    records: IdTable<(Metadata, usize)>,
    bytes: usize,
}

impl MetadataTable {
    #[inline]
    pub(crate) fn get(&self, id: u32) -> Option<&Metadata> {
        self.records.get(id).map(|(metadata, _)| metadata)
    }

    /// Adds a definition that took `size` bytes; the result says whether its id was defined before.
    pub(crate) fn insert(
        &mut self,
        metadata: Metadata,
        size: usize,
        limits: &Limits,
    ) -> Result<bool, DecodeErrorKind> {
        let known = self.get(metadata.id).is_some();
        for (value, limit) in [
            (self.records.len() + usize::from(!known), limits.max_metadata),
            (self.bytes + size, limits.max_metadata_bytes),
        ] {
            if value > limit {
                return Err(DecodeErrorKind::TooLarge { value: value as u64, limit: limit as u64 });
            }
        }
        let old = self.records.insert(metadata.id, (metadata, size));
        self.bytes = self.bytes + size - old.map_or(0, |(_, size)| size);
        Ok(known)
    }
}

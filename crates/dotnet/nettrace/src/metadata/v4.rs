//! Definitions in Nettrace 4, including the tags of "version 5", and in `NetPerf` 3.
//! Source: nettrace format, "metadata records".

use std::borrow::Cow;

use runtap_wire::{DecodeError, DecodeErrorKind, Reader, Writer};

use super::{Field, FieldType, MAX_DEPTH, Metadata, Unwritable, code};

/// The kinds of tags that may follow the fields.
pub(crate) mod tag {
    /// Unused.
    pub(crate) const NONE: u8 = 0;
    pub(crate) const OPCODE: u8 = 1;
    pub(crate) const V2_PARAMS: u8 = 2;
}

/// The two encodings of a field list; only the second one supports arrays.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// type, name
    V1,
    /// size, name, type
    V2,
}

impl Metadata {
    /// Writes a record of Nettrace 4 with this id.
    pub(crate) fn encode_v4(&self, id: u32, w: &mut Writer) -> Result<(), Unwritable> {
        w.u32(id);
        name(&self.provider, w)?;
        w.u32(self.event_id);
        name(&self.name, w)?;
        w.u64(self.keywords).u32(self.version).u32(self.level);
        let v2 = self.fields.iter().any(|field| needs_v2(&field.field_type));
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

    /// Reads a record of Nettrace 4. Damage after the level loses only fields and opcode.
    pub(crate) fn decode_v4(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut metadata = Self::decode_head_v4(r)?;
        if metadata.extras(r).is_err() {
            metadata.fields.clear();
        }
        Ok(metadata)
    }

    /// Reads a record, and returns it in a form that readers without damage handling can read: unchanged, or with equal
    /// length and without fields and opcode if they are damaged.
    pub(crate) fn repair_v4(record: &[u8], offset: u64) -> Result<(Self, Cow<'_, [u8]>), DecodeError> {
        let mut r = Reader::at(record, offset);
        let mut metadata = Self::decode_head_v4(&mut r)?;
        let (head, rest) = record.split_at_checked(record.len() - r.remaining()).unwrap_or((record, &[]));
        if metadata.extras(&mut r).and_then(|()| tags_are_plain(rest, offset)).is_ok() {
            return Ok((metadata, record.into()));
        }
        metadata.fields.clear();
        let mut repaired = Writer::new();
        // No fields; the rest becomes one tag of an unknown kind.
        repaired.bytes(head).u32(0);
        match rest.len() {
            4 => {}
            long @ 9.. => {
                repaired.u32(len_u32(long - 9)).u8(tag::NONE).bytes(&vec![0; long - 9]);
            }
            // No tag fits. Readers without damage handling may reject the record; this reader loses no event.
            _ => return Ok((metadata, record.into())),
        }
        Ok((metadata, repaired.into_bytes().into()))
    }

    /// Reads the mandatory part of a record.
    fn decode_head_v4(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let id = r.u32("metadata id")?;
        let provider = r.utf16z("provider name")?.to_string();
        let event_id = r.u32("event id")?;
        let name = r.utf16z("event name")?.to_string();
        let mut metadata = Self::new(provider, event_id, name);
        metadata.id = id;
        metadata.keywords = r.u64("keywords")?;
        metadata.version = r.u32("event version")?;
        metadata.level = r.u32("event level")?;
        Ok(metadata)
    }

    /// Reads the fields and the tags, which are optional.
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

/// Checks that the data after the level is encoded as usual: readers that ignore the size of a tag fail otherwise.
fn tags_are_plain(extras: &[u8], offset: u64) -> Result<(), DecodeError> {
    let mut r = Reader::at(extras, offset);
    if r.is_empty() {
        return Ok(());
    }
    fields(&mut r, Layout::V1, 0)?;
    while !r.is_empty() {
        let size = r.u32("tag size")?;
        let kind = r.u8("tag kind")?;
        let mut data = r.sub(usize::try_from(size).unwrap_or(usize::MAX), "tag")?;
        match kind {
            tag::OPCODE => drop(data.u8("opcode")?),
            tag::V2_PARAMS => drop(fields(&mut data, Layout::V2, 0)?),
            // The placeholder that a repair writes.
            tag::NONE if data.rest().iter().all(|byte| *byte == 0) => continue,
            _ => return Err(data.error("tag kind", DecodeErrorKind::Invalid("is not known"))),
        }
        if !data.is_empty() {
            return Err(data.error("tag", DecodeErrorKind::Invalid("is longer than what it holds")));
        }
    }
    Ok(())
}

/// Reads the fields in the encoding of `NetPerf`.
pub(super) fn fields_v1(r: &mut Reader<'_>) -> Result<Vec<Field>, DecodeError> {
    fields(r, Layout::V1, 0)
}

fn fields(r: &mut Reader<'_>, layout: Layout, depth: u32) -> Result<Vec<Field>, DecodeError> {
    let count = r.u32("field count")?;
    // Do not allocate by the count: it is untrusted, and the loop ends with the bytes.
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
        code::OBJECT => FieldType::Object(fields(r, layout, depth + 1)?),
        code::ARRAY => FieldType::Array(Box::new(field_type(r, layout, depth + 1)?)),
        code => FieldType::plain(code),
    })
}

/// Returns whether older readers cannot find the end of a field of this type.
fn needs_v2(field_type: &FieldType) -> bool {
    match field_type {
        FieldType::Array(_) | FieldType::Other(_) => true,
        FieldType::Object(fields) => fields.iter().any(|field| needs_v2(&field.field_type)),
        _ => false,
    }
}

fn encode_type(field_type: &FieldType, layout: Layout, w: &mut Writer) -> Result<(), Unwritable> {
    w.u32(field_type.code());
    match field_type {
        FieldType::Object(fields) => encode_fields(fields, layout, w),
        FieldType::Array(element) => encode_type(element, layout, w),
        FieldType::VarInt
        | FieldType::VarUInt
        | FieldType::FixedArray(..)
        | FieldType::Utf8Unit
        | FieldType::RelLoc(_)
        | FieldType::DataLoc(_)
        | FieldType::Bool8 => Err(Unwritable::Type(field_type.code())),
        _ => Ok(()),
    }
}

fn encode_fields(fields: &[Field], layout: Layout, w: &mut Writer) -> Result<(), Unwritable> {
    w.u32(len_u32(fields.len()));
    for field in fields {
        match layout {
            Layout::V1 => {
                encode_type(&field.field_type, layout, w)?;
                name(&field.name, w)?;
            }
            Layout::V2 => {
                let start = w.len();
                w.u32(0);
                name(&field.name, w)?;
                encode_type(&field.field_type, layout, w)?;
                w.patch_u32(start, len_u32(w.len() - start));
            }
        }
    }
    Ok(())
}

fn name(name: &str, w: &mut Writer) -> Result<(), Unwritable> {
    if name.contains('\0') {
        return Err(Unwritable::Nul);
    }
    w.utf16z(name);
    Ok(())
}

/// Saturates; the caller rejects such long records.
fn len_u32(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

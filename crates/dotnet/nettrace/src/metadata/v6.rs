//! Definitions in Nettrace 6. Source: nettrace format, "metadata rows".

use std::borrow::Cow;

use runtap_wire::{DecodeError, DecodeErrorKind, Reader, Writer};

use super::{Field, FieldType, MAX_DEPTH, Metadata, Unwritable, code};
use crate::text::{string, write_string};

/// Kinds of the optional items of a row.
mod item {
    pub(super) const OPCODE: u8 = 1;
    pub(super) const KEYWORDS: u8 = 3;
    pub(super) const MESSAGE_TEMPLATE: u8 = 4;
    pub(super) const DESCRIPTION: u8 = 5;
    pub(super) const KEY_VALUE: u8 = 6;
    pub(super) const PROVIDER_GUID: u8 = 7;
    pub(super) const LEVEL: u8 = 8;
    pub(super) const VERSION: u8 = 9;
}

impl Metadata {
    /// Reads a row of Nettrace 6, without the size before it. Damage after the name loses only the damaged part.
    pub(crate) fn decode_v6(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut metadata = Self::decode_head_v6(r)?;
        let _ = metadata.extras_v6(r);
        Ok(metadata)
    }

    /// Reads a row, and returns it in a form that readers without damage handling can read: unchanged, or with equal length
    /// and without fields and optional items if they are damaged.
    pub(crate) fn repair_v6(row: &[u8], offset: u64) -> Result<(Self, Cow<'_, [u8]>), DecodeError> {
        let mut r = Reader::at(row, offset);
        let mut metadata = Self::decode_head_v6(&mut r)?;
        let head = row.len() - r.remaining();
        let Err(error) = metadata.extras_v6(&mut r) else { return Ok((metadata, row.into())) };
        let mut repaired = row.to_vec();
        // No fields and no items; readers skip the rest of the row.
        match repaired.get_mut(head..head + 4) {
            Some(sizes) => sizes.fill(0),
            None => return Err(error),
        }
        metadata.fields.clear();
        Ok((metadata, repaired.into()))
    }

    /// Reads the mandatory part of a row.
    fn decode_head_v6(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let id = r.varu32("metadata id")?;
        let provider = string(r, "provider name")?.into_owned();
        let event_id = r.varu32("event id")?;
        let name = string(r, "event name")?.into_owned();
        let mut metadata = Self::new(provider, event_id, name);
        metadata.id = id;
        metadata.level = 0;
        Ok(metadata)
    }

    /// Reads the fields and the optional items, and keeps those before the damage.
    fn extras_v6(&mut self, r: &mut Reader<'_>) -> Result<(), DecodeError> {
        // The end of damaged fields is unknown.
        self.fields = fields(r, 0)?;
        if r.is_empty() {
            return Ok(());
        }
        let size = r.u16("size of the optional items")?;
        self.items(&mut r.sub(usize::from(size), "optional items")?)
    }

    fn items(&mut self, r: &mut Reader<'_>) -> Result<(), DecodeError> {
        while !r.is_empty() {
            match r.u8("kind of an optional item")? {
                item::OPCODE => self.opcode = Some(r.u8("opcode")?),
                item::KEYWORDS => self.keywords = r.u64("keywords")?,
                item::MESSAGE_TEMPLATE => {
                    self.message_template = Some(string(r, "message template")?.into_owned());
                }
                item::DESCRIPTION => self.description = Some(string(r, "description")?.into_owned()),
                item::KEY_VALUE => {
                    let key = string(r, "name of an attribute")?.into_owned();
                    self.attributes.push((key, string(r, "value of an attribute")?.into_owned()));
                }
                item::PROVIDER_GUID => self.provider_guid = Some(r.guid("provider GUID")?),
                item::LEVEL => self.level = r.u8("event level")?.into(),
                item::VERSION => self.version = r.u8("event version")?.into(),
                // The length of an unknown item is unknown.
                _ => return Ok(()),
            }
        }
        Ok(())
    }

    /// Writes a row of Nettrace 6 with this id, preceded by its size. Default values are omitted.
    pub(crate) fn encode_v6(&self, id: u32, w: &mut Writer) -> Result<(), Unwritable> {
        let mut row = Writer::new();
        row.varu32(id);
        write_string(&self.provider, &mut row);
        row.varu32(self.event_id);
        write_string(&self.name, &mut row);
        encode_fields(&self.fields, &mut row)?;
        let mut items = Writer::new();
        if let Some(opcode) = self.opcode {
            items.u8(item::OPCODE).u8(opcode);
        }
        if self.keywords != 0 {
            items.u8(item::KEYWORDS).u64(self.keywords);
        }
        for (kind, text) in
            [(item::MESSAGE_TEMPLATE, &self.message_template), (item::DESCRIPTION, &self.description)]
        {
            if let Some(text) = text {
                write_string(text, items.u8(kind));
            }
        }
        for (key, value) in &self.attributes {
            write_string(key, items.u8(item::KEY_VALUE));
            write_string(value, &mut items);
        }
        if let Some(guid) = self.provider_guid {
            items.u8(item::PROVIDER_GUID).guid(guid);
        }
        for (kind, value) in [(item::LEVEL, self.level), (item::VERSION, self.version)] {
            if value != 0 {
                items.u8(kind).u8(u8::try_from(value).map_err(|_wide| Unwritable::TooLong)?);
            }
        }
        sized(&items, &mut row)?;
        sized(&row, w)
    }
}

/// Writes the bytes of `part`, preceded by their number.
fn sized(part: &Writer, w: &mut Writer) -> Result<(), Unwritable> {
    w.u16(u16::try_from(part.len()).map_err(|_long| Unwritable::TooLong)?).bytes(part.as_bytes());
    Ok(())
}

fn fields(r: &mut Reader<'_>, depth: u32) -> Result<Vec<Field>, DecodeError> {
    let count = r.u16("field count")?;
    let mut fields = Vec::new();
    for _ in 0..count {
        let size = r.u16("field size")?;
        let mut field = r.sub(usize::from(size), "field")?;
        let name = string(&mut field, "field name")?.into_owned();
        fields.push(Field { name, field_type: field_type(&mut field, depth)? });
    }
    Ok(fields)
}

fn field_type(r: &mut Reader<'_>, depth: u32) -> Result<FieldType, DecodeError> {
    if depth > MAX_DEPTH {
        return Err(r.error("field type", DecodeErrorKind::Invalid("is nested too deeply")));
    }
    let element = |r: &mut Reader<'_>| Ok(Box::new(field_type(r, depth + 1)?));
    Ok(match u32::from(r.u8("field type")?) {
        code::OBJECT => FieldType::Object(fields(r, depth + 1)?),
        code::ARRAY => FieldType::Array(element(r)?),
        code::FIXED_ARRAY => {
            let element = element(r)?;
            FieldType::FixedArray(element, r.u16("array length")?)
        }
        code::REL_LOC => FieldType::RelLoc(element(r)?),
        code::DATA_LOC => FieldType::DataLoc(element(r)?),
        code => FieldType::plain_v6(code),
    })
}

fn encode_fields(fields: &[Field], w: &mut Writer) -> Result<(), Unwritable> {
    w.u16(u16::try_from(fields.len()).map_err(|_many| Unwritable::TooLong)?);
    for field in fields {
        let mut part = Writer::new();
        write_string(&field.name, &mut part);
        encode_type(&field.field_type, &mut part)?;
        sized(&part, w)?;
    }
    Ok(())
}

fn encode_type(field_type: &FieldType, w: &mut Writer) -> Result<(), Unwritable> {
    let code = field_type.code();
    w.u8(u8::try_from(code).map_err(|_wide| Unwritable::Type(code))?);
    match field_type {
        FieldType::Object(fields) => encode_fields(fields, w),
        FieldType::Array(element) | FieldType::RelLoc(element) | FieldType::DataLoc(element) => {
            encode_type(element, w)
        }
        FieldType::FixedArray(element, length) => {
            encode_type(element, w)?;
            w.u16(*length);
            Ok(())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use runtap_wire::Uuid;

    use super::*;

    fn row(metadata: &Metadata, id: u32) -> Vec<u8> {
        let mut w = Writer::new();
        assert!(metadata.encode_v6(id, &mut w).is_ok());
        w.into_bytes()
    }

    /// A row written by one-collect's `record-trace`.
    #[test]
    fn a_real_row() {
        let bytes = b"\x24\0\x01\x10Universal.Events\x01\x03cpu\x01\0\x07\0\x05Value\x15\0\0";
        let metadata = Metadata::decode_v6(&mut Reader::new(&bytes[2..])).unwrap();
        assert_eq!((metadata.id, metadata.event_id, metadata.name.as_str()), (1, 1, "cpu"));
        assert_eq!(metadata.provider, "Universal.Events");
        assert_eq!(metadata.fields, [Field::new("Value", FieldType::VarUInt)]);
        assert_eq!((metadata.level, metadata.version, metadata.keywords, metadata.opcode), (0, 0, 0, None));
        assert_eq!(row(&metadata, 1), bytes);
    }

    #[test]
    fn definitions_round_trip() {
        let mut metadata = Metadata::new("P", 300, "N");
        (metadata.id, metadata.keywords, metadata.version, metadata.level) = (70_000, 1 << 63, 255, 5);
        metadata.opcode = Some(9);
        metadata.description = Some("what it means".into());
        metadata.message_template = Some("{a}".into());
        metadata.attributes = vec![("k".into(), "v".into()), ("k".into(), String::new())];
        metadata.provider_guid = Some(Uuid::from_u128(77));
        let element = || Box::new(FieldType::Utf8Unit);
        metadata.fields = vec![
            Field::new("s", FieldType::Array(element())),
            Field::new("f", FieldType::FixedArray(Box::new(FieldType::Object(vec![])), 70)),
            Field::new("r", FieldType::RelLoc(element())),
            Field::new("d", FieldType::DataLoc(element())),
            Field::new("b", FieldType::Bool8),
            Field::new("o", FieldType::Object(vec![Field::new("é", FieldType::VarInt)])),
            Field::new("?", FieldType::Other(200)),
        ];
        let bytes = row(&metadata, 70_000);
        assert_eq!(Metadata::decode_v6(&mut Reader::new(&bytes[2..])).unwrap(), metadata);
        for n in 2..bytes.len() {
            // The number, the provider and the event id are in the first 9 bytes.
            let cut = Metadata::decode_v6(&mut Reader::new(&bytes[2..n]));
            assert_eq!(cut.is_err(), n < 11, "{n}");
        }
    }

    #[test]
    fn slack_and_unknown_items_are_left_out() {
        let mut w = Writer::new();
        w.varu32(1).u8(0).varu32(2).u8(0);
        w.u16(1).u16(9).u8(1).u8(b'x').u8(9).bytes(b"slack!");
        w.u16(5).u8(8).u8(3).u8(99).u8(9).u8(7).bytes(b"more");
        let metadata = Metadata::decode_v6(&mut Reader::new(w.as_bytes())).unwrap();
        assert_eq!(metadata.fields, [Field::new("x", FieldType::I32)]);
        assert_eq!((metadata.level, metadata.version), (3, 0));
    }

    #[test]
    fn oversized_definitions_are_rejected() {
        let mut metadata = Metadata::new("P", 1, "x".repeat(70_000));
        assert!(matches!(metadata.encode_v6(1, &mut Writer::new()), Err(Unwritable::TooLong)));
        metadata.name.clear();
        metadata.version = 256;
        assert!(matches!(metadata.encode_v6(1, &mut Writer::new()), Err(Unwritable::TooLong)));
        metadata.version = 0;
        metadata.fields = vec![Field::new("x", FieldType::Other(256))];
        assert!(matches!(metadata.encode_v6(1, &mut Writer::new()), Err(Unwritable::Type(256))));
    }
}

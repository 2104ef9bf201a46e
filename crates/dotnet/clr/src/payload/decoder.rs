//! Maps the events of a stream to their schemas.

use std::borrow::Cow;

use super::words::NamedField;
use super::{Fields, Schema, Value};
use runtap_nettrace::{Event, IdTable, Metadata, Observe, StreamItem};

/// Knows the schema of every event of a stream. Must be passed every item that is not an event.
#[derive(Debug, Clone)]
pub struct Decoder {
    schemas: IdTable<Box<Schema>>,
    /// The schemas of events that stand for several events, which depend on the payload.
    several: IdTable<Box<Schema>>,
    pointer_size: u32,
    unknown: Schema,
}

impl Default for Decoder {
    fn default() -> Self {
        Self {
            schemas: IdTable::default(),
            several: IdTable::default(),
            pointer_size: 8,
            unknown: Schema::default(),
        }
    }
}

impl Decoder {
    /// Creates a decoder, which assumes a 64-bit process until the stream's header is processed.
    pub fn new() -> Self {
        Self::default()
    }

    fn define(&mut self, metadata: &Metadata) {
        let schema = Box::new(Schema::of(metadata, self.pointer_size));
        if schema.kinds.is_empty() {
            self.several.remove(metadata.id);
            self.schemas.insert(metadata.id, schema);
        } else {
            self.schemas.remove(metadata.id);
            self.several.insert(metadata.id, schema);
        }
    }

    /// Returns the schema of an event. It has no name and no fields if the stream does not define the event.
    #[inline]
    pub fn schema(&self, event: &Event<'_>) -> &Schema {
        self.schema_of(event.metadata_id)
    }

    /// Returns the schema of events with this metadata id.
    #[inline]
    pub(crate) fn schema_of(&self, id: u32) -> &Schema {
        self.schemas.get(id).or_else(|| self.several.get(id)).map_or(&self.unknown, |schema| schema)
    }

    /// Returns an event's payload with its schema.
    #[inline]
    pub fn payload<'a>(&'a self, event: &Event<'a>) -> Payload<'a> {
        self.payload_of(event.metadata_id, event.payload)
    }

    /// Returns the payload of an event by its metadata id, for callers without an [`Event`].
    #[inline]
    pub fn payload_of<'a>(&'a self, metadata_id: u32, bytes: &'a [u8]) -> Payload<'a> {
        match self.schemas.get(metadata_id) {
            Some(schema) => Payload::new(schema, bytes),
            None => self.rare_payload(metadata_id, bytes),
        }
    }

    #[cold]
    fn rare_payload<'a>(&'a self, metadata_id: u32, bytes: &'a [u8]) -> Payload<'a> {
        match self.several.get(metadata_id) {
            Some(schema) => Payload::of_kind(schema, bytes),
            None => Payload::new(&self.unknown, bytes),
        }
    }
}

impl Observe for Decoder {
    #[inline]
    fn item(&mut self, item: &StreamItem<'_>) {
        match item {
            StreamItem::Header(header) => self.pointer_size = header.pointer_size,
            StreamItem::Metadata(metadata) => self.define(metadata),
            // All events with the old definitions have been read.
            StreamItem::SequencePoint(point) if point.flushes_metadata() => {
                self.schemas.clear();
                self.several.clear();
            }
            _ => {}
        }
    }
}

/// A payload with its schema.
#[derive(Debug, Clone, Copy)]
pub struct Payload<'a> {
    schema: &'a Schema,
    bytes: &'a [u8],
}

impl<'a> Payload<'a> {
    /// Creates a payload with its schema.
    #[inline]
    pub fn new(schema: &'a Schema, bytes: &'a [u8]) -> Self {
        Self { schema, bytes }
    }

    /// Selects the schema by the payload, for an event that stands for several events.
    fn of_kind(schema: &'a Schema, bytes: &'a [u8]) -> Self {
        let general = Self::new(schema, bytes);
        let text = match general.fields().next() {
            Some(Ok((_, value))) => value.as_text(),
            _ => None,
        };
        let kind = schema.kinds.iter().find(|(known, _)| Some(*known) == text.as_deref());
        let kind = kind.map(|(_, schema)| Self::new(schema, bytes));
        // A later runtime may send fields that differ from the table.
        kind.filter(|it| it.fields().all(|field| field.is_ok())).unwrap_or(general)
    }

    /// Returns the schema.
    pub fn schema(&self) -> &'a Schema {
        self.schema
    }

    /// Returns the bytes.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns all fields in order.
    #[inline]
    pub fn fields(&self) -> Fields<'a> {
        Fields::new(self.schema.fields.fields(), self.bytes)
    }

    /// Returns the value of a field. `None` if it does not exist or can't be read.
    pub fn get(&self, name: &str) -> Option<Value<'a>> {
        self.fields().get(name)
    }

    /// Returns the names of the numbers in some fields, such as `Reason`. A part of `MethodFlags` is named `OptimizationTier`.
    /// Unknown numbers have no names.
    pub fn names(&self) -> impl Iterator<Item = (&'static str, Cow<'static, str>)> + use<'a> {
        let Self { schema, bytes } = *self;
        let of = move |named: &NamedField| {
            let value = Self::new(schema, bytes).get(named.field)?;
            Some((named.shown, named.of(&value)?))
        };
        schema.named.iter().filter_map(of)
    }

    /// Returns the name of a field's number, if it has one.
    pub fn name(&self, field: &str) -> Option<Cow<'static, str>> {
        self.names().find(|(shown, _)| *shown == field).map(|(_, name)| name)
    }

    /// Returns the value of a field as an unsigned integer.
    pub fn u64(&self, name: &str) -> Option<u64> {
        self.get(name)?.as_u64()
    }

    /// Returns the value of a field as a floating-point number.
    pub fn f64(&self, name: &str) -> Option<f64> {
        self.get(name)?.as_f64()
    }

    /// Returns the value of a field as text.
    pub fn text(&self, name: &str) -> Option<String> {
        self.get(name)?.as_text()
    }
}

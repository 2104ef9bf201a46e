//! The schemas of a stream: which one an event has.

use std::borrow::Cow;

use super::words::Named;
use super::{Fields, Schema, Value};
use runtap_nettrace::{Event, IdTable, Item, Metadata, Observe};

/// Knows the schema of every event of a stream: show it every item that is no event.
#[derive(Debug, Clone)]
pub struct Decoder {
    schemas: IdTable<Box<Schema>>,
    /// Those of events of which one is several, which have to be looked at each time.
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
    /// A decoder for a 64-bit process until the stream's header says something else.
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

    /// The schema of an event; one without name and fields where the stream does not define it.
    #[inline]
    pub fn schema(&self, event: &Event<'_>) -> &Schema {
        self.schema_of(event.metadata_id)
    }

    /// The schema of events with this metadata id.
    #[inline]
    pub(crate) fn schema_of(&self, id: u32) -> &Schema {
        self.schemas.get(id).or_else(|| self.several.get(id)).map_or(&self.unknown, |schema| schema)
    }

    /// An event's payload with its schema.
    #[inline]
    pub fn payload<'a>(&'a self, event: &Event<'a>) -> Payload<'a> {
        self.payload_of(event.metadata_id, event.payload)
    }

    /// The payload of an event by its metadata id, with its schema: for those who have put no whole event together.
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
    fn item(&mut self, item: &Item<'_>) {
        match item {
            Item::Header(header) => self.pointer_size = header.pointer_size,
            Item::Metadata(metadata) => self.define(metadata),
            // Events of the old ones are read by now, and no more than a reader holds is held here.
            Item::SequencePoint(point) if point.flushes_metadata() => {
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
    /// A payload and what it is to be read by.
    #[inline]
    pub fn new(schema: &'a Schema, bytes: &'a [u8]) -> Self {
        Self { schema, bytes }
    }

    /// For events of which one is several: by the schema of the one that it is.
    fn of_kind(schema: &'a Schema, bytes: &'a [u8]) -> Self {
        let general = Self::new(schema, bytes);
        let text = match general.fields().next() {
            Some(Ok((_, value))) => value.as_text(),
            _ => None,
        };
        let kind = schema.kinds.iter().find(|(known, _)| Some(*known) == text.as_deref());
        let kind = kind.map(|(_, schema)| Self::new(schema, bytes));
        // What the table has need not be what a later runtime sends.
        kind.filter(|it| it.fields().all(|field| field.is_ok())).unwrap_or(general)
    }

    /// The schema.
    pub fn schema(&self) -> &'a Schema {
        self.schema
    }

    /// The bytes.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// All fields in their order.
    #[inline]
    pub fn fields(&self) -> Fields<'a> {
        Fields::new(self.schema.fields.fields(), self.bytes)
    }

    /// A field by its name; `None` where there is none, or it can't be read.
    pub fn get(&self, name: &str) -> Option<Value<'a>> {
        self.fields().get(name)
    }

    /// What the numbers of some fields mean: `Reason` and `Induced`. `MethodFlags` has a part of its own, which is called
    /// `OptimizationTier`. No names for numbers that nobody knows.
    pub fn names(&self) -> impl Iterator<Item = (&'static str, Cow<'static, str>)> + use<'a> {
        let Self { schema, bytes } = *self;
        let of = move |named: &Named| {
            let value = Self::new(schema, bytes).get(named.field)?;
            Some((named.shown, named.of(&value)?))
        };
        schema.named.iter().filter_map(of)
    }

    /// The names of a field's number, if it has any.
    pub fn name(&self, field: &str) -> Option<Cow<'static, str>> {
        self.names().find(|(shown, _)| *shown == field).map(|(_, name)| name)
    }

    /// A field that is an integer.
    pub fn u64(&self, name: &str) -> Option<u64> {
        self.get(name)?.as_u64()
    }

    /// A field that is a number.
    pub fn f64(&self, name: &str) -> Option<f64> {
        self.get(name)?.as_f64()
    }

    /// A field that is text.
    pub fn text(&self, name: &str) -> Option<String> {
        self.get(name)?.as_text()
    }
}

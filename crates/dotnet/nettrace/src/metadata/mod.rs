//! Definitions of events: what a metadata id in an event header stands for. Does not decode payloads and knows no
//! provider; how definitions lie in a stream is the business of the other files.

mod field;
mod netperf;
mod table;
mod v4;
mod v6;

use runtap_wire::{DecodeErrorKind, Uuid};

pub(crate) use self::field::code;
pub use self::field::{Field, FieldType};
pub(crate) use self::table::MetadataTable;

/// Deepest nesting of field types that is followed; deeper ones cost the field list, not the event.
const MAX_DEPTH: u32 = 16;

/// What is wrong with an id that no definition has.
pub(crate) const UNDEFINED: DecodeErrorKind = DecodeErrorKind::Invalid("no definition has it");

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
    /// The provider's GUID, where the definition states it (Nettrace 6, `NetPerf` 1).
    pub provider_guid: Option<Uuid>,
    /// What the event means, in words (Nettrace 6).
    pub description: Option<String>,
    /// A text with places for the fields (Nettrace 6).
    pub message_template: Option<String>,
    /// More that the definition says, as names and values (Nettrace 6).
    pub attributes: Vec<(String, String)>,
}

/// Why a definition cannot be written.
pub(crate) enum Unwritable {
    /// Names end with the first NUL, so that they cannot have one.
    Nul,
    /// The version of the format has no such field type.
    Type(u32),
    /// A name or a list is longer than its length field can tell, or a number wider than its field.
    TooLong,
}

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
            provider_guid: None,
            description: None,
            message_template: None,
            attributes: Vec::new(),
        }
    }
}

impl Metadata {
    /// What it takes in memory besides its texts, about.
    fn overhead(&self) -> usize {
        fn of_fields(fields: &[Field]) -> usize {
            fields.iter().map(|field| size_of::<Field>() + of_type(&field.field_type)).sum()
        }
        fn of_type(field_type: &FieldType) -> usize {
            match field_type {
                FieldType::Object(fields) => of_fields(fields),
                FieldType::Array(element)
                | FieldType::FixedArray(element, _)
                | FieldType::RelLoc(element)
                | FieldType::DataLoc(element) => size_of::<FieldType>() + of_type(element),
                _ => 0,
            }
        }
        let attributes = self.attributes.len() * size_of::<(String, String)>();
        size_of::<Self>() + of_fields(&self.fields) + attributes
    }
}

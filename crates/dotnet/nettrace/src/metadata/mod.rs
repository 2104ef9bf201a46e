//! Definitions of events, which metadata ids in event headers refer to. The other files decode definitions of the
//! different versions.

mod field;
mod netperf;
mod table;
mod v4;
mod v6;

use runtap_wire::{DecodeErrorKind, Uuid};

pub(crate) use self::field::code;
pub use self::field::{Field, FieldType};
pub(crate) use self::table::MetadataTable;

/// The deepest nesting of field types that is decoded; a deeper one loses the field list, not the event.
const MAX_DEPTH: u32 = 16;

/// The error of an id without a definition.
pub(crate) const UNDEFINED: DecodeErrorKind = DecodeErrorKind::Invalid("no definition has it");

/// The definition of an event.
///
/// Only [`Self::id`] is a unique key: provider, event id and version together are not unique, and one event may have
/// several definitions.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metadata {
    /// The id that event headers use in this stream.
    pub id: u32,
    /// The name of the provider, for example `Microsoft-Windows-DotNETRuntime`.
    pub provider: String,
    /// The number of the event in its provider.
    pub event_id: u32,
    /// The name of the event; empty for the runtime's native providers, which describe no fields either.
    pub name: String,
    /// The keywords (categories) of the event, one bit each.
    pub keywords: u64,
    /// The version of the event: later versions append fields.
    pub version: u32,
    /// Level: 1 critical, 2 error, 3 warning, 4 informational, 5 verbose; 0 always.
    pub level: u32,
    /// The opcode. `None` if the definition states none.
    pub opcode: Option<u8>,
    /// The fields of the payload in order; empty if there are none, or if the stream does not describe them.
    pub fields: Vec<Field>,
    /// The provider's GUID. `None` if not stated (only in Nettrace 6 and `NetPerf` 1).
    pub provider_guid: Option<Uuid>,
    /// A description of the event in words (Nettrace 6).
    pub description: Option<String>,
    /// A message text with placeholders for the fields (Nettrace 6).
    pub message_template: Option<String>,
    /// Further names and values (Nettrace 6).
    pub attributes: Vec<(String, String)>,
}

/// The reason why a definition cannot be encoded.
pub(crate) enum Unwritable {
    /// A name contains a NUL, which ends names.
    Nul,
    /// The version of the format does not support a field type.
    Type(u32),
    /// A name or a list is too long for its length field, or a number is too large for its field.
    TooLong,
}

impl Metadata {
    /// Creates a definition to write: version 0, no keywords, level 4 (informational), no fields.
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
    /// Returns the approximate memory besides the texts, in bytes.
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

//! The fields of each envelope as data: their ids, names and types, for those who show frames without knowing messages.

/// An envelope: its fields in the order in which hosts write them.
#[derive(Debug)]
pub(crate) struct Schema {
    pub(crate) fields: &'static [FieldSpec],
}

/// One field of an envelope.
#[derive(Debug)]
pub(crate) struct FieldSpec {
    pub(crate) id: u16,
    /// The name in the sources of Microsoft.Testing.Platform.
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
}

/// What the value of a field is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    /// UTF-8 of the field's size.
    Text,
    /// One byte, not 0 is true.
    Bool,
    /// One byte, with the names of its values.
    Code(fn(u8) -> Option<&'static str>),
    /// `i32`.
    Int,
    /// `i64`.
    Long,
    /// `i32` count, then for each an `i32` length and UTF-8.
    Texts,
    /// `i32` count, then that many envelopes.
    List(&'static Schema),
}

impl Schema {
    pub(crate) fn field(&self, id: u16) -> Option<&FieldSpec> {
        self.fields.iter().find(|field| field.id == id)
    }
}

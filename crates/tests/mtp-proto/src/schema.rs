//! The fields of each envelope as data: ids, names and types, used to render frames.

/// An envelope: its fields in the order in which hosts write them.
#[derive(Debug)]
pub(crate) struct Schema {
    pub(crate) fields: &'static [FieldSpec],
}

/// A field of an envelope.
#[derive(Debug)]
pub(crate) struct FieldSpec {
    pub(crate) id: u16,
    /// The name in the sources of Microsoft.Testing.Platform.
    pub(crate) name: &'static str,
    pub(crate) kind: FieldKind,
}

/// The type of a field's value.
#[derive(Debug, Clone, Copy)]
pub(crate) enum FieldKind {
    /// UTF-8 text of the field's size.
    Text,
    /// One byte; any value except 0 is true.
    Bool,
    /// One byte with named values; the function returns the name.
    Code(fn(u8) -> Option<&'static str>),
    /// `i32`.
    Int,
    /// `i64`.
    Long,
    /// An `i32` count, then an `i32` length and UTF-8 text for each element.
    Texts,
    /// An `i32` count, then the envelopes.
    List(&'static Schema),
}

impl Schema {
    pub(crate) fn field(&self, id: u16) -> Option<&FieldSpec> {
        self.fields.iter().find(|field| field.id == id)
    }
}

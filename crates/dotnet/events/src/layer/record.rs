//! Recorded field values of `tracing`, as the payload of an event or as text by name.

use std::error::Error;
use std::fmt::{self, Debug, Display};

use runtap_diag_server::FieldType;
use tracing::field::{Field, Visit};

use crate::payload::{Payload, Value};

/// The name of the field with the text of an event.
pub(super) const MESSAGE: &str = "message";

/// The most fields of an event of `tracing`.
const MAX_FIELDS: usize = 32;

/// The type of a recorded value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub(super) enum Type {
    #[default]
    Text,
    I64,
    U64,
    F64,
    Bool,
}

impl Type {
    fn field_type(self) -> FieldType {
        match self {
            Self::Text => FieldType::String,
            Self::I64 => FieldType::I64,
            Self::U64 => FieldType::U64,
            Self::F64 => FieldType::F64,
            Self::Bool => FieldType::Bool,
        }
    }
}

/// The recorded fields and their types, in the order of their values in the payload.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Recorded {
    fields: [(u8, Type); MAX_FIELDS],
    count: usize,
}

impl Recorded {
    /// Returns a visitor that appends values to `payload`.
    pub(super) fn visitor<'a>(&'a mut self, payload: &'a mut Payload) -> Recorder<'a> {
        Recorder { recorded: self, payload }
    }

    /// Appends fields that were recorded later. Returns `false` without a change if there is not enough space for all.
    pub(super) fn append(&mut self, later: &Self) -> bool {
        let Some(fields) = self.fields.get_mut(self.count..self.count + later.count) else { return false };
        for (field, new) in fields.iter_mut().zip(&later.fields) {
            *field = *new;
        }
        self.count += later.count;
        true
    }

    /// Returns the indexes in the callsite's set of fields, with types.
    pub(super) fn fields(&self) -> impl Iterator<Item = (usize, FieldType)> {
        let fields = self.fields.iter().take(self.count);
        fields.map(|(index, kind)| (usize::from(*index), kind.field_type()))
    }
}

/// A visitor that appends values to a payload.
pub(super) struct Recorder<'a> {
    recorded: &'a mut Recorded,
    payload: &'a mut Payload,
}

impl Recorder<'_> {
    /// Records a field and returns whether there is space for it.
    fn note(&mut self, field: &Field, kind: Type) -> bool {
        let index = u8::try_from(field.index()).unwrap_or(u8::MAX);
        match self.recorded.fields.get_mut(self.recorded.count) {
            Some(place) => {
                *place = (index, kind);
                self.recorded.count += 1;
                true
            }
            None => false,
        }
    }

    fn value(&mut self, field: &Field, kind: Type, value: &(impl Value + ?Sized)) {
        if self.note(field, kind) {
            self.payload.push(value);
        }
    }

    fn text(&mut self, field: &Field, value: impl Display) {
        if self.note(field, Type::Text) {
            self.payload.display(value);
        }
    }
}

impl Visit for Recorder<'_> {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.value(field, Type::F64, &value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.value(field, Type::I64, &value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.value(field, Type::U64, &value);
    }

    fn record_i128(&mut self, field: &Field, value: i128) {
        self.text(field, value);
    }

    fn record_u128(&mut self, field: &Field, value: u128) {
        self.text(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.value(field, Type::Bool, &value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.value(field, Type::Text, value);
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.text(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.text(field, DebugValue(value));
    }
}

/// A visitor that calls a function with the name and text of each value.
pub(super) struct NamedValues<F>(pub(super) F);

impl<F: FnMut(&str, &dyn Display)> Visit for NamedValues<F> {
    fn record_f64(&mut self, field: &Field, value: f64) {
        (self.0)(field.name(), &value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        (self.0)(field.name(), &value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        (self.0)(field.name(), &value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        (self.0)(field.name(), &value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        (self.0)(field.name(), &value);
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        (self.0)(field.name(), &value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        (self.0)(field.name(), &DebugValue(value));
    }
}

struct DebugValue<'a>(&'a dyn Debug);

impl Display for DebugValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

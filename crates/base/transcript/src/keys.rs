//! Typed access to the keys of a line. Keys that are not taken out are kept.

use serde_json::{Map, Value};

use crate::error::Problem;
use crate::hex;

/// The remaining keys of a line.
pub(crate) struct Keys(pub(crate) Map<String, Value>);

impl Keys {
    /// Takes out an optional value. A null is kept, so that it is written again.
    fn optional<T>(
        &mut self,
        field: &'static str,
        expected: &'static str,
        convert: impl FnOnce(Value) -> Result<T, Value>,
    ) -> Result<Option<T>, Problem> {
        match self.0.remove(field) {
            None => Ok(None),
            Some(Value::Null) => {
                self.0.insert(field.to_owned(), Value::Null);
                Ok(None)
            }
            Some(value) => convert(value).map(Some).map_err(|value| Problem::Type {
                field,
                found: type_of(&value),
                expected,
            }),
        }
    }

    pub(crate) fn text(&mut self, field: &'static str) -> Result<Option<String>, Problem> {
        self.optional(field, "a string", |value| match value {
            Value::String(text) => Ok(text),
            other => Err(other),
        })
    }

    pub(crate) fn required_text(&mut self, field: &'static str) -> Result<String, Problem> {
        self.text(field)?.ok_or(Problem::Missing { field })
    }

    pub(crate) fn integer(&mut self, field: &'static str) -> Result<Option<i64>, Problem> {
        self.optional(field, "an integer", |value| value.as_i64().ok_or(value))
    }

    /// Takes out the time, which must not be negative.
    pub(crate) fn time(&mut self) -> Result<f64, Problem> {
        let is_time = |t: &f64| t.is_finite() && *t >= 0.0;
        let time =
            self.optional("t", "a time in seconds", |value| value.as_f64().filter(is_time).ok_or(value))?;
        time.ok_or(Problem::Missing { field: "t" })
    }

    pub(crate) fn bytes(&mut self, field: &'static str) -> Result<Option<Vec<u8>>, Problem> {
        let Some(text) = self.text(field)? else { return Ok(None) };
        hex::decode(&text).map(Some).map_err(|at| Problem::Hex { field, at })
    }

    pub(crate) fn list<T>(
        &mut self,
        field: &'static str,
        expected: &'static str,
        item: impl Fn(&Value) -> Option<T>,
    ) -> Result<Option<Vec<T>>, Problem> {
        self.optional(field, expected, |value| {
            value.as_array().and_then(|items| items.iter().map(&item).collect()).ok_or(value)
        })
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "another number",
        Value::String(_) => "a string",
        Value::Array(_) => "another list",
        Value::Object(_) => "an object",
    }
}

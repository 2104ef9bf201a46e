//! The fields of a frame as a transcript lists them.

use runtap_mtp_proto::render::{Field as Shown, FieldValue, Rendering};
use runtap_transcript::Field;
use serde_json::Value;

/// The maximum number of values of a frame that are listed; a line with more would be too long to be read.
const MAX_VALUES: usize = 10_000;

/// Returns the fields of a frame for a line of a recording; `None` if there are too many.
pub(crate) fn listed(rendering: &Rendering) -> Option<Vec<Field>> {
    let mut left = MAX_VALUES;
    let fields = rendering.fields.iter().map(|field| {
        let value = value(&field.value, &mut left)?;
        Some(Field { id: field.id.into(), name: field.name.unwrap_or("?").to_owned(), value })
    });
    fields.collect()
}

/// Converts a value to JSON: a list of envelopes becomes a list of `[id, name, value]`, bytes become hexadecimal digits.
fn value(shown: &FieldValue, left: &mut usize) -> Option<Value> {
    *left = left.checked_sub(1)?;
    Some(match shown {
        FieldValue::Text(text) => Value::from(text.as_str()),
        FieldValue::Bool(value) => Value::from(*value),
        FieldValue::Code(value, _) => Value::from(*value),
        FieldValue::Int(value) => Value::from(*value),
        FieldValue::Texts(texts) => {
            *left = left.checked_sub(texts.len())?;
            Value::from(texts.clone())
        }
        FieldValue::List(elements) => {
            let mut all = Vec::new();
            for element in elements {
                *left = left.checked_sub(1)?;
                let fields = element.iter().map(|field| triple(field, left));
                all.push(fields.collect::<Option<Value>>()?);
            }
            Value::from(all)
        }
        FieldValue::Bytes(bytes) => Value::from(runtap_transcript::to_hex(bytes)),
        _ => Value::Null,
    })
}

fn triple(field: &Shown, left: &mut usize) -> Option<Value> {
    let name = field.name.unwrap_or("?");
    Some(Value::from(vec![field.id.into(), name.into(), value(&field.value, left)?]))
}

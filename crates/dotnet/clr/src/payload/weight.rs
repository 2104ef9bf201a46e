//! Limits the fields that take no bytes of a payload.
//!
//! A definition occurs once, but events of one byte may occur a million times. Thousands of fields without bytes would make each of
//! them as slow and as long as the definition.

use runtap_nettrace::{Field, FieldType};

use crate::shown::LONGEST_NAME;

/// The maximum weight of fields without bytes in a definition. Real definitions have hardly any. Each byte of an array may repeat
/// all of them in its line.
const MAX_WEIGHT: usize = 512;
/// The weight of a field without its name.
const FIELD_WEIGHT: usize = 32;

/// Whether a definition has too many fields without bytes.
pub(super) fn is_excessive(fields: &[Field]) -> bool {
    let mut weight = 0;
    paid_in(fields, &mut weight);
    weight > MAX_WEIGHT
}

/// Returns how many parts of an object take bytes in every payload, and adds the weight of those that take none of their own: empty
/// ones, and objects around a single part.
fn paid_in(fields: &[Field], weight: &mut usize) -> usize {
    let mut sum = 0_usize;
    for field in fields {
        let parts = paid(&field.field_type, weight);
        if parts == 0 || parts == 1 && is_around_objects(&field.field_type) {
            *weight = weight.saturating_add(FIELD_WEIGHT + field.name.len().min(LONGEST_NAME));
        }
        sum = sum.saturating_add(parts);
    }
    sum
}

fn paid(field_type: &FieldType, weight: &mut usize) -> usize {
    match field_type {
        FieldType::Object(fields) => paid_in(fields, weight),
        FieldType::FixedArray(element, n) => paid(element, weight).saturating_mul(usize::from(*n)),
        // Each element takes bytes, so their number is bounded by the payload.
        FieldType::Array(element) | FieldType::RelLoc(element) | FieldType::DataLoc(element) => {
            paid(element, weight);
            1
        }
        _ => 1,
    }
}

fn is_around_objects(field_type: &FieldType) -> bool {
    match field_type {
        FieldType::Object(_) => true,
        FieldType::FixedArray(element, _) => is_around_objects(element),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(field_type: &FieldType, n: usize) -> bool {
        is_excessive(&vec![Field::new("", field_type.clone()); n])
    }

    #[test]
    fn fields_without_bytes_are_limited() {
        let empty = || FieldType::Object(Vec::new());
        let around = |inner| FieldType::Object(vec![Field::new("", inner)]);
        let fixed = |inner, n| FieldType::FixedArray(Box::new(inner), n);
        for (field_type, most) in [
            (empty(), 16),
            (fixed(FieldType::String, 0), 16),
            (fixed(empty(), 9), 16),
            (around(empty()), 8),
            (around(FieldType::U8), 16),
            (around(around(FieldType::U8)), 8),
            (fixed(around(FieldType::Bool8), 1), 16),
            (FieldType::Array(Box::new(around(empty()))), 16),
            (FieldType::DataLoc(Box::new(around(fixed(FieldType::U8, 0)))), 16),
        ] {
            assert_eq!((of(&field_type, most), of(&field_type, most + 1)), (false, true), "{field_type:?}");
        }
        let pair = FieldType::Object(vec![Field::new("a", FieldType::U8), Field::new("b", FieldType::U8)]);
        for field_type in
            [FieldType::U8, FieldType::String, FieldType::VarUInt, fixed(FieldType::U8, 1), pair]
        {
            assert!(!of(&field_type, 10_000), "{field_type:?}");
        }
    }

    #[test]
    fn long_names_weigh_more() {
        let empty = |name: &str| Field::new(name, FieldType::Object(Vec::new()));
        assert!(!is_excessive(&vec![empty(&"x".repeat(60_000)); 1]));
        assert!(is_excessive(&vec![empty(&"x".repeat(60_000)); 2]));
    }
}

//! Any bytes as the payload of an event that is known by its id (first two bytes), or of a self-describing event (types
//! up to a 0): no panic, no field after an error, and no more values than bytes allow.
#![no_main]

use runtap_clr::payload::{Fields, Payload, Schema, Value};
use runtap_nettrace::{Field, FieldType, Metadata};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some(([low, high], rest)) = input.split_first_chunk() else { return };
    let provider =
        ["Microsoft-Windows-DotNETRuntime", "Microsoft-Windows-DotNETRuntimeRundown"][usize::from(high & 1)];
    let id = u32::from(*low) + 256 * u32::from(high >> 1 & 1);
    look(&Metadata::new(provider, id, ""), rest);
    let types = rest.split(|byte| *byte == 0).next().unwrap_or_default();
    let mut metadata = Metadata::new("P", 1, "E");
    metadata.fields = fields(&mut types[..types.len().min(24)].iter(), 0);
    look(&metadata, &rest[types.len()..]);
});

fn look(metadata: &Metadata, bytes: &[u8]) {
    for pointer_size in [4, 8] {
        let schema = Schema::of(metadata, pointer_size);
        let fields = Payload::new(&schema, bytes).fields();
        let mut visited = 0;
        fields.clone().for_each(|field| visited += usize::from(field.is_ok()));
        assert_eq!(visited, fields.clone().filter(Result::is_ok).count());
        let values = count(fields);
        assert!(values <= 128 * (bytes.len() + 8), "{values} values of {} bytes", bytes.len());
    }
}

fn count(fields: Fields<'_>) -> usize {
    let mut fields = fields.fuse();
    let n = fields.by_ref().map_while(Result::ok).map(|(_, value)| one(value)).sum();
    assert!(fields.next().is_none());
    n
}

fn one(value: Value<'_>) -> usize {
    1 + match value {
        Value::Object(object) => count(object.fields()),
        Value::Array(elements) => elements.map(one).sum(),
        _ => 0,
    }
}

fn fields(codes: &mut std::slice::Iter<'_, u8>, depth: u32) -> Vec<Field> {
    let mut all = Vec::new();
    while let Some(code) = codes.next().filter(|code| **code != 255) {
        all.push(Field::new("f", field_type(*code, codes, depth)));
    }
    all
}

fn field_type(code: u8, codes: &mut std::slice::Iter<'_, u8>, depth: u32) -> FieldType {
    match code % 27 {
        1 if depth < 8 => FieldType::Object(fields(codes, depth + 1)),
        19 if depth < 8 => {
            let element = *codes.next().unwrap_or(&0);
            FieldType::Array(Box::new(field_type(element, codes, depth + 1)))
        }
        22 if depth < 8 => {
            let (n, element) = (*codes.next().unwrap_or(&0), *codes.next().unwrap_or(&0));
            FieldType::FixedArray(Box::new(field_type(element, codes, depth + 1)), u16::from(n))
        }
        24 | 25 if depth < 8 => {
            let element = *codes.next().unwrap_or(&0);
            let element = Box::new(field_type(element, codes, depth + 1));
            if code % 27 == 24 { FieldType::RelLoc(element) } else { FieldType::DataLoc(element) }
        }
        20 => FieldType::VarInt,
        21 => FieldType::VarUInt,
        23 => FieldType::Utf8Unit,
        26 => FieldType::Bool8,
        3 => FieldType::Bool,
        4 => FieldType::Char,
        6 => FieldType::U8,
        7 => FieldType::I16,
        12 => FieldType::U64,
        15 => FieldType::Decimal,
        17 => FieldType::Guid,
        18 => FieldType::String,
        _ => FieldType::I32,
    }
}

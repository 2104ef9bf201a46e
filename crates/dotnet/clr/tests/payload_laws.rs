//! Properties of payloads: values round-trip, a truncated payload gives the fields before the truncation, and arbitrary data neither
//! panics nor takes long.

use std::collections::HashSet;

use proptest::prelude::*;
use runtap_clr::payload::{Fields, Payload, PayloadError, Schema, Value};
use runtap_nettrace::{Field, FieldType, Metadata};
use runtap_wire::Writer;

/// A type with a value: the encoding, and the expected result.
#[derive(Debug, Clone)]
enum Made {
    Bool(bool),
    I16(i16),
    U32(u32),
    I64(i64),
    F64(f64),
    Guid([u8; 16]),
    Text(String),
    Time(u64),
    Numbers(Vec<u16>),
    Texts(Vec<String>),
    Objects(Vec<(i32, String)>),
    Object(Vec<Self>),
}

impl Made {
    fn field_type(&self) -> FieldType {
        match self {
            Self::Bool(_) => FieldType::Bool,
            Self::I16(_) => FieldType::I16,
            Self::U32(_) => FieldType::U32,
            Self::I64(_) => FieldType::I64,
            Self::F64(_) => FieldType::F64,
            Self::Guid(_) => FieldType::Guid,
            Self::Text(_) => FieldType::String,
            Self::Time(_) => FieldType::DateTime,
            Self::Numbers(_) => FieldType::Array(Box::new(FieldType::U16)),
            Self::Texts(_) => FieldType::Array(Box::new(FieldType::String)),
            Self::Objects(_) => FieldType::Array(Box::new(FieldType::Object(vec![
                Field::new("n", FieldType::I32),
                Field::new("s", FieldType::String),
            ]))),
            Self::Object(fields) => FieldType::Object(fields_of(fields)),
        }
    }

    fn write(&self, w: &mut Writer) {
        let count = |n: usize| u16::try_from(n).unwrap();
        match self {
            Self::Bool(value) => _ = w.u32(u32::from(*value)),
            Self::I16(value) => _ = w.i16(*value),
            Self::U32(value) => _ = w.u32(*value),
            Self::I64(value) => _ = w.i64(*value),
            Self::F64(value) => _ = w.f64(*value),
            Self::Guid(value) => _ = w.bytes(value),
            Self::Text(value) => _ = w.utf16z(value),
            Self::Time(value) => _ = w.u64(*value),
            Self::Numbers(values) => {
                w.u16(count(values.len()));
                for value in values {
                    w.u16(*value);
                }
            }
            Self::Texts(values) => {
                w.u16(count(values.len()));
                for value in values {
                    w.utf16z(value);
                }
            }
            Self::Objects(values) => {
                w.u16(count(values.len()));
                for (n, s) in values {
                    w.i32(*n).utf16z(s);
                }
            }
            Self::Object(fields) => {
                for field in fields {
                    field.write(w);
                }
            }
        }
    }

    fn is(&self, read: Value<'_>) -> bool {
        match (self, read) {
            (Self::Bool(made), Value::Bool(read)) => *made == read,
            (Self::I16(made), Value::Int(read)) => i64::from(*made) == read,
            (Self::U32(made), Value::UInt(read)) => u64::from(*made) == read,
            (Self::I64(made), Value::Int(read)) => *made == read,
            (Self::F64(made), Value::F64(read)) => made.to_bits() == read.to_bits(),
            (Self::Guid(made), Value::Guid(read)) => *made == read.to_bytes_le(),
            (Self::Text(made), Value::Utf16(read)) => read == *made.as_str(),
            (Self::Time(made), Value::Time(read)) => *made == read.0,
            (Self::Numbers(made), Value::Array(read)) => {
                made.len() == read.len()
                    && made.iter().zip(read).all(|(made, read)| read.as_u64() == Some((*made).into()))
            }
            (Self::Texts(made), Value::Array(read)) => {
                made.len() == read.len()
                    && made.iter().zip(read).all(|(made, read)| read.as_text().as_ref() == Some(made))
            }
            (Self::Objects(made), Value::Array(read)) => {
                made.len() == read.len()
                    && made.iter().zip(read.objects()).all(|((n, s), read)| {
                        read.get("n").and_then(|n| n.as_i64()) == Some((*n).into())
                            && read.get("s").and_then(|s| s.as_text()).as_ref() == Some(s)
                    })
            }
            (Self::Object(made), Value::Object(read)) => all_are(made, read.fields()),
            _ => false,
        }
    }
}

fn all_are(made: &[Made], read: Fields<'_>) -> bool {
    let read: Vec<_> = read.map(Result::unwrap).collect();
    made.len() == read.len() && made.iter().zip(read).all(|(made, (_, read))| made.is(read))
}

fn fields_of(made: &[Made]) -> Vec<Field> {
    made.iter().enumerate().map(|(i, made)| Field::new(format!("f{i}"), made.field_type())).collect()
}

fn bytes_of(made: &[Made]) -> Vec<u8> {
    let mut w = Writer::new();
    for field in made {
        field.write(&mut w);
    }
    w.into_bytes()
}

fn made() -> impl Strategy<Value = Made> {
    let text = || "[^\0]{0,6}";
    let plain = prop_oneof![
        any::<bool>().prop_map(Made::Bool),
        any::<i16>().prop_map(Made::I16),
        any::<u32>().prop_map(Made::U32),
        any::<i64>().prop_map(Made::I64),
        any::<f64>().prop_map(Made::F64),
        any::<[u8; 16]>().prop_map(Made::Guid),
        text().prop_map(Made::Text),
        any::<u64>().prop_map(Made::Time),
        prop::collection::vec(any::<u16>(), 0..4).prop_map(Made::Numbers),
        prop::collection::vec(text(), 0..4).prop_map(Made::Texts),
        prop::collection::vec((any::<i32>(), text()), 0..4).prop_map(Made::Objects),
    ];
    plain.prop_recursive(3, 12, 4, |inner| prop::collection::vec(inner, 1..4).prop_map(Made::Object))
}

fn schema_of(fields: Vec<Field>, pointer_size: u32) -> Schema {
    let mut metadata = Metadata::new("P", 1, "E");
    metadata.fields = fields;
    Schema::of(&metadata, pointer_size)
}

fn any_type() -> impl Strategy<Value = FieldType> {
    let plain = prop_oneof![
        Just(FieldType::Bool),
        Just(FieldType::Char),
        Just(FieldType::U8),
        Just(FieldType::I64),
        Just(FieldType::Decimal),
        Just(FieldType::String),
        Just(FieldType::Object(Vec::new())),
        Just(FieldType::VarInt),
        Just(FieldType::Utf8Unit),
        any::<u32>().prop_map(FieldType::Other),
    ];
    plain.prop_recursive(6, 24, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(|element| FieldType::Array(Box::new(element))),
            inner.clone().prop_map(|element| FieldType::DataLoc(Box::new(element))),
            inner.clone().prop_map(|element| FieldType::RelLoc(Box::new(element))),
            (inner.clone(), any::<u16>())
                .prop_map(|(element, n)| FieldType::FixedArray(Box::new(element), n % 5)),
            prop::collection::vec(inner, 0..3)
                .prop_map(|types| FieldType::Object(types.into_iter().map(|t| Field::new("f", t)).collect())),
        ]
    })
}

/// Visits everything. Returns the number of values.
fn walk(fields: Fields<'_>) -> (usize, Option<PayloadError>) {
    fn count(value: Value<'_>) -> usize {
        1 + match value {
            Value::Object(object) => {
                let (n, error) = walk(object.fields());
                assert_eq!(error, None, "it was walked over when it was handed out");
                n
            }
            Value::Array(elements) => {
                let promised = elements.len();
                let sizes: Vec<usize> = elements.map(count).collect();
                assert_eq!(sizes.len(), promised);
                sizes.into_iter().sum()
            }
            _ => 0,
        }
    }
    let (mut n, mut failed) = (0, None);
    let (mut visited, mut names) = (Vec::new(), HashSet::new());
    fields.clone().for_each(|field| visited.push(format!("{field:?}")));
    assert_eq!(fields.clone().map(|field| format!("{field:?}")).collect::<Vec<_>>(), visited);
    for field in fields {
        assert_eq!(failed, None, "nothing comes after an error");
        match field {
            Ok((name, one)) => {
                assert!(names.insert(name), "no two fields of an object have the same name: {name}");
                n += count(one);
            }
            Err(error) => failed = Some(error),
        }
    }
    (n, failed)
}

proptest! {
    #[test]
    fn values_round_trip(made in prop::collection::vec(made(), 2..6), newer in prop::collection::vec(any::<u8>(), 0..5)) {
        let schema = schema_of(fields_of(&made), 8);
        // A newer version appends fields.
        let mut bytes = bytes_of(&made);
        bytes.extend_from_slice(&newer);
        let payload = Payload::new(&schema, &bytes);
        prop_assert!(all_are(&made, payload.fields()));
        let mut fields = payload.fields();
        fields.by_ref().for_each(drop);
        prop_assert_eq!(fields.rest(), newer);
    }

    #[test]
    fn a_truncated_payload_gives_the_fields_before_the_truncation(made in prop::collection::vec(made(), 2..6)) {
        let schema = schema_of(fields_of(&made), 8);
        let bytes = bytes_of(&made);
        for n in 0..bytes.len() {
            let mut read = 0;
            for (field, made) in Payload::new(&schema, &bytes[..n]).fields().zip(&made) {
                match field {
                    Ok((_, value)) => prop_assert!(made.is(value)),
                    Err(error) => {
                        prop_assert!(error.offset <= n as u64, "{error}");
                        prop_assert!(error.field.starts_with(&format!("f{read}")), "{error}");
                        break;
                    }
                }
                read += 1;
            }
            prop_assert!(read < made.len());
        }
    }

    #[test]
    fn any_bytes_with_any_schema_terminate_soon(types in prop::collection::vec(any_type(), 0..5), bytes: Vec<u8>, four: bool) {
        let types = types.into_iter().map(|t| Field::new("f", t)).collect();
        let schema = schema_of(types, if four { 4 } else { 8 });
        let (values, _) = walk(Payload::new(&schema, &bytes).fields());
        // Each value has at least one byte, or is an object or array with or without values.
        prop_assert!(values <= 64 * (bytes.len() + 8), "{values} values of {} bytes", bytes.len());
    }

    #[test]
    fn any_bytes_for_runtime_events_terminate_soon(id in 0u32..310, bytes: Vec<u8>, four: bool) {
        for provider in ["Microsoft-Windows-DotNETRuntime", "Microsoft-Windows-DotNETRuntimeRundown"] {
            let schema = Schema::of(&Metadata::new(provider, id, ""), if four { 4 } else { 8 });
            let (values, _) = walk(Payload::new(&schema, &bytes).fields());
            prop_assert!(values <= bytes.len() + 8);
        }
    }
}

#[test]
fn lengths_without_bytes_are_rejected() {
    let nothing = FieldType::Array(Box::new(FieldType::Object(Vec::new())));
    for field_type in [nothing.clone(), FieldType::Array(Box::new(nothing))] {
        let schema = schema_of(vec![Field::new("f", field_type)], 8);
        let error = Payload::new(&schema, &[0xff; 4]).fields().next().unwrap().unwrap_err();
        assert!(error.to_string().contains("without bytes"), "{error}");
    }
    // BulkType states its number of types.
    let schema = Schema::of(&Metadata::new("Microsoft-Windows-DotNETRuntime", 15, ""), 8);
    let mut fields = Payload::new(&schema, &[0xff; 40]).fields();
    let error = fields.find_map(Result::err).unwrap();
    assert_eq!(error.to_string(), "Values[0].Name at offset 31 of the payload: needs 11 bytes, 9 are left");
}

/// Types that only Nettrace 6 can describe.
#[test]
fn newer_types() {
    let text = FieldType::Array(Box::new(FieldType::Utf8Unit));
    let numbers = FieldType::DataLoc(Box::new(FieldType::U16));
    let schema = schema_of(
        vec![
            Field::new("minus", FieldType::VarInt),
            Field::new("plus", FieldType::VarUInt),
            Field::new("yes", FieldType::Bool8),
            Field::new("two", FieldType::FixedArray(Box::new(FieldType::I16), 2)),
            Field::new("text", text),
            Field::new("whole", FieldType::Utf8Unit),
            Field::new("there", numbers),
            Field::new("behind", FieldType::RelLoc(Box::new(FieldType::Utf8Unit))),
        ],
        8,
    );
    let mut w = Writer::new();
    w.u8(3).varu64(300).u8(1).i16(-1).i16(7).u16(2).bytes(b"ab").u16(3).bytes("é!".as_bytes());
    let loc = w.len() + 8;
    w.u32(4 << 16 | u32::try_from(loc).unwrap()).u32(2 << 16 | 4).u16(10).u16(20).bytes(b"xy");
    let bytes = w.into_bytes();
    let payload = Payload::new(&schema, &bytes);
    assert_eq!(payload.get("minus").unwrap().as_i64(), Some(-2));
    assert_eq!(payload.u64("plus"), Some(300));
    assert!(matches!(payload.get("yes"), Some(Value::Bool(true))));
    let Some(Value::Array(two)) = payload.get("two") else { panic!("no array") };
    assert_eq!(two.map(|n| n.as_i64().unwrap()).collect::<Vec<_>>(), [-1, 7]);
    assert_eq!(payload.text("text").as_deref(), Some("ab"));
    assert_eq!(payload.text("whole").as_deref(), Some("é!"));
    let Some(Value::Array(there)) = payload.get("there") else { panic!("no array") };
    assert_eq!(there.map(|n| n.as_u64().unwrap()).collect::<Vec<_>>(), [10, 20]);
    assert_eq!(payload.text("behind").as_deref(), Some("xy"));
    let mut far = bytes.clone();
    far[loc - 8] = 0xff;
    let error = Payload::new(&schema, &far).fields().find_map(Result::err).unwrap();
    assert!(error.to_string().starts_with("there at offset"), "{error}");
}

#[test]
fn shared_bytes_are_not_shown_repeatedly() {
    let all = || FieldType::DataLoc(Box::new(FieldType::U8));
    let schema = schema_of((0..1000).map(|i| Field::new(format!("f{i}"), all())).collect(), 8);
    let bytes = [0, 0, 0xa0, 0x0f].repeat(1000);
    let (values, error) = walk(Payload::new(&schema, &bytes).fields());
    assert!(values == 1 && error.is_some(), "{values}");
}

#[test]
fn older_versions_may_have_fewer_fields() {
    let schema = Schema::of(&Metadata::new("Microsoft-Windows-DotNETRuntime", 81, ""), 8);
    let names = |bytes: &[u8]| -> Result<Vec<String>, PayloadError> {
        Payload::new(&schema, bytes).fields().map(|field| field.map(|(name, _)| name.to_owned())).collect()
    };
    assert_eq!(names(&[]), Ok(vec![]));
    assert_eq!(names(&[0; 3]), Ok(vec!["ContentionFlags".to_owned(), "ClrInstanceID".to_owned()]));
    assert_eq!(names(&[0; 27]).unwrap().len(), 5);
    assert_eq!(names(&[0; 40]).unwrap().len(), 5);
    for n in [1, 2, 4, 10, 11, 26] {
        assert!(names(&vec![0; n]).is_err(), "{n}");
    }
}

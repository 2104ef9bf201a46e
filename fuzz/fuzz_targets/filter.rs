//! Any text, up to a 0, as a condition on events; the remaining bytes are the payload of an event: no panic, an error
//! has a position in the text, and parentheses do not change whether an event meets the condition.
#![no_main]

use std::sync::OnceLock;

use runtap_clr::{
    Filter, Record,
    payload::{Payload, Schema},
};
use runtap_nettrace::{EventToWrite, Field, FieldType, Metadata, Reader, StreamItem, TraceHeader, Writer};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let end = input.iter().position(|byte| *byte == 0).unwrap_or(input.len());
    let Ok(text) = str::from_utf8(&input[..end]) else { return };
    let filter: Filter = match text.parse() {
        Ok(filter) => filter,
        Err(error) => {
            let end = error.offset + error.length;
            assert!(text.get(error.offset..end).is_some(), "{error:?}");
            assert!(error.column() <= text.chars().count() + 1);
            assert_eq!(error.caret().lines().count(), 2, "{error:?}");
            return;
        }
    };
    let bracketed: Filter = format!("not (not ({text}))").parse().expect("it is one without the brackets");
    let frames = if filter.needs_frames() { vec![text.to_owned()] } else { Vec::new() };
    let (stream, schema) = event();
    let mut reader = Reader::new();
    let mut header = TraceHeader::new(0, 0, 1);
    let _ = reader.items(stream).for_each(|item| match item {
        StreamItem::Header(of_stream) => header = of_stream.clone(),
        StreamItem::Event(event) => {
            let payload = Payload::new(schema, input.get(end + 1..).unwrap_or_default());
            let record = Record { header: &header, event: &event, payload };
            assert_eq!(filter.matches(&record, &frames), bracketed.matches(&record, &frames));
        }
        _ => {}
    });
});

/// Returns a stream of one event, and the fields of its payload.
fn event() -> &'static (Vec<u8>, Schema) {
    static EVENT: OnceLock<(Vec<u8>, Schema)> = OnceLock::new();
    EVENT.get_or_init(|| {
        let mut metadata = Metadata::new("Demo", 7, "Tick");
        let pair = vec![Field::new("Key", FieldType::String), Field::new("Value", FieldType::String)];
        metadata.fields = vec![
            Field::new("n", FieldType::I32),
            Field::new("real", FieldType::F64),
            Field::new("text", FieldType::String),
            Field::new("id", FieldType::Guid),
            Field::new("all", FieldType::Array(Box::new(FieldType::Object(pair)))),
        ];
        let mut writer = Writer::new(&TraceHeader::new(0, 0, 1000));
        let metadata_id = writer.define_event(&metadata).expect("a sound definition");
        let event = EventToWrite { metadata_id, thread_id: 5, timestamp: 9, ..EventToWrite::default() };
        writer.event(&event).expect("a sound event");
        (writer.finish(), Schema::of(&metadata, 8))
    })
}

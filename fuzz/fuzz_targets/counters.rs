//! Events about counters with any payload, as the counters of a session and as files in every format: no panic, the state
//! stays within its limits, and JSON is valid.
#![no_main]

use runtap_clr::counters::{CounterStream, CounterUpdate, METRICS, MetricsSession};
use runtap_model::counters::{BoardLimits, CounterBoard};
use runtap_nettrace::{EventToWrite, Field, FieldType, Metadata, Reader, TraceHeader, Writer};
use runtap_sinks::counters::{CounterFormat, CounterWriter};

const LIMITS: BoardLimits = BoardLimits { series: 8, bytes: 16 << 10 };

/// The ids of the events of meters, and 0 for event counters.
const IDS: [u32; 14] = [0, 2, 4, 5, 6, 7, 8, 9, 12, 13, 14, 15, 16, 17];

/// Returns the fields of an event, of which texts are the first.
fn fields(id: u32) -> Vec<Field> {
    let texts: &[&str] = match id {
        0 => &["Name", "DisplayName", "DisplayUnits", "Metadata"],
        2 | 12 | 13 => &["sessionId"],
        7 | 8 => &["sessionId", "meterName", "meterVersion", "instrumentName", "instrumentTags", "meterTags"],
        9 | 14 => &["sessionId", "errorMessage"],
        15 => &["runningSessionId"],
        17 => &["clientId", "expectedMaxHistograms", "expectedMaxTimeSeries", "expectedRefreshInterval"],
        _ => &[
            "sessionId",
            "meterName",
            "instrumentName",
            "unit",
            "tags",
            "rate",
            "value",
            "lastValue",
            "quantiles",
        ],
    };
    let numbers: &[(&str, FieldType)] = match id {
        0 => &[("Increment", FieldType::F64), ("Count", FieldType::I32), ("IntervalSec", FieldType::F32)],
        2 => &[("intervalStartTime", FieldType::DateTime), ("intervalEndTime", FieldType::DateTime)],
        4..=8 | 16 => &[("count", FieldType::I32), ("sum", FieldType::F64), ("instrumentId", FieldType::I32)],
        _ => &[],
    };
    let texts = texts.iter().map(|name| Field::new(*name, FieldType::String));
    texts.chain(numbers.iter().map(|(name, kind)| Field::new(*name, kind.clone()))).collect()
}

/// Returns a payload: texts, which a byte 0 ends, then the rest as numbers.
fn payload(id: u32, input: &[u8]) -> Vec<u8> {
    let count = fields(id).iter().filter(|field| matches!(field.field_type, FieldType::String)).count();
    let mut parts = input.splitn(count + 1, |byte| *byte == 0);
    let mut payload = Vec::new();
    for part in parts.by_ref().take(count) {
        payload.extend(String::from_utf8_lossy(part).encode_utf16().chain([0]).flat_map(u16::to_le_bytes));
    }
    payload.extend_from_slice(parts.next().unwrap_or_default());
    payload
}

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let mut writer = Writer::new(&TraceHeader::new(0, 0, 1_000));
    let ids = IDS.map(|id| {
        let (provider, name) = if id == 0 { ("Source", "EventCounters") } else { (METRICS, "") };
        let mut metadata = Metadata::new(provider, id, name);
        metadata.fields = fields(id);
        writer.define_event(&metadata).expect("a sound definition")
    });
    for (time, event) in (1..).zip(input.split(|byte| *byte == b'\n')) {
        let Some((kind, input)) = event.split_first() else { continue };
        let kind = usize::from(*kind) % IDS.len();
        let payload = payload(IDS[kind], input);
        let event = EventToWrite {
            metadata_id: ids[kind],
            thread_id: 1,
            capture_thread_id: 1,
            timestamp: time,
            payload: &payload,
            ..Default::default()
        };
        let _ = writer.event(&event);
    }
    let own = MetricsSession { id: "S".to_owned(), client: "c".to_owned() };
    let (mut reader, mut stream, mut board) =
        (Reader::new(), CounterStream::new(own, 1.0), CounterBoard::new(LIMITS));
    let mut writers = CounterFormat::ALL.map(|format| (CounterWriter::new(format, 1.0), Vec::new()));
    for (writer, out) in &mut writers {
        writer.head("target", 0, out).expect("memory");
    }
    reader.feed(&writer.finish());
    reader.finish();
    while let Some(item) = reader.next().expect("a sound stream") {
        match stream.item(&item) {
            Some(CounterUpdate::Reading(reading)) => {
                if let Some(row) = board.add(1, reading) {
                    for (writer, out) in &mut writers {
                        writer.row(row, out).expect("memory");
                    }
                }
            }
            Some(CounterUpdate::Ended(counter)) => {
                board.end(1, &counter);
            }
            _ => {}
        }
        assert!(board.rows().len() <= LIMITS.series);
    }
    for (writer, mut out) in writers {
        writer.snapshot(&board, &mut out);
        out.extend_from_slice(writer.tail().as_bytes());
        let text = String::from_utf8(out).expect("UTF-8");
        match writer.format() {
            CounterFormat::Json => drop(serde_json::from_str::<serde_json::Value>(&text).expect("JSON")),
            CounterFormat::Jsonl => text
                .lines()
                .for_each(|line| drop(serde_json::from_str::<serde_json::Value>(line).expect("JSON"))),
            _ => {}
        }
    }
});

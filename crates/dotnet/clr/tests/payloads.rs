//! Payloads of real recordings: every event is read, and compared with the results of other tools.

use std::collections::{BTreeMap, BTreeSet};

use runtap_clr::payload::{Decoder, Payload, Value};
use runtap_nettrace::{Event, Observe, Reader, StreamItem};
use runtap_testkit::{recordings, require, shared_data};

/// Passes every event of a stream with its payload.
fn read(bytes: &[u8], mut visit: impl FnMut(&Event<'_>, Payload<'_>)) {
    let (mut reader, mut decoder) = (Reader::new(), Decoder::new());
    reader.feed(bytes);
    reader.finish();
    while let Some(item) = reader.next().unwrap() {
        match &item {
            StreamItem::Event(event) => visit(event, decoder.payload(event)),
            item => decoder.item(item),
        }
    }
}

/// Formats a value as text: numbers as they are, objects as `{name=value,…}`.
fn show(value: Value<'_>) -> String {
    match value {
        Value::Bool(value) => value.to_string(),
        Value::Char(unit) => String::from_utf16_lossy(&[unit]),
        Value::Int(value) => value.to_string(),
        Value::UInt(value) => value.to_string(),
        Value::Hex(value) => format!("{value:#x}"),
        Value::F32(value) => value.to_string(),
        Value::F64(value) => value.to_string(),
        Value::Decimal(value) => value.to_string(),
        Value::Time(value) => value.0.to_string(),
        Value::Guid(value) => value.to_string(),
        Value::Bytes(bytes) => format!("{bytes:02x?}"),
        Value::Object(fields) => {
            let fields: Vec<String> = fields
                .fields()
                .map(|field| field.unwrap())
                .map(|(name, value)| format!("{name}={}", show(value)))
                .collect();
            format!("{{{}}}", fields.join(","))
        }
        Value::Array(elements) => format!("[{}]", elements.map(show).collect::<Vec<_>>().join(",")),
        text => text.as_text().unwrap(),
    }
}

fn all(payload: Payload<'_>) -> Vec<String> {
    payload
        .fields()
        .map(|field| field.unwrap())
        .map(|(name, value)| format!("{name}={}", show(value)))
        .collect()
}

/// Events without any description: arrays in events that are not self-describing, which .NET omits.
fn is_indescribable(provider: &str, name: &str) -> bool {
    matches!(
        (provider, name),
        ("Demo-Types", "ByteArray")
            | ("Demo-Storm", "Bytes")
            | ("Demo-SelfDescribing", "Arrays" | "Nested" | "Times" | "Dict")
    )
}

/// Events that have more bytes than their descriptions: one that a program describes wrongly on purpose, and one of one-collect.
/// of one-collect's.
fn is_odd(name: &str) -> bool {
    matches!(name, "Mismatch" | "ProcessMapping")
}

/// No bytes are left over either, except if an event is described wrongly.
#[test]
fn every_payload_of_every_recording_can_be_read() {
    let mut events = 0;
    for recording in require!(recordings()) {
        let path = recording.path.display();
        let mut odd = BTreeMap::new();
        read(&recording.bytes, |event, payload| {
            events += 1;
            let metadata = event.metadata.unwrap();
            let (provider, id) = (metadata.provider.as_str(), metadata.event_id);
            let schema = payload.schema();
            assert!(!schema.name().is_empty(), "{path}: {provider} {id} has no name");
            let mut fields = payload.fields();
            for field in fields.by_ref() {
                let (_, value) = field.unwrap_or_else(|error| panic!("{path}: {provider} {id}: {error}"));
                show(value);
            }
            if !schema.is_described() && !payload.bytes().is_empty() {
                assert!(
                    is_indescribable(provider, schema.name()),
                    "{path}: {provider} {id} {}",
                    schema.name()
                );
            } else if !fields.rest().is_empty() && !is_odd(schema.name()) {
                *odd.entry((provider.to_owned(), id, metadata.version, fields.rest().len())).or_insert(0) +=
                    1;
            }
        });
        assert!(odd.is_empty(), "{path}: bytes left over: {odd:?}");
    }
    assert!(events > 300_000, "only {events} events");
}

/// Lines of `Provider/Task/Opcode, count`, one per kind of event.
fn baseline(name: &str) -> BTreeMap<String, u64> {
    let text = shared_data(format!("nettrace/{name}.baseline.txt")).unwrap();
    let text = String::from_utf8(text).unwrap();
    let lines = text.trim_start_matches('\u{feff}').lines().filter(|line| !line.is_empty());
    let line = |line: &str| {
        let (name, rest) = line.split_once(", ")?;
        Some((name.to_owned(), rest.split_once(',')?.0.replace(',', "").parse().ok()?))
    };
    lines.filter_map(line).collect()
}

#[test]
fn names_match_traceevent() {
    require!(recordings());
    for (name, extension) in [
        ("eventpipe-dotnetcore3.0-win-x64-objver4.nettrace", ".zst"),
        ("eventpipe-dotnetcore5.0-win-x64-arraytypes.nettrace", ".zst"),
        ("eventpipe-dotnetcore6.0-win-x64-executioncheckpoints.nettrace", ""),
    ] {
        let bytes = require!(shared_data(format!("nettrace/{name}{extension}")));
        let mut ours: BTreeMap<String, u64> = BTreeMap::new();
        read(&bytes, |event, payload| {
            let metadata = event.metadata.unwrap();
            // TraceEvent processes these without showing them.
            let hidden = matches!(
                (metadata.provider.as_str(), metadata.event_id),
                ("Microsoft-Windows-DotNETRuntime", 190)
                    | ("Microsoft-Windows-DotNETRuntimeRundown", 144 | 150)
            );
            // TraceEvent has no names for these two.
            let shown = payload
                .schema()
                .task_and_opcode()
                .replace("GC/IncreaseMemoryPressure", "GC")
                .replace("GC/DecreaseMemoryPressure", "GC");
            if !hidden {
                *ours.entry(format!("{}/{shown}", metadata.provider)).or_default() += 1;
            }
        });
        assert_eq!(ours, baseline(name), "{name}");
    }
}

#[test]
fn values_match_traceevent() {
    let bytes = require!(shared_data("nettrace/eventpipe-dotnetcore5.0-win-x64-arraytypes.nettrace.zst"));
    let mut shown = Vec::new();
    read(&bytes, |event, payload| {
        if event.metadata.unwrap().provider == "TestEventSource0" {
            shown.push(all(payload).join(" "));
        }
    });
    assert_eq!(
        shown,
        [
            "arg0=[2032854139,1608221689,1470019200,199494339,1238846140,1366609043] \
             arg1=[26494,17115,-7229,18850,27931] arg2=2033417279",
            "arg0=-1001479330 arg1=-1397908228 arg2=[1470938110,172564262,1133558854,-1572049829] \
             arg3=[2055126903,593325874,2130052527,162795177]",
            "arg0=\u{e7a3}㎯隍ᳯ诤",
        ]
    );

    let bytes = require!(shared_data("nettrace/eventpipe-dotnetcore3.0-win-x64-objver4.nettrace.zst"));
    // Events are not sorted by time; TraceEvent shows the first one.
    let mut first: BTreeMap<u32, (u64, Vec<String>)> = BTreeMap::new();
    read(&bytes, |event, payload| {
        let metadata = event.metadata.unwrap();
        if metadata.provider == "Microsoft-Windows-DotNETRuntime" {
            let (time, shown) = first.entry(metadata.event_id).or_insert((u64::MAX, Vec::new()));
            if event.timestamp < *time {
                (*time, *shown) = (event.timestamp, all(payload));
            }
        }
    });
    let first = |id| first[&id].1.clone();
    assert_eq!(
        first(204)[..14].join(" "),
        "ClrInstanceID=3 FreeListAllocated=0 FreeListRejected=0 EndOfSegAllocated=0 CondemnedAllocated=0 \
         PinnedAllocated=0 PinnedAllocatedAdvance=0 RunningFreeListEfficiency=0 CondemnReasons0=0 CondemnReasons1=0 \
         CompactMechanisms=2147483650 ExpandMechanisms=0 HeapIndex=0 ExtraGen0Commit=3005960"
    );
    assert!(first(204)[15].starts_with(
        "Values=[{SizeBefore=3154608,FreeListSpaceBefore=0,FreeObjSpaceBefore=768160,SizeAfter=24,FreeListSpaceAfter=0,\
         FreeObjSpaceAfter=0,In=0,PinnedSurv=4936,NonePinnedSurv=170568,NewAllocation=3510080},"
    ));
    assert_eq!(
        first(10).join(" "),
        "AllocationAmount=104096 AllocationKind=0 ClrInstanceID=3 AllocationAmount64=104096 TypeID=0x7ffea911ea28 \
         TypeName=System.Object[] HeapIndex=0 Address=0x19a00017fe8"
    );
    assert_eq!(first(91).join(" "), "ContentionFlags=0 ClrInstanceID=3 DurationNs=137400255.24159124");
}

/// All types, written by a program in the shared folder.
#[test]
fn values_of_all_types() {
    let bytes = require!(shared_data("nettrace/net10/logs.nettrace.zst"));
    let mut shown = BTreeMap::new();
    read(&bytes, |event, payload| {
        let metadata = event.metadata.unwrap();
        if metadata.provider.starts_with("Demo-") {
            shown.entry(metadata.name.clone()).or_insert_with(|| all(payload).join(" "));
        }
    });
    assert_eq!(
        shown["Integers"],
        "a=-1 b=255 c=-32768 d=65535 e=-2147483648 f=4294967295 g=-9223372036854775808 h=18446744073709551615"
    );
    assert_eq!(
        shown["Others"],
        "a=true b=é c=1.5 d=-2.25 e=11223344-5566-7788-99aa-bbccddeeff00 f=132274532960000000 g=-1 h=s0"
    );
    assert_eq!(shown["Strings"], "a= b= c=é中😀");
    assert_eq!(shown["Simple"], "n=0 s=text 0");
    assert_eq!(shown["HighId"], "n=0");
}

#[test]
fn logs_sources_and_counters_have_their_fields() {
    let mut seen = BTreeSet::new();
    for name in ["net10/logs", "net9/diagnosticsource", "net10/eventcounters", "net10/meters", "net9/web"] {
        let bytes = require!(shared_data(format!("nettrace/{name}.nettrace.zst")));
        read(&bytes, |event, payload| {
            let name = event.metadata.unwrap().name.as_str();
            let known = match name {
                "FormattedMessage" => {
                    payload.text("LoggerName").is_some() && payload.text("FormattedMessage").is_some()
                }
                "Message" if payload.get("Arguments").is_some() => {
                    let Some(Value::Array(arguments)) = payload.get("Arguments") else { panic!("no array") };
                    arguments.objects().all(|o| o.get("Key").is_some() && o.get("Value").is_some())
                        && matches!(payload.get("Exception"), Some(Value::Object(_)))
                }
                "EventCounters" => {
                    payload.f64("IntervalSec") > Some(0.0)
                        && (payload.f64("Mean").is_some() || payload.f64("Increment").is_some())
                }
                "HistogramValuePublished" => payload.u64("count").is_some() && payload.f64("sum").is_some(),
                "CollectionStart" => matches!(payload.get("intervalStartTime"), Some(Value::Time(_))),
                "RequestStart" if event.metadata.unwrap().provider.ends_with("Hosting") => {
                    payload.text("method").as_deref() == Some("GET")
                        && payload.text("path").is_some_and(|path| path.starts_with('/'))
                }
                _ => return,
            };
            assert!(known, "{name}: {:?}", all(payload));
            seen.insert(name.to_owned());
        });
    }
    assert_eq!(seen.len(), 6, "{seen:?}");
}

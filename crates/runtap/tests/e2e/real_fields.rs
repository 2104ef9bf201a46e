//! `events` agrees with TraceEvent (`tedump`): every event of every recording with all its fields and names of values.
//! Each difference has a reason, given in docs/events.md; the lists below are complete.

use std::collections::BTreeMap;
use std::fs;

use runtap_testkit::{Peer, Recording, recordings, require, run};
use serde_json::Value;

use crate::common::{folder, runtap};

/// Fields that TraceEvent computes from others, or from other events.
const COMPUTED: [(&str, &[&str]); 6] = [
    ("GC/HeapStats", &["Depth", "TotalHeapSize", "TotalPromoted"]),
    ("GC/FinalizeObject", &["TypeName"]),
    ("Type/BulkType", &["TypeID_0", "TypeName_0"]),
    ("Loader/ModuleLoad", &["ModuleILFileName"]),
    ("Loader/ModuleUnload", &["ModuleILFileName"]),
    ("Loader/ModuleDCStop", &["ModuleILFileName"]),
];

/// Events whose payload TraceEvent reads at wrong offsets.
const MISREAD: [&str; 4] =
    ["Method/MethodDetails", "ProcessCreate", "ProcessMapping", "ProcessMappingMetadata"];

/// Events of the runtime that TraceEvent does not support.
const UNKNOWN: [&str; 3] = ["EventID(191)", "EventID(200)", "EventID(201)"];

/// TraceEvent's names for fields that have other names in the stream, including misspelled ones.
const RENAMED: [(&str, &str); 2] =
    [("ContinuationId", "ContinueWithTaskId"), ("GC/DestoryGCHandle", "GC/DestroyGCHandle")];

fn lines(text: &str) -> BTreeMap<(String, u64), Vec<Value>> {
    let mut all = BTreeMap::<_, Vec<Value>>::new();
    for line in text.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        let key =
            (event["provider"].as_str().unwrap_or_default().to_owned(), event["thread"].as_u64().unwrap());
        all.entry(key).or_default().push(event);
    }
    all
}

/// An event in both outputs.
struct Pair<'a> {
    ours: &'a Value,
    theirs: &'a Value,
}

impl Pair<'_> {
    fn check(&self, netperf: bool) -> Result<(), String> {
        let Self { ours, theirs } = *self;
        let name = theirs["name"].as_str().unwrap();
        let differs = |what: &str, a: &Value, b: &Value| Err(format!("{name}: {what} is {a}, theirs is {b}"));
        // Names in the stream are kept; TraceEvent converts them to `Task/Opcode`.
        let own = ours["name"].as_str().unwrap_or_default();
        let known = RENAMED.iter().find(|(theirs, _)| *theirs == name).map_or(name, |(_, ours)| ours);
        if own.contains('/') && own != known && !UNKNOWN.contains(&name) {
            return differs("the name", &ours["name"], &theirs["name"]);
        }
        for member in ["id", "version", "level", "opcode", "process"] {
            let odd = match member {
                "id" => name == "GC/CommittedUsage",
                "opcode" => ours[member].is_null() || UNKNOWN.contains(&name),
                _ => false,
            };
            if !odd && ours[member] != theirs[member] {
                return differs(member, &ours[member], &theirs[member]);
            }
        }
        // TraceEvent's times are in units of 100 ns.
        let time = |event: &Value, member: &str| {
            event[member].as_str().and_then(|time| time.get(..26).map(str::to_owned))
        };
        if time(ours, "time") != time(theirs, "utc") {
            return differs("time", &ours["time"], &theirs["utc"]);
        }
        let nil = "00000000-0000-0000-0000-000000000000";
        let related = (!netperf).then_some(("related_activity", "rel"));
        for (member, their) in [("activity", "act")].into_iter().chain(related) {
            if ours[member].as_str().unwrap_or(nil) != theirs[their] {
                return differs(member, &ours[member], &theirs[their]);
            }
        }
        if !netperf && name != "Thread/Sample" && ours["processor"].as_u64().unwrap_or(0) != theirs["cpu"] {
            return differs("the processor", &ours["processor"], &theirs["cpu"]);
        }
        if MISREAD.contains(&name) || UNKNOWN.contains(&name) {
            return Ok(());
        }
        self.fields(name, unwrapped(&theirs["payload"]))
    }

    fn fields(&self, event: &str, theirs: &Value) -> Result<(), String> {
        let (payload, names) = (&self.ours["payload"], &self.ours["payload_names"]);
        for (field, their) in theirs.as_object().unwrap() {
            let computed =
                COMPUTED.iter().any(|(of, fields)| *of == event && fields.contains(&field.as_str()));
            // Fields that an older version of the event lacks are zero in TraceEvent.
            let ours =
                RENAMED.iter().find(|(known, _)| known == field).map_or(field.as_str(), |(_, ours)| ours);
            let none = their.is_null() || their == 0 || their["n"] == 0 && their["$enum"].is_string();
            let is_part = names[ours].is_string() && payload[ours].is_null();
            if computed || payload[ours].is_null() && none && !is_part {
                continue;
            }
            if let Some(name) = their["$enum"].as_str() {
                // A value without a name is formatted as text by TraceEvent, and has no name in runtap.
                let ours = names[ours].as_str().map_or_else(|| payload[ours].to_string(), str::to_owned);
                if ours != name {
                    return Err(format!("{event}: {field} is called {ours}, theirs {name}"));
                }
                // runtap prints the number as it was sent, TraceEvent only a part of it.
                let parts = ["MethodFlags", "OptimizationTier", "CompactMechanisms", "ExpandMechanisms"];
                if parts.contains(&field.as_str()) {
                    continue;
                }
            }
            if !same(&payload[ours], their) {
                return Err(format!("{event}: {field} is {}, theirs is {their}", payload[ours]));
            }
        }
        Ok(())
    }
}

/// Returns the fields of an event whose only field is an object without a name.
fn unwrapped(payload: &Value) -> &Value {
    match payload.get("") {
        Some(inner) => inner.get("Payload").unwrap_or(inner),
        None => payload,
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "their numbers of four bytes, too"
)]
fn same(ours: &Value, theirs: &Value) -> bool {
    if let Some(number) = theirs.get("n") {
        return same(ours, number);
    }
    if let Some(date) = theirs.get("$date").and_then(Value::as_str) {
        return ours.as_str().is_some_and(|ours| ours.get(..26) == date.get(..26));
    }
    let hexadecimal = |text: &str| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok();
    match (ours, theirs) {
        // TraceEvent prints some unsigned numbers as signed: pointers, and the low word of two.
        (Value::String(ours), Value::Number(theirs)) => match (hexadecimal(ours), theirs.as_i64()) {
            (Some(ours), Some(theirs)) => ours.cast_signed() == theirs || ours == u64::from(theirs as u32),
            (Some(ours), None) => Some(ours) == theirs.as_u64(),
            // A character.
            (None, _) => ours.chars().next().map(u64::from) == theirs.as_u64(),
        },
        (Value::Number(ours), Value::Number(theirs)) => {
            let (a, b) = (ours.as_f64().unwrap(), theirs.as_f64().unwrap());
            let wrapped = ours.as_u64().zip(theirs.as_i64()).is_some_and(|(ours, theirs)| {
                ours.cast_signed() == theirs || ours == u64::from(theirs as u32)
            });
            wrapped || (a - b).abs() <= 1e-6 * a.abs()
        }
        (Value::String(ours), Value::String(theirs)) => match theirs.strip_prefix("hex:") {
            Some(bytes) => ours == bytes,
            None => ours == theirs,
        },
        (Value::Array(ours), Value::Array(theirs)) => {
            ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(a, b)| same(a, b))
        }
        (Value::Object(ours), Value::Object(theirs)) => {
            ours.len() == theirs.len()
                && theirs.iter().all(|(name, b)| ours.get(name).is_some_and(|a| same(a, b)))
        }
        (ours, theirs) => ours == theirs,
    }
}

fn compare(recording: &Recording, tedump: &Peer) -> usize {
    let folder = folder();
    let file = folder.path().join("it.nettrace");
    fs::write(&file, &recording.bytes).unwrap();
    let mut command = tedump.command();
    command.arg(&file);
    let theirs = run(command);
    let theirs = lines(theirs.expect_code(0).text());
    let ours = lines(runtap(["events", file.to_str().unwrap()]).expect_code(0).text());
    let path = recording.path.display();
    let keys: Vec<_> = ours.keys().collect();
    assert_eq!(keys, theirs.keys().collect::<Vec<_>>(), "{path}");
    let mut compared = 0;
    for (key, ours) in &ours {
        let theirs = &theirs[key];
        assert_eq!(ours.len(), theirs.len(), "{path}: {key:?}");
        // Both are sorted by time; in old streams they keep the order of the stream.
        let mut theirs: Vec<&Value> = theirs.iter().collect();
        theirs.sort_by(|a, b| a["utc"].as_str().cmp(&b["utc"].as_str()));
        for (ours, theirs) in ours.iter().zip(theirs) {
            let pair = Pair { ours, theirs };
            pair.check(recording.version() < 4)
                .unwrap_or_else(|what| panic!("{path}: {what}\n{ours:#}\n{theirs:#}"));
            compared += 1;
        }
    }
    compared
}

#[test]
fn events_are_those_of_traceevent() {
    let tedump = require!(Peer::available("tedump"));
    let mut compared = 0;
    for recording in require!(recordings()) {
        // TraceEvent fails on truncated recordings.
        if recording.expected["end_marker"] == true {
            compared += compare(recording, &tedump);
        }
    }
    assert!(compared > 300_000, "only {compared} events were compared");
}

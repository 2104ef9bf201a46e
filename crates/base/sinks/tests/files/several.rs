//! Several processes in one file: each has a number, a name and its threads, also where two call themselves the same.

use crate::read::{firefox, perfetto};
use runtap_model::{Process, SampleKind, Trace, TraceBuilder, View};
use runtap_sinks::{Format, Options};
use serde_json::Value;

/// A process with these threads, all of which run for a millisecond.
fn one(pid: Option<u32>, name: &str, threads: &[(u64, &str)]) -> Trace {
    let mut builder = TraceBuilder::new();
    builder.set_process(Process { pid, name: Some(name.to_owned()), command_line: None });
    for (tid, name) in threads {
        let thread = builder.thread(*tid);
        builder.set_thread_name(thread, name);
        let frame = builder.frame(Some("m"), "f()");
        let stack = builder.stack(None, frame);
        builder.add_sample(thread, 0, SampleKind::MANAGED, Some(stack));
    }
    builder.finish()
}

/// Two containers in which the process is number 1, one that has no number, and one that has threads but no main one.
fn merged() -> Trace {
    Trace::merge([
        one(Some(1), "shop", &[(8, ""), (1, "main")]),
        one(Some(1), "shop", &[(1, ""), (8, "pool")]),
        one(None, "bank", &[(5, "")]),
        one(Some(70), "mill", &[(72, ""), (71, "")]),
    ])
}

fn bytes(format: Format) -> Vec<u8> {
    let mut bytes = Vec::new();
    format.write(&merged(), &mut bytes, &Options::new(View::ThreadTime)).expect("a Vec takes all");
    bytes
}

/// Number, name and threads of each.
type Processes = Vec<(u64, String, Vec<String>)>;

/// The second 1 and the third get numbers that Linux does not give.
fn expected() -> Processes {
    let texts = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    vec![
        (1, "shop".to_owned(), texts(&["Thread (8)", "Thread (1) main"])),
        (4_194_304, "shop".to_owned(), texts(&["Thread (1)", "Thread (8) pool"])),
        (4_194_305, "bank".to_owned(), texts(&["Thread (5)"])),
        (70, "mill".to_owned(), texts(&["Thread (72)", "Thread (71)"])),
    ]
}

#[test]
fn in_chrome() {
    let document: Value = serde_json::from_slice(&bytes(Format::Chrome)).expect("JSON");
    let mut processes: Processes = Vec::new();
    for event in document["traceEvents"].as_array().expect("a list") {
        let pid = event["pid"].as_u64().expect("a number");
        let name = || event["args"]["name"].as_str().expect("a text").to_owned();
        match event["name"].as_str() {
            Some("process_name") => processes.push((pid, name(), Vec::new())),
            Some("thread_name") => {
                let process = processes.iter_mut().find(|process| process.0 == pid);
                process.expect("a process is named before its threads").2.push(name());
            }
            _ => assert!(processes.iter().any(|process| process.0 == pid), "{event}"),
        }
    }
    assert_eq!(processes, expected());
}

#[test]
fn in_perfetto() {
    let trace = perfetto::read(&bytes(Format::Perfetto));
    assert_eq!(trace.processes, expected());
    assert_eq!(trace.events.len(), 2 * 7);
}

#[test]
fn in_firefox() {
    let profile = firefox::json(&bytes(Format::Firefox));
    let mut processes: Processes = Vec::new();
    let mut main = Vec::new();
    for thread in profile["threads"].as_array().expect("a list") {
        let pid: u64 = thread["pid"].as_str().expect("a text").parse().expect("digits");
        let [process, name] =
            ["processName", "name"].map(|member| thread[member].as_str().expect("a text").to_owned());
        if thread["isMainThread"] == true {
            main.push((pid, name.clone()));
        }
        match processes.iter_mut().find(|known| known.0 == pid) {
            Some(known) => known.2.push(name),
            None => processes.push((pid, process, vec![name])),
        }
    }
    assert_eq!(processes, expected());
    // The one with the number of the process, else the first.
    let shown =
        [(1, "Thread (1) main"), (4_194_304, "Thread (1)"), (4_194_305, "Thread (5)"), (70, "Thread (72)")];
    assert_eq!(main, shown.map(|(pid, name)| (pid, name.to_owned())));
}

#[test]
fn a_format_without_processes_has_them_in_the_names_of_threads() {
    let document: Value = serde_json::from_slice(&bytes(Format::Speedscope)).expect("JSON");
    let names: Vec<&str> = document["profiles"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|it| it["name"].as_str())
        .collect();
    assert_eq!(names[..3], ["shop (1) Thread (8)", "shop (1) Thread (1) main", "shop (1) Thread (1)"]);
    assert_eq!(names.len(), 7);
}

//! Small recordings of many agents, or with many marks: the memory of reports is proportional to the recording, with
//! neither a fixed amount for each agent nor a copy of the marks.

use std::fs;
use std::path::Path;

use runtap_bytefrog_proto::f1::{Count, CountRows, Rows};
use runtap_bytefrog_proto::{Dialect, Message, Stamp};
use runtap_testkit::fake_agent::say;

use crate::cli_bounds::run_with_memory;
use crate::common::{folder, runtap};

/// Megabytes of address space: the program itself, its threads' stacks, and the traces.
const MAX_MEGABYTES: u64 = 320;

fn write(folder: &Path, agent: usize, hello: u8, data: &[u8]) {
    fs::write(folder.join(format!("agent{agent}.ctl.a2h.bin")), [0, hello]).unwrap();
    fs::write(folder.join(format!("agent{agent}.data0.a2h.bin")), [&[0x1e, 0], data].concat()).unwrap();
}

/// Each agent has an event that waits for others, and the largest method id: naive code would allocate megabytes for
/// either.
#[test]
fn many_agents_with_little_data_take_little_memory() {
    let folder = folder();
    let entry = |sequence, method| {
        say(Dialect::V1, &Message::Entry { at: Stamp { time: 0, sequence, thread: 0 }, method })
    };
    let data = [entry(0, (1 << 20) - 1), entry(5, 1)].concat();
    for agent in 0..200 {
        write(folder.path(), agent, 1, &data);
    }
    let recording = folder.path().to_str().unwrap();
    for verb in ["report", "replay"] {
        run_with_memory(MAX_MEGABYTES, &["jvm", verb, recording, "--format", "json"]).expect_code(5);
    }
    let report = runtap(["jvm", "report", recording, "--format", "json"]).json();
    assert_eq!(report["agents"].as_array().map(Vec::len), Some(200));
    assert_eq!(
        (&report["agents"][199]["entries"], &report["agents"][199]["missing"]),
        (&2.into(), &4.into())
    );
}

#[test]
fn agents_share_the_marks_of_a_recording() {
    let folder = folder();
    for agent in 0..100 {
        write(folder.path(), agent, 0xf1, &[]);
    }
    // As many names as marks, each looked up once: more than are kept for this number of agents.
    let mark = |at: u32| [format!("{at}.0\tbegin\tname-{at}\n"), format!("{at}.5\tend\tname-{at}\n")];
    let marks = (0..40_000).flat_map(mark).collect::<Vec<_>>().concat();
    fs::write(folder.path().join("marks.tsv"), marks).unwrap();
    let recording = folder.path().to_str().unwrap();
    let report = run_with_memory(MAX_MEGABYTES, &["jvm", "report", recording]);
    report.expect_code(5).says("marks.tsv has too many marks: 20971 were kept, 59029 were skipped");
    run_with_memory(MAX_MEGABYTES, &["jvm", "report", recording, "segments"]).expect_code(5);
    let one = ["jvm", "report", recording, "segments", "--agent", "agent7", "--format", "json"];
    let report = runtap(one).expect_code(5).json();
    let parts = report["agents"][0]["parts"].as_array().unwrap();
    assert_eq!((parts.len(), &parts[10_485]["name"]), (10_486, &"name-10485".into()));
    run_with_memory(MAX_MEGABYTES, &["jvm", "report", &format!("{recording}#name-7")]).expect_code(5);
}

/// A message of 18 bytes may reset the counters of 65,536 methods.
#[test]
fn resets_take_no_more_for_many_methods_than_for_one() {
    let folder = folder();
    let rows: Vec<_> =
        (0..1 << 16).map(|method| Count { method, calls: 1, thrown: 0, nanoseconds: 0 }.to_bytes()).collect();
    let say = |rows: &[[u8; 28]], reset| {
        let counts = CountRows { snapshot: 0, time: 0, last: true, reset, rows: Rows::new(rows) };
        say(Dialect::F1, &Message::Counts(counts))
    };
    let resets = say(&[], true).repeat(50_000);
    write(folder.path(), 0, 0xf1, &[say(&rows, false), resets, say(&rows[..1], false)].concat());
    let recording = folder.path().to_str().unwrap();
    let report = runtap(["jvm", "report", recording, "--format", "json"]).expect_code(0).json();
    assert_eq!(report["agents"][0]["entries"], (1 << 16) + 1);
}

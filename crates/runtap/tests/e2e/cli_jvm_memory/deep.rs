//! Recordings of calls nested more deeply than any viewer shows, and of names of maximum length: the memory of reports
//! is proportional to the recording, not to depth squared or to rows times names.

use std::fs;
use std::path::Path;

use runtap_bytefrog_proto::f1::{Batch, BatchEvent, BatchKind, Rows};
use runtap_bytefrog_proto::{Dialect, JavaStr, Message};
use runtap_testkit::fake_agent::say;
use serde_json::Value;

use crate::cli_bounds::run_with_memory;
use crate::common::{folder, runtap};

/// Megabytes of address space: the program itself, its threads' stacks, and the trace.
const MAX_MEGABYTES: u64 = 320;
const THREADS: u32 = 2;

/// Writes a recording of threads that each make `depth` nested calls of these methods, and return from all of them.
fn record(folder: &Path, names: &[String], depth: u32, step: u32) -> String {
    let named = (0..).zip(names).flat_map(|(method, name)| {
        let signature = JavaStr::from_bytes(name.as_bytes());
        say(Dialect::F1, &Message::MapMethod { method, signature })
    });
    let count = u32::try_from(names.len()).unwrap();
    // A non-repeating order, so that no two stacks in any threads have equal ends.
    let batches = (0..THREADS).flat_map(|thread| {
        let method = |call: u32| ((call + thread * depth).wrapping_mul(0x9e37_79b1) >> 16) % count;
        let calls = (0..depth).map(|call| (BatchKind::Entry, method(call)));
        let returns = (0..depth).rev().map(|call| (BatchKind::Exit, method(call)));
        let rows: Vec<_> = (0..)
            .zip(calls.chain(returns))
            .map(|(at, (kind, method))| BatchEvent { kind, method, delta: at * step }.to_bytes())
            .collect();
        // A batch has at most 65,536 events.
        let batch = |(sequence, rows)| {
            say(Dialect::F1, &Message::Batch(Batch { thread, sequence, base: 0, rows: Rows::new(rows) }))
        };
        (0..).step_by(1 << 16).zip(rows.chunks(1 << 16)).flat_map(batch).collect::<Vec<_>>()
    });
    let data: Vec<u8> = [0x1e, 0].into_iter().chain(named).chain(batches).collect();
    fs::write(folder.join("agent0.ctl.a2h.bin"), [0, 0xf1]).unwrap();
    fs::write(folder.join("agent0.data0.a2h.bin"), data).unwrap();
    folder.to_str().unwrap().to_owned()
}

fn methods(count: u32) -> Vec<String> {
    (0..count).map(|method| format!("com/example/Deep.method{method};1;()V")).collect()
}

/// Returns the sum of the weights of folded stacks, and the number of frames of the deepest, including the thread.
fn folded(path: &Path) -> (u64, usize) {
    let text = fs::read_to_string(path).unwrap();
    let weight = |line: &str| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap();
    (text.lines().map(weight).sum(), text.lines().map(|line| line.split(';').count()).max().unwrap())
}

#[test]
fn every_format_of_a_deep_recording_takes_little_memory() {
    let (folder, depth) = (folder(), 10_000);
    let recording = record(folder.path(), &methods(500), depth, 1000);
    let out = folder.path().join("out");
    let to = |format: &str, more: &[&str]| {
        let words = ["jvm", "report", &recording, "--to", format, "-o", out.to_str().unwrap()];
        run_with_memory(MAX_MEGABYTES, &[&words, more].concat())
    };
    let said = "17,952 stacks truncated to the first 1,023 frames; the deepest has 10,000 frames";
    for format in ["speedscope", "chrome", "perfetto", "firefox", "pprof", "flamegraph", "folded"] {
        to(format, &[]).expect_code(0).says(said);
        let bytes = fs::metadata(&out).unwrap().len();
        assert!(bytes > 1000 && bytes < 40 << 20, "{format}: {bytes} bytes");
    }
    for format in ["speedscope", "pprof", "flamegraph", "folded"] {
        to(format, &["--view", "calls"]).expect_code(0).says(said);
    }
    // No call is lost: calls beyond the maximum depth are counted in its last frame.
    assert_eq!(folded(&out), (u64::from(THREADS * depth), 1025));
    // Complete stacks do not fit into a file. Aggregated calls cannot be truncated at a time, so narrow branches are
    // merged.
    for format in ["folded", "speedscope", "pprof"] {
        let whole = to(format, &["--view", "calls", "--max-depth", "0", "--max-size", "4"]);
        whole.expect_code(5).says("has branches of less than").says("--max-size changes the limit");
    }
    let whole = to("folded", &["--view", "calls", "--max-depth", "0", "--max-size", "4"]);
    whole.expect_code(5);
    let (calls, deepest) = folded(&out);
    assert_eq!(calls, u64::from(THREADS * depth));
    assert!(deepest > 100 && fs::metadata(&out).unwrap().len() < 5 << 20, "{deepest} frames");
}

#[test]
fn every_report_of_a_deep_recording_takes_little_memory() {
    let folder = folder();
    let recording = record(folder.path(), &methods(500), 40_000, 1000);
    let report =
        |words: &[&str]| run_with_memory(MAX_MEGABYTES, &[&["jvm", "report", &recording], words].concat());
    for kind in ["methods", "tree", "exceptions", "segments", "slow", "threads", "classes", "losses"] {
        report(&[kind, "--format", "json"]).expect_code(0);
    }
    report(&[]).expect_code(0);
    report(&["tree", "-n", "0"]).expect_code(0);
    for words in [["--minus", &recording], ["--diff", &recording]] {
        report(&words).expect_code(0);
    }
    run_with_memory(MAX_MEGABYTES, &["jvm", "replay", &recording]).expect_code(0);
}

#[test]
fn a_few_deep_stacks_keep_both_ends() {
    let folder = folder();
    let recording = record(folder.path(), &methods(500), 1100, 1000);
    let out = folder.path().join("out");
    let out_text = out.to_str().unwrap();
    let done = runtap(["jvm", "report", &recording, "--to", "folded", "--view", "calls", "-o", out_text]);
    done.expect_code(0)
        .says("152 stacks truncated to the first and last 512 frames; the deepest has 1,100 frames");
    assert_eq!(folded(&out), (u64::from(THREADS) * 1100, 1025));
}

/// A name takes up to 64 KiB of a recording once, but occurs in every path, place and row of the method.
#[test]
fn rows_of_long_names_take_little_memory() {
    let folder = folder();
    let name = format!("com/example/{}.m;1;()V", "D".repeat(60_000));
    // Each call is long enough for the log of slow calls.
    let recording = record(folder.path(), &[name], 600, 1_000_000);
    let report =
        |words: &[&str]| run_with_memory(MAX_MEGABYTES, &[&["jvm", "report", &recording], words].concat());
    report(&[]).expect_code(0);
    report(&["slow", "--slow", "1ms"]).expect_code(0);
    report(&["tree", "--format", "json"]).expect_code(0);
    report(&["--to", "folded", "-o", "-", "--max-size", "1"]).expect_code(5);
    let slow = runtap(["jvm", "report", &recording, "slow", "--slow", "1ms", "--format", "json", "-n", "1"]);
    let slow: Value = slow.expect_code(0).json();
    let path = slow["agents"][0]["slow"][0]["path"].as_array().unwrap();
    assert_eq!(path.len(), 1, "the outermost call took longest");
    assert_eq!(path[0].as_str().map(str::len), Some("com.example.".len() + 60_000 + ".m()".len()));
}

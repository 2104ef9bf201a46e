//! Memory of the program for a large trace. The limit is 100 MB for 10,000 methods in each of 100 threads, each with
//! its own place in the call tree, for every report (docs/jvm-recordings.md has the figures). These tests use a quarter
//! of that, which an unoptimized program can process in time and which reveals duplicated data equally well.

mod crowds;
mod deep;

use std::fs;
use std::process::{Child, Stdio};

use runtap_bytefrog_proto::f1::{Batch, BatchEvent, BatchKind, Rows};
use runtap_bytefrog_proto::{Dialect, JavaStr, Message};
use runtap_testkit::eventually;
use runtap_testkit::fake_agent::{FakeAgent, Step, say};

use crate::cli_jvm_extremes::begin_f1;
use crate::cli_jvm_live::wait_for_row;
use crate::cli_jvm_wrong::end;
use crate::cli_terminal::Terminal;
use crate::common::{command, folder};

const METHODS: u32 = 10_000;
const THREADS: u32 = 25;
/// A quarter of the limit's part beyond a small trace, plus the memory of a small trace. Excludes the executable, which
/// is large in tests.
const MAX_BYTES: u64 = 32_000_000;
/// The live view examines a large trace less often, because that costs more; an unoptimized program would take minutes.
/// A twentieth takes 16 to 19 MB: 4 for the tree, the rest for names and everything else, as with more threads.
const WATCHED_THREADS: u32 = 5;
const MAX_WATCHED_BYTES: u64 = 22_000_000;

/// Encodes the data connection of an agent.
fn calls(threads: u32) -> Vec<u8> {
    let names = (0..METHODS).flat_map(|method| {
        let signature =
            format!("com/example/shop/Class{}.method{method};1;(Ljava/lang/String;)V", method / 10);
        let signature = JavaStr::from_bytes(signature.as_bytes());
        say(Dialect::F1, &Message::MapMethod { method, signature })
    });
    let rows: Vec<_> = (0..METHODS)
        .flat_map(|method| {
            [(BatchKind::Entry, 0), (BatchKind::Exit, 1)].map(|(kind, more)| (kind, method, more))
        })
        .map(|(kind, method, more)| BatchEvent { kind, method, delta: 2 * method + more }.to_bytes())
        .collect();
    let batches = (0..threads).flat_map(|thread| {
        let batch = Batch { thread, sequence: 0, base: 0, rows: Rows::new(&rows) };
        say(Dialect::F1, &Message::Batch(batch))
    });
    names.chain(batches).collect()
}

/// Returns the peak memory of a program so far, without file mappings.
pub(crate) fn peak(id: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let of = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()
    };
    Some(of("VmHWM:")?.saturating_sub(of("RssFile:")?) * 1024)
}

/// Checks the peak memory of a program until it exits.
#[track_caller]
fn most(child: &mut Child, what: &str) {
    let id = child.id();
    let mut most = 0;
    eventually("its end", || {
        most = most.max(peak(id).unwrap_or(0));
        child.try_wait().unwrap()
    });
    assert!(most > 0 && most <= MAX_BYTES, "{what}: {most} bytes");
}

#[test]
fn reports_of_a_large_trace_stay_within_the_bar() {
    let folder = folder();
    fs::write(folder.path().join("agent0.ctl.a2h.bin"), [0, 0xf1]).unwrap();
    fs::write(folder.path().join("agent0.data0.a2h.bin"), [vec![0x1e, 0], calls(THREADS)].concat()).unwrap();
    let path = folder.path().to_str().unwrap();
    let all: [&[&str]; 3] =
        [&["threads"], &["--to", "folded", "-o", "-"], &["--to", "folded", "--view", "calls", "-o", "-"]];
    for words in all {
        let mut report = command([&["jvm", "report", path][..], words].concat());
        report.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut report = report.spawn().unwrap();
        most(&mut report, &words.join(" "));
    }
}

/// The live view of all threads, of one thread, and of the methods.
#[test]
fn the_live_view_of_a_large_trace_stays_within_the_bar() {
    let mut terminal = Terminal::start(command(["jvm", "hq", "--listen", "127.0.0.1:0"]), 100);
    let address = eventually("an address", || {
        let raw = terminal.raw();
        let (_, rest) = raw.split_once("bytefrog-tracer.jar=")?;
        rest.split(|c: char| c.is_whitespace() || c == '\x1b').next()?.parse().ok()
    });
    let mut agent = FakeAgent::connect(address, Dialect::F1).unwrap();
    agent.run(&[begin_f1(), vec![Step::Data(0, calls(WATCHED_THREADS))]].concat()).unwrap();
    // All data has arrived: a view of a part has other threads.
    wait_for_row(&terminal, "50,000 calls");
    let mut most = 0;
    for (keys, text) in
        [("2", ".method"), ("1", ".method"), ("t", ", thread 0"), ("t", ", thread 1"), ("2", ".method")]
    {
        terminal.type_in(keys);
        wait_for_row(&terminal, text);
        most = most.max(peak(terminal.id()).unwrap());
    }
    agent.run(&end()).unwrap();
    wait_for_row(&terminal, "ended");
    most = most.max(peak(terminal.id()).unwrap());
    terminal.type_in("q");
    let (text, code) = terminal.wait();
    assert_eq!(code, Some(0), "{text}");
    assert!(most <= MAX_WATCHED_BYTES, "{most} bytes");
}

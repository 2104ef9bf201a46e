//! Growing files and streams: the output and the retained memory stay bounded, and truncation by a limit is reported.
//! docs/reliability.md lists the limits, and the cost of these streams at full size.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use flate2::write::GzEncoder;
use runtap_testkit::hostile::{Growth, deep_stacks, serve};
use runtap_testkit::{Finished, Running, eventually, run};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::cli_jvm_memory::peak;
use crate::common::{command, folder, runtap};

/// Writes a recording of a thread with two deep stacks.
fn two_deep_stacks(depth: u32, samples: u32, path: &Path) {
    deep_stacks(depth, samples, &mut BufWriter::new(File::create(path).unwrap())).unwrap();
}

#[test]
fn deep_stacks_that_come_and_go_make_no_huge_files() {
    let folder = folder();
    let file = folder.path().join("deep.nettrace");
    two_deep_stacks(8000, 400, &file);
    let file = file.to_str().unwrap();
    let out = folder.path().join("out");
    let out = out.to_str().unwrap();
    let convert = |more: &[&str], code| {
        let done = runtap([&["convert", file, "-o", out, "--format", "json"], more].concat());
        let summary: Value = done.expect_code(code).json();
        (summary["outputs"][0].clone(), done)
    };
    for (options, most) in [
        (&["--to", "speedscope"][..], 400 * 1024 * 7),
        (&["--to", "speedscope", "--evented"], 400 * 2048 * 48),
        (&["--to", "chrome"], 400 * 2048 * 120),
        (&["--to", "perfetto"], 400 * 2048 * 40),
        (&["--to", "firefox"], 1 << 18),
        (&["--to", "pprof"], 1 << 18),
        (&["--to", "folded"], 2 * 1024 * 32),
        (&["--to", "flamegraph"], 2 * 1024 * 600),
    ] {
        let (output, done) = convert(options, 0);
        done.says("2 stacks truncated to the first and last 512 frames; the deepest has 8,000 frames")
            .says("--max-depth");
        assert_eq!((&output["deep_stacks"], &output["cut_at_ns"]), (&json!(2), &Value::Null), "{options:?}");
        let bytes = output["bytes"].as_u64().unwrap();
        assert!(bytes > 1000 && bytes < most, "{options:?}: {bytes} bytes");
    }

    // The complete stacks are available on request.
    let (output, _) = convert(&["--to", "folded", "--max-depth", "0"], 0);
    assert_eq!(output["deep_stacks"], 0);
    let folded = fs::read_to_string(out).unwrap();
    assert!(folded.lines().all(|line| line.split(';').count() == 8001), "the thread and all frames");
    let (output, _) = convert(&["--to", "folded", "--max-depth", "10"], 0);
    assert_eq!(output["deep_stacks"], 2);
    let folded = fs::read_to_string(out).unwrap();
    assert!(folded.lines().all(|line| line.split(';').count() == 11 && line.contains("[frames left out]")));
    let weights: u64 =
        folded.lines().map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum();
    assert_eq!(weights, 400_000_000, "no time is lost");
}

#[test]
fn a_file_that_would_be_too_large_is_truncated_and_reported() {
    let folder = folder();
    let file = folder.path().join("deep.nettrace");
    two_deep_stacks(1000, 400, &file);
    let out = folder.path().join("out.json");
    for options in [&["--to", "speedscope"][..], &["--to", "speedscope", "--evented"], &["--to", "chrome"]] {
        let files =
            [file.to_str().unwrap(), "-o", out.to_str().unwrap(), "--format", "json", "--max-size", "1"];
        let done = runtap([&["convert"], &files[..], options].concat());
        let summary = done.expect_code(5).says("--max-size").json();
        let output = &summary["outputs"][0];
        let cut = output["cut_at_ns"].as_u64().unwrap();
        assert!(cut > 1_000_000 && cut < 399_000_000, "{options:?}: {cut}");
        let written = fs::read(&out).unwrap();
        assert!(written.len() < 2 << 20, "{options:?}: {}", written.len());
        assert!(serde_json::from_slice::<Value>(&written).is_ok(), "whole as a document");
    }
    let done = runtap([
        "convert",
        file.to_str().unwrap(),
        "-o",
        out.to_str().unwrap(),
        "--to",
        "chrome",
        "--max-size",
        "0",
    ]);
    done.expect_code(0);
    assert!(fs::metadata(&out).unwrap().len() > 20 << 20);
}

#[test]
fn stacks_of_events_are_shortened() {
    let folder = folder();
    let file = folder.path().join("deep.nettrace");
    two_deep_stacks(5000, 3, &file);
    let lines = runtap(["events", file.to_str().unwrap(), "--stacks"]);
    for line in lines.expect_code(0).text().lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        let stack = event["stack"].as_array().unwrap();
        assert_eq!((stack.len(), &stack[512]), (1024, &json!("[3977 frames left out]")));
    }
}

/// Runs `runtap` with limited address space, which includes the program and the stacks of its threads.
pub(crate) fn run_with_memory(megabytes: u64, arguments: &[&str]) -> Finished {
    let mut command = Command::new("sh");
    let script = format!("ulimit -v {}; exec \"$0\" \"$@\" > /dev/null", megabytes << 10);
    command.arg("-c").arg(script).arg(env!("CARGO_BIN_EXE_runtap")).args(arguments);
    run(command)
}

/// The size of the streams, and the megabytes for reading one: a debug build's own memory, and the contents of its
/// tables.
const STREAM_SIZE: u64 = 3 << 20;
const MAX_MEGABYTES: u64 = 512;

fn check_file(growth: Growth) {
    let folder = folder();
    let path = folder.path().join("hostile.nettrace");
    growth.write(STREAM_SIZE, &mut BufWriter::new(File::create(&path).unwrap())).unwrap();
    let (file, out) = (path.to_str().unwrap(), folder.path().join("out"));
    let out = out.to_str().unwrap();
    // No end marker: partial.
    run_with_memory(MAX_MEGABYTES, &["events", file]).expect_code(5);
    run_with_memory(MAX_MEGABYTES, &["events", file, "--count"]).expect_code(5);
    run_with_memory(MAX_MEGABYTES, &["report", file, "threadpool"]).expect_code(5);
    run_with_memory(MAX_MEGABYTES, &["inspect", file]).expect_code(5);
    run_with_memory(MAX_MEGABYTES, &["inspect", file, "--format", "json"]).expect_code(5);
    run_with_memory(MAX_MEGABYTES, &["repair", file, "-o", out]).expect_code(0);
    let converted = run_with_memory(
        MAX_MEGABYTES,
        &["convert", file, "--to", "folded", "-o", out, "--view", "thread-time"],
    );
    assert!(matches!(converted.code(), Some(1 | 5)), "{growth:?}: {converted:?}");
}

fn check_live(growth: Growth) {
    let folder = folder();
    let socket = folder.path().join("runtime");
    serve(growth, STREAM_SIZE, &socket);
    let port = format!("{},connect", socket.display());
    run_with_memory(MAX_MEGABYTES, &["tail", "--diagnostic-port", &port, "--providers", "Hostile"])
        .expect_code(5);
    let out = folder.path().join("out.nettrace");
    let out = out.to_str().unwrap();
    let traced = run_with_memory(MAX_MEGABYTES, &["trace", "--diagnostic-port", &port, "-o", out]);
    traced.expect_code(5);
    assert!(fs::metadata(out).unwrap().len() >= STREAM_SIZE, "{growth:?}: what was received is there");
}

/// A thread takes more memory than the fifteen bytes that describe it, and several times as much in a profile.
#[test]
fn threads_beyond_the_limit_are_left_out_of_profiles() {
    let folder = folder();
    let (path, socket, out) =
        (folder.path().join("hostile.nettrace"), folder.path().join("runtime"), folder.path().join("out"));
    let (threads, less, out) = (10 << 20, 320, out.to_str().unwrap());
    Growth::Threads.write(threads, &mut BufWriter::new(File::create(&path).unwrap())).unwrap();
    let file = path.to_str().unwrap();
    let said = "because of too many threads (more than 262,144)";
    let to = ["--to", "folded", "--view", "thread-time"];
    let converted = run_with_memory(less, &[&["convert", file, "-o", out], &to[..]].concat());
    converted.expect_code(5).says(said).says("the end marker is missing");
    // The lines of the retained threads, each with its only sample.
    assert_eq!(fs::read_to_string(out).unwrap().lines().count(), 262_144);
    run_with_memory(less, &["report", file, "cpu", "--view", "thread-time"]).expect_code(5).says(said);

    serve(Growth::Threads, threads, &socket);
    let port = format!("{},connect", socket.display());
    let traced = run_with_memory(
        MAX_MEGABYTES,
        &[&["trace", "--diagnostic-port", &port, "-o", out], &to[..]].concat(),
    );
    traced.expect_code(5).says(said);
    assert_eq!(fs::read_to_string(out).unwrap().lines().count(), 262_144);
}

/// Defines a test for each stream, so that they run in parallel.
macro_rules! each {
    ($($name:ident: $growth:ident,)*) => {
        mod files {
            use super::*;
            $(#[test] fn $name() { check_file(Growth::$growth); })*
        }
        mod live {
            use super::*;
            $(#[test] fn $name() { check_live(Growth::$growth); })*
        }
        #[test]
        fn every_growth_has_its_tests() {
            assert_eq!([$(Growth::$growth),*], Growth::ALL);
        }
    };
}

each! {
    definitions: Definitions,
    fields: Fields,
    names: Names,
    stacks: Stacks,
    empty_stacks: EmptyStacks,
    threads: Threads,
    methods: Methods,
    unordered: Unordered,
    blocks: Blocks,
    thread_rows: ThreadRows,
    attributes: Attributes,
    labels: Labels,
    long_list: LongList,
    taken_back: TakenBack,
    points: Points,
}

/// The maximum memory for rows of a file, whatever their number, without the executable.
const MAX_ROW_MEMORY: u64 = 64 << 20;

/// Runs a verb over a file and discards the output; returns the exit code and the peak memory.
fn memory_of(words: &[&str], file: &Path) -> (Option<i32>, u64) {
    let mut verb = command(words.iter().map(OsStr::new).chain([file.as_os_str()]));
    verb.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = verb.spawn().unwrap();
    let mut most = 0;
    let status = eventually("its end", || {
        most = most.max(peak(child.id()).unwrap_or(0));
        child.try_wait().unwrap()
    });
    (status.code(), most)
}

fn gzip(write: impl FnOnce(&mut dyn Write)) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::best());
    write(&mut encoder);
    encoder.finish().unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn rows_are_printed_immediately_and_a_bomb_is_not_read_completely() {
    let folder = folder();
    let line = |kind: &str, conn: u32| format!("{{\"kind\":\"{kind}\",\"t\":0,\"conn\":\"c{conn}\"}}\n");
    let header = "{\"kind\":\"header\",\"t\":0,\"protocol\":\"diagnostic-ipc\"}\n";
    let (rows, opens) = (folder.path().join("rows.jsonl"), folder.path().join("opens.jsonl"));
    fs::write(&rows, [header, &line("close", 0).repeat(60_000)].concat()).unwrap();
    fs::write(&opens, (0..(1 << 18) + 10).fold(header.to_owned(), |text, conn| text + &line("open", conn)))
        .unwrap();
    let bomb = folder.path().join("bomb.jsonl.gz");
    let lines = line("close", 0).repeat(1 << 15);
    fs::write(&bomb, gzip(|out| out.write_all(lines.as_bytes()).unwrap())).unwrap();

    for verb in [&["mtp", "inspect", "--format", "json"][..], &["inspect", "--format", "json"]] {
        let (code, most) = memory_of(verb, &rows);
        assert!(code == Some(0) && most > 0 && most < MAX_ROW_MEMORY, "{verb:?}: {code:?}, {most} bytes");
        // More connections than are retained.
        let (code, most) = memory_of(verb, &opens);
        assert!(code == Some(5) && most < MAX_ROW_MEMORY, "{verb:?}: {code:?}, {most} bytes");
    }
    let document = runtap([
        OsStr::new("mtp"),
        "inspect".as_ref(),
        "--format".as_ref(),
        "json".as_ref(),
        opens.as_os_str(),
    ]);
    let document: Value = document.expect_code(5).says("has more than 262144 connections").json();
    assert_eq!(document["connections"], 1 << 18);
    assert_eq!(document["rows"].as_array().unwrap().len(), (1 << 18) + 1);
    let limited = runtap([
        OsStr::new("mtp"),
        "inspect".as_ref(),
        "--max-size".as_ref(),
        "1".as_ref(),
        bomb.as_os_str(),
    ]);
    limited.expect_code(5).says("decompressed data exceeds 1048576 bytes");
    let limited = runtap([OsStr::new("replay"), "--max-size".as_ref(), "1".as_ref(), bomb.as_os_str()]);
    limited.expect_code(2).says("decompressed data exceeds 1048576 bytes");
    // Retained transcripts are bounded too.
    run_with_memory(MAX_MEGABYTES, &["replay", opens.to_str().unwrap()])
        .expect_code(2)
        .says("more than 262144 connections");
}

/// The maximum memory for a recording of test applications in a debug build: the state of the connections.
#[cfg(target_os = "linux")]
#[test]
fn recordings_of_test_applications_take_bounded_memory() {
    const MAX_HELD_MEMORY: u64 = 512 << 20;
    let folder = folder();
    let line = |kind: &str, conn: u32| format!("{{\"kind\":\"{kind}\",\"t\":0,\"conn\":\"c{conn}\"}}\n");
    let header = "{\"kind\":\"header\",\"t\":0,\"protocol\":\"diagnostic-ipc\"}\n";
    let (rows, opens) = (folder.path().join("rows.jsonl"), folder.path().join("opens.jsonl"));
    fs::write(&rows, [header, &line("close", 0).repeat(200_000)].concat()).unwrap();
    fs::write(&opens, (0..(1 << 18) + 10).fold(header.to_owned(), |text, conn| text + &line("open", conn)))
        .unwrap();
    let script = folder.path().join("script");
    let script = script.to_str().unwrap();
    for verb in [
        &["mtp", "inspect"][..],
        &["mtp", "lint"],
        &["mtp", "lint", "--format", "json"],
        &["mtp", "replay", "--write-module", script],
        &["mtp", "replay", "--pipe", "/nonexistent/server"],
    ] {
        let (code, most) = memory_of(verb, &rows);
        assert!(code.is_some() && most > 0 && most < MAX_ROW_MEMORY, "{verb:?}: {code:?}, {most} bytes");
        let (code, most) = memory_of(verb, &opens);
        assert!(code.is_some() && most > 0 && most < MAX_HELD_MEMORY, "{verb:?}: {code:?}, {most} bytes");
    }
}

/// A name or output that a test command prints once for many tests is not copied for each test, neither by the
/// application that reads it nor by the run that receives the results.
#[test]
fn results_of_a_test_command_take_bounded_memory() {
    const TESTS: usize = 1500;
    // Several processes with many threads, but less than a copy for each test.
    const MEGABYTES: u64 = 800;
    let folder = folder();
    let long = "a".repeat(1 << 20);
    let tests = |line: &str| line.repeat(TESTS);
    let junit =
        format!("<testsuites><testsuite name='{long}'>{}</testsuite></testsuites>", tests("<testcase/>"));
    let tap =
        format!("TAP version 13\n# Subtest: {long}\n{}    1..{TESTS}\nok 1 - s\n1..1\n", tests("    ok\n"));
    let libtest = format!(
        "     Running a (target/{long}-0123456789abcdef)\nrunning {TESTS} tests\n{}test result: ok.\n",
        tests("test a ... ok\n")
    );
    let go_line = |fields: &str| format!("{{\"Package\":\"p\",{fields}}}\n");
    let begun: String =
        (0..TESTS).map(|test| go_line(&format!("\"Action\":\"run\",\"Test\":\"T{test}\""))).collect();
    let go = go_line(&format!("\"Action\":\"output\",\"Output\":\"{long}\"")) + &begun;
    let go = go + &go_line("\"Action\":\"fail\"");
    for (format, text, code) in
        [("junit", junit, 0), ("tap", tap, 0), ("libtest", libtest, 0), ("go-json", go, 2)]
    {
        let at = |name: &str| folder.path().join(format!("{format}-{name}")).to_str().unwrap().to_owned();
        let (printed, report, module) = (at("printed"), at("report"), at("module"));
        fs::write(&printed, text).unwrap();
        let host = ["mtp", "host", "--from", format, "--write-module", &module];
        let command = match format {
            "junit" => &["--report", &report, "--", "cp", &printed, &report][..],
            _ => &["--", "cat", &printed],
        };
        runtap([&host[..], command].concat()).expect_code(0);
        run_with_memory(MEGABYTES, &["test", "--no-history", &module]).expect_code(code);
    }
}

#[test]
fn compressed_recordings_are_read_and_files_of_other_tools_are_named() {
    let folder = folder();
    let (plain, packed) = (folder.path().join("a.nettrace"), folder.path().join("b.nettrace.gz"));
    two_deep_stacks(10, 20, &plain);
    let bytes = fs::read(&plain).unwrap();
    fs::write(&packed, gzip(|out| out.write_all(&bytes).unwrap())).unwrap();
    let text = |file: &Path| {
        let [events, inspect] = [&["events"][..], &["inspect"]].map(|words| {
            runtap(words.iter().map(OsStr::new).chain([file.as_os_str()])).expect_code(0).text().to_owned()
        });
        (events, inspect)
    };
    assert_eq!(text(&packed), text(&plain));

    // Two recordings in one file: every verb reports the unread part.
    fs::write(&plain, [&bytes[..], &bytes].concat()).unwrap();
    for words in [&["events"][..], &["events", "--count"], &["report"]] {
        let mut words: Vec<_> = words.iter().map(OsStr::new).chain([plain.as_os_str()]).collect();
        words.extend((words[0] == "report").then_some(OsStr::new("events")));
        runtap(words).expect_code(5).says("another recording").says("is not read");
    }
    let repaired = runtap([OsStr::new("repair"), "--format".as_ref(), "json".as_ref(), plain.as_os_str()]);
    let repaired = repaired.expect_code(5).says("follow the end marker").json();
    assert_eq!(
        (&repaired["bytes_after_end"], &repaired["output"]),
        (&json!(bytes.len()), &Value::Null),
        "{repaired:#}"
    );

    let other = folder.path().join("page.html");
    fs::write(&other, "<!DOCTYPE html><html></html>").unwrap();
    for verb in ["events", "inspect", "repair"] {
        runtap([OsStr::new(verb), other.as_os_str()]).expect_code(2).says("is a web page or a flame graph");
    }
}

/// The owner of the folder may have replaced a transcript by a pipe that has no writer.
#[cfg(unix)]
#[test]
fn a_pipe_in_place_of_a_transcript_does_not_block() {
    let folder = folder();
    let pipe = folder.path().join("x.jsonl");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let replay = Running::start(command(["replay", pipe.to_str().unwrap()]));
        let status = format!("/proc/{}/status", replay.id());
        eventually("it hears signals", || {
            let status = fs::read_to_string(&status).ok()?;
            let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"))?;
            let caught = u64::from_str_radix(mask.trim(), 16).ok()?;
            (caught & 1 << (signal.as_raw() - 1) != 0).then_some(())
        });
        replay.signal(signal);
        replay.wait().expect_code(code).says("interrupted");
    }
}

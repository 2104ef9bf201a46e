//! The output of `trace` equals the received bytes, for every kind of output and any chunks, with equal figures.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex, mpsc};

use runtap_testkit::{Running, Signal, Skip, eventually, replay, require, shared_data};
use serde_json::Value;

use crate::common::{command, folder, json, runtap};

/// Complete, truncated and damaged streams, a stream of the newest version, and one that is not a recording.
fn streams() -> Result<Vec<Vec<u8>>, Skip> {
    let whole = shared_data("nettrace/net10/cpu-spin.nettrace.zst")?;
    let newest = shared_data("nettrace/record-trace-v6-5k.nettrace.zst")?;
    let cut = whole[..whole.len() * 2 / 3].to_vec();
    let mut damaged = whole.clone();
    let middle = damaged.len() / 2;
    damaged[middle..middle + 64].fill(0xff);
    Ok(vec![whole, newest, cut, damaged, b"no recording".repeat(100)])
}

fn trace(socket: &Path, output: &Path) -> Command {
    let port = format!("{},connect", socket.display());
    let mut command = command(["trace", "--diagnostic-port", &port, "--format", "json", "-o"]);
    command.arg(output);
    command
}

fn figures(summary: &Value) -> [&Value; 5] {
    [
        &summary["events"],
        &summary["lost"],
        &summary["bytes"],
        &summary["partial"],
        &summary["processes"][0]["notes"],
    ]
}

/// Pipes and files opened for appending are written by a separate thread, ordinary files by the thread that reads the
/// socket.
#[test]
fn every_output_gets_the_received_bytes() {
    for (seed, bytes) in (1..).zip(require!(streams())) {
        let folder = folder();
        let place = |name: &str| folder.path().join(name);
        let socket = place("runtime");
        let served = bytes.clone();
        replay::serve(&socket, move |mut client| replay::in_odd_pieces(&served, seed, &mut client));

        let file = place("file.nettrace");
        let to_file = runtap_testkit::run(trace(&socket, &file));
        assert!(fs::read(&file).unwrap() == bytes, "{seed}");
        let (code, summary) = (to_file.code().unwrap(), to_file.json());
        assert_eq!(summary["bytes"], bytes.len());

        let pipe = place("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        let copy = place("copy");
        let mut cat = Command::new("cat").arg(&pipe).stdout(File::create(&copy).unwrap()).spawn().unwrap();
        let to_pipe = runtap_testkit::run(trace(&socket, &pipe));
        cat.wait().unwrap();
        assert!(fs::read(&copy).unwrap() == bytes, "{seed}");
        assert_eq!(figures(&to_pipe.expect_code(code).json()), figures(&summary), "{seed}");

        let log = place("log");
        fs::write(&log, "before").unwrap();
        let mut appending = trace(&socket, Path::new("-"));
        appending.stdout(OpenOptions::new().append(true).open(&log).unwrap());
        let appended = Running::start_as_it_is(appending).wait();
        assert!(fs::read(&log).unwrap() == [b"before", &bytes[..]].concat(), "{seed}");
        let (_, document) = appended.stderr.split_once('{').unwrap();
        let told: Value = serde_json::from_str(&format!("{{{document}")).unwrap();
        assert_eq!(figures(&told), figures(&summary), "{seed}");
        appended.expect_code(code);

        // The figures are those of the file.
        if summary["partial"].is_null() {
            let counted = json(["events", file.to_str().unwrap(), "--count", "--format", "json"]);
            assert_eq!(counted["events"], summary["events"], "{seed}");
        }
    }
}

/// Returns the names of a process's threads.
fn threads(pid: u32) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    tasks
        .filter_map(|task| Some(fs::read_to_string(task.path().join("comm")).ok()?.trim().to_owned()))
        .collect()
}

/// One thread moves the bytes of a file, and every received byte is written at once. A pipe without a reader does not
/// keep runtap from reading the socket.
#[test]
fn a_file_is_written_by_the_thread_that_reads_the_socket() {
    let bytes = require!(shared_data("nettrace/net10/cpu-spin.nettrace.zst"));
    let folder = folder();
    let socket = folder.path().join("runtime");
    let half = bytes.len() / 2;
    let (go_on, wait) = mpsc::channel::<()>();
    let (served, wait) = (bytes.clone(), Arc::new(Mutex::new(wait)));
    replay::serve(&socket, move |mut client| {
        client.write_all(&served[..half])?;
        let _ = wait.lock().unwrap().recv();
        // Until runtap has exited.
        while client.write_all(&served[half..]).is_ok() {}
        Ok(())
    });
    let file = folder.path().join("file.nettrace");
    let tracing = Running::start(trace(&socket, &file));
    eventually("half of it", || {
        fs::metadata(&file).is_ok_and(|meta| meta.len() >= half as u64).then_some(())
    });
    assert!(threads(tracing.id()).iter().any(|name| name == "recorder"));
    go_on.send(()).unwrap();
    eventually("the end of the other thread", || {
        (!threads(tracing.id()).iter().any(|name| name == "drain")).then_some(())
    });
    tracing.signal(Signal::KILL);
    tracing.wait();
    let written = fs::read(&file).unwrap();
    assert!(written.len() >= half && written[..half] == bytes[..half], "{} bytes", written.len());
    let counted = runtap(["events", file.to_str().unwrap(), "--count"]);
    assert!(counted.code() == Some(5) || counted.code() == Some(0), "{counted}");
}

/// Errors that an event source reports about itself are also shown by verbs that print no events.
#[test]
fn errors_reported_by_an_event_source_are_shown() {
    let bytes = require!(shared_data("reports/net/recordings/eventsource-error.nettrace"));
    let folder = folder();
    let socket = folder.path().join("runtime");
    replay::serve(&socket, move |mut client| client.write_all(&bytes));
    let port = format!("{},connect", socket.display());
    let out = folder.path().join("out.nettrace");
    let error =
        "Evil-Broken can't send some of its events; it reports: ERROR: Exception in Command Processing";
    let trace =
        runtap(["trace", "--diagnostic-port", &port, "-o", out.to_str().unwrap(), "--format", "json"]);
    let document = trace.expect_code(0).says(error).says("event ID 1 but 2 was passed").json();
    let notes = document["processes"][0]["notes"].as_array().unwrap();
    assert!(notes.iter().any(|note| note.as_str().unwrap().starts_with(error)), "{document:#}");
    let tail =
        runtap(["tail", "--diagnostic-port", &port, "--providers", "Evil-Broken", "--provider", "Other"]);
    tail.expect_code(0).says(error).says("no event has a provider named 'Other'");
}

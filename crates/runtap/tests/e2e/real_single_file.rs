//! A program that has its runtime and all of its assemblies in one file: no libcoreclr.so to identify it by, no host,
//! no file of its entry assembly. It is found, queried, recorded and named anyway.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Stdio};

use runtap_testkit::{eventually, require, run, single_file_program};
use serde_json::Value;

use crate::common::{beside_others, count_of, counts, folder, json, ps_row, runtap, trace_of};

/// A server that exits at the end of its input, and is killed if it does not.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        // The process may have exited already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The first message of a client of this program. The answer arrives when the program's own code runs, as the recording
/// expects. A runtime answers long before that, when on a slow disk no managed code has run yet.
const HELLO: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"runtap-test","version":"1"}}}"#;

impl Server {
    /// Sends the hello, and waits for the answer.
    fn greet(&mut self) {
        writeln!(self.0.stdin.as_ref().unwrap(), "{HELLO}").unwrap();
        let mut answer = String::new();
        BufReader::new(self.0.stdout.as_mut().unwrap()).read_line(&mut answer).unwrap();
        assert!(answer.starts_with(r#"{"result":"#), "{answer:?}");
    }
}

/// Returns the functions that a profile names, and the number of unnamed ones.
fn frames(profile: &[u8]) -> (Vec<String>, usize) {
    let profile: Value = serde_json::from_slice(profile).unwrap();
    let frames = profile["shared"]["frames"].as_array().unwrap().iter();
    let names: Vec<String> = frames.map(|frame| frame["name"].as_str().unwrap().to_owned()).collect();
    let unknown = names.iter().filter(|name| name.contains("!0x")).count();
    (names, unknown)
}

#[test]
fn real_single_file_programs_are_like_any_other() {
    let _machine = beside_others();
    let mut command = require!(single_file_program());
    let folder = folder();
    command.args(["server", "start"]).env("TMPDIR", folder.path()).env("HOME", folder.path());
    let server = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut server = Server(server);
    let pid = server.0.id();
    let p = pid.to_string();
    eventually("its runtime", || (runtap(["info", &p]).code() == Some(0)).then_some(()));

    let row = ps_row(pid);
    assert_eq!(
        (&row["kind"], &row["name"], &row["reachable"]),
        (&"dotnet".into(), &"azmcp".into(), &true.into()),
        "{row:#}"
    );
    let info = json(["info", &p, "--format", "json"]);
    assert_eq!((&info["pid"], &info["entry_assembly"]), (&pid.into(), &"azmcp".into()));
    assert!(info["runtime_version"].as_str().unwrap().starts_with("10."), "{info:#}");
    eventually("its program", || {
        (json(["info", &p, "--format", "json"])["suspended"] == false).then_some(())
    });
    let judged = json(["doctor", &p, "--format", "json"]);
    assert_eq!(judged["reachable"], true, "{judged:#}");
    // A single-file program contains createdump.
    let mut findings = judged["findings"].as_array().unwrap().iter();
    assert!(findings.all(|finding| finding["severity"] == "info"), "{judged:#}");

    server.greet();
    let file = folder.path().join("x.nettrace");
    let formats = ["--to", "nettrace,speedscope", "--format", "json", "--duration", "1s"];
    let trace = ["trace", &p, "-o", file.to_str().unwrap()];
    let summary = json(trace.into_iter().chain(formats));
    assert_eq!((&summary["partial"], &summary["processes"][0]["name"]), (&Value::Null, &"azmcp".into()));
    let (names, unknown) = frames(&fs::read(file.with_extension("speedscope.json")).unwrap());
    assert!(names.iter().any(|name| name.starts_with("azmcp!") && name.contains(".<Main>(")), "{names:?}");
    assert!(
        names.iter().any(|name| name.starts_with("System.Private.CoreLib!System.Threading.")),
        "{names:?}"
    );
    assert!(unknown * 10 < names.len(), "{unknown} of {} have no name", names.len());

    // The runtime of a single-file program supports no other types.
    let core = folder.path().join("x.core");
    let dump = ["dump", &p, "--type", "mini", "-o", core.to_str().unwrap()];
    runtap(dump).expect_code(4).says("Only full dumps").says("--type full");
    assert_eq!(json(["info", &p, "--format", "json"])["pid"], pid, "it lives");

    drop(server.0.stdin.take());
    eventually("its end", || server.0.try_wait().unwrap());
}

#[test]
fn real_single_file_programs_are_recorded_from_their_first_event() {
    let _machine = beside_others();
    let mut command = require!(single_file_program());
    let folder = folder();
    command.arg("--version").env("TMPDIR", folder.path()).env("HOME", folder.path());
    let file = folder.path().join("x.nettrace");
    let options = ["--format", "json", "-o", file.to_str().unwrap()];
    let summary = run(trace_of(options, &command)).expect_code(0).json();
    assert_eq!((&summary["partial"], &summary["lost"]), (&Value::Null, &0.into()), "{summary:#}");
    assert_eq!(count_of(&counts(&file, 0), "Microsoft-Windows-DotNETRuntime", 187), 1);
}

//! Recordings right after a session whose client vanished: a runtime may disable their events together with those of
//! the ended session. No recording is incomplete without a message.

use runtap_diag::blocking::Client;
use runtap_diag::{Level, Provider, SessionConfig};
use runtap_testkit::{RealRuntime, Skip};
use runtap_transport::Endpoint;
use serde_json::Value;

use crate::common::{Target, runtap};

on_each_runtime!(no_recording_is_incomplete_without_a_message);

/// Ten by default: some of them are incomplete on most machines. `RUNTAP_ABANDONED=100` runs the complete test
/// (docs/reliability.md).
fn tries() -> u32 {
    std::env::var("RUNTAP_ABANDONED").map_or(10, |n| n.parse().expect("RUNTAP_ABANDONED is a number"))
}

#[expect(clippy::print_stderr, reason = "how often it happened is what the whole is run for")]
fn no_recording_is_incomplete_without_a_message(runtime: &RealRuntime) -> Result<(), Skip> {
    let target = Target::start(runtime.program("storm", &["2", "1000", "8", "600"])?);
    let client = Client::new(Endpoint::unix(target.socket())).expect("an event loop");
    let provider = Provider::new("Demo-Storm", 7, Level::Verbose);
    let file = target.temp.path().join("x.nettrace");
    let mut short = 0;
    for _ in 0..tries() {
        let session = client.start_session(&SessionConfig::new(vec![provider.clone()]));
        drop(session.expect("the target takes a session"));
        let trace = runtap([
            "trace",
            "-p",
            &target.p(),
            "--providers",
            "Demo-Storm:7:5",
            "--rundown=false",
            "--duration=0.6",
            "--format=json",
            "-o",
            file.to_str().unwrap(),
        ]);
        let summary = trace.expect_code(0).json();
        let events = runtap(["events", "--provider", "Demo-Storm", file.to_str().unwrap()]);
        let time = |line: &str| serde_json::from_str::<Value>(line).unwrap()["ts_ns"].as_u64().unwrap();
        let times: Vec<u64> = events.expect_code(0).text().lines().map(time).collect();
        let last = times.last().copied().unwrap_or(0);
        // On a busy machine, the program itself occasionally pauses.
        let pause = times.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0);
        let (end, notes) = (summary["duration_ns"].as_u64().unwrap(), &summary["processes"][0]["notes"]);
        if last < end / 2 && pause * 10 < end - last {
            short += 1;
            let note =
                notes[0].as_str().unwrap_or_else(|| panic!("{last} of {end} ns without a word: {trace}"));
            assert!(note.contains("Demo-Storm") && note.contains("another session"), "{note}");
            trace.says(note);
        }
    }
    eprintln!("{short} of {} recordings were short, and said so", tries());
    target.still_answers();
    Ok(())
}

//! Reports of agents that were killed before they had sent their counts: the calls are unknown, and no report claims
//! that there were none.

use std::fs;
use std::path::Path;

use runtap_bytefrog_proto::f1::{Count, CountRows, Hit, HitRows, Rows};
use runtap_bytefrog_proto::{Dialect, Message};
use runtap_testkit::Finished;
use runtap_testkit::fake_agent::say;
use serde_json::{Value, json};

use crate::cli_jvm_kept::{named, recording};
use crate::common::{folder, runtap};

/// Writes a recording whose control connection ends although no heartbeat has announced the agent's exit.
fn killed(folder: &Path, mode: &str, data: &[Message<'_>]) -> String {
    let path = recording(folder, data);
    let configuration = format!("{{\"runId\":0,\"record\":\"{mode}\"}}");
    let said = Message::Configuration { payload: configuration.as_bytes() };
    fs::write(folder.join("agent0.ctl.h2a.bin"), say(Dialect::F1, &said)).unwrap();
    let control = folder.join("agent0.ctl.a2h.bin");
    let length = fs::metadata(&control).unwrap().len();
    fs::write(control.with_extension("chunks.tsv"), format!("1.000000\t{length}\n2.000000\tEOF\n")).unwrap();
    path
}

fn report(words: &[&str]) -> Finished {
    runtap([&["jvm", "report"], words].concat())
}

#[test]
fn counts_that_a_killed_agent_has_not_sent_are_unknown() {
    let dir = folder();
    let unknown = "nothing is known of calls: the agent ended before it had sent any";
    for mode in ["counts", "coverage"] {
        let path = killed(&dir.path().join(mode), mode, &[]);
        let whole = report(&[&path]);
        let text = whole.expect_code(0).says("FROG016").text();
        assert!(text.contains(unknown) && !text.contains("0 calls"), "{text}");
        for kind in ["methods", "tree", "threads", "exceptions"] {
            let one = report(&[&path, kind]);
            let text = one.expect_code(0).text();
            assert!(text.contains(unknown) && !text.contains("no method was called"), "{kind}: {text}");
        }
        let document = report(&[&path, "--format", "json"]).expect_code(0).json();
        for member in ["entries", "exits", "bubbles"] {
            assert_eq!(document["agents"][0][member], Value::Null, "{document:#}");
        }
        let together = report(&[&path, "--merge-agents"]);
        assert!(together.expect_code(0).text().contains(unknown), "{together}");
        report(&[&path, "--to", "folded"]).expect_code(1).says(unknown);
    }
    // Counts that an agent has sent before are known.
    let count = [Count { method: 1, calls: 3, thrown: 1, nanoseconds: 0 }.to_bytes()];
    let counts = CountRows { snapshot: 0, time: 5, last: true, reset: false, rows: Rows::new(&count) };
    let counts = Message::Counts(counts);
    let path = killed(&dir.path().join("later"), "counts", &[named(1, "a/A.run;1;()V"), counts]);
    let document = report(&[&path, "--format", "json"]).expect_code(0).json();
    assert_eq!(
        (&document["agents"][0]["entries"], &document["agents"][0]["bubbles"]),
        (&json!(3), &json!(1))
    );
    // An agent that exited properly and counted nothing had no calls.
    let path = recording(&dir.path().join("whole"), &[]);
    let text = report(&[&path, "methods"]);
    assert!(text.expect_code(0).text().contains("no method was called"), "{text}");
}

/// Coverage has no calls, so it has no ends of calls either.
#[test]
fn coverage_has_no_calls_ended_by_an_exception() {
    let dir = folder();
    let hits = [Hit { method: 1, location: None }.to_bytes()];
    let coverage = Message::Coverage(HitRows { time: 5, rows: Rows::new(&hits) });
    let path = recording(&dir.path().join("coverage"), &[named(1, "a/A.run;1;()V"), coverage]);
    let methods = report(&[&path, "methods"]);
    let text = methods.expect_code(0).text();
    assert!(text.contains("-  -      -      -          -  a.A.run()"), "{text}");
    let whole = report(&[&path]);
    let text = whole.expect_code(0).text();
    assert!(text.contains("-      -      -          -  a.A.run()"), "{text}");
    let rows = report(&[&path, "methods", "--format", "json"]).expect_code(0).json();
    let row = &rows["agents"][0]["methods"][0];
    for member in ["entries", "exits", "exception_exits"] {
        assert_eq!(row[member], Value::Null, "{row:#}");
    }
}

//! The agent's messages, recorded by HQ and replayed: no rule is violated, in any mode and version.

use std::sync::Arc;

use runtap_bytefrog::hq::{Event, Options};
use runtap_bytefrog_proto::hq::Settings;
use runtap_bytefrog_proto::{Configuration, Dialect, Extension, RecordMode, WhenSlow};
use runtap_jvm::recording::{Options as Playing, RecordingWriter, find, replay};
use runtap_testkit::{Jdk, require};

use crate::common::{Listening, demo, run_both};

/// All settings, with each of their values at least once.
const CASES: &[(&str, RecordMode, bool, WhenSlow, i32)] = &[
    ("f1", RecordMode::Full, false, WhenSlow::Block, 1),
    ("f1", RecordMode::Full, true, WhenSlow::Drop, 3),
    ("f1", RecordMode::Full, false, WhenSlow::Counts, 2),
    ("f1", RecordMode::Counts, false, WhenSlow::Block, 1),
    ("f1", RecordMode::Counts, true, WhenSlow::Block, 3),
    ("f1", RecordMode::Coverage, false, WhenSlow::Block, 2),
    ("1", RecordMode::Full, true, WhenSlow::Block, 1),
    ("1", RecordMode::Full, true, WhenSlow::Drop, 3),
    ("2", RecordMode::Full, true, WhenSlow::Block, 2),
    ("3", RecordMode::Full, true, WhenSlow::Block, 1),
    ("4", RecordMode::Full, true, WhenSlow::Drop, 2),
];

#[test]
fn recorded_streams_break_no_rule() {
    for jdk in require!(Jdk::all()).iter().filter(|jdk| [17, 25].contains(&jdk.major())) {
        // All threads on one connection.
        let every = if jdk.major() == 17 { 1 } else { 3 };
        for (version, record, coarse_clock, when_slow, data_senders) in CASES.iter().step_by(every) {
            let who = format!("JDK {} {version} {record:?} {when_slow:?}", jdk.major());
            let folder = tempfile::tempdir().unwrap();
            let extension = Extension {
                record: *record,
                coarse_clock: *coarse_clock,
                when_slow: *when_slow,
                snapshot_interval: 10,
            };
            let dialects = Dialect::ALL.to_vec();
            let hq = Listening::new(Options {
                // The rule for heartbeats depends on the time: a busy machine must not violate it.
                configuration: Configuration {
                    extension,
                    data_senders: *data_senders,
                    heartbeat_interval: 10_000,
                    ..demo()
                },
                protocol: Settings { dialects, ..Settings::default() },
                recorder: Some(Arc::new(RecordingWriter::create(folder.path()).unwrap())),
                ..Options::default()
            });
            let options = format!(",version={version}");
            let finished =
                require!(run_both(jdk, hq.hq.address().port(), &options, &["demo.Counts", "4", "60"]));
            assert_eq!(finished.stderr, "", "{who}");
            let live = hq.report();
            for (_, event) in hq.heard.lock().unwrap().iter() {
                let wrong =
                    matches!(event, Event::Violation(_) | Event::Error(_) | Event::RecordingFailed { .. });
                assert!(!wrong, "{who}: {event:?}");
            }
            drop(hq);
            let [recorded] = &find(folder.path()).unwrap()[..] else { panic!("{who}: one agent") };
            let played = replay(recorded, &Playing::default()).unwrap();
            assert_eq!((&played.violations, &played.damage), (&Vec::new(), &Vec::new()), "{who}");
            assert_eq!((&played.errors, &played.unfinished), (&Vec::new(), &Vec::new()), "{who}");
            assert!(
                played.class_counts[0] > 0 && played.class_counts[2] == 0,
                "{who}: {:?}",
                played.class_counts
            );
            let report = played.model.report();
            assert_eq!(report.findings, [], "{who}");
            assert!(report.methods == live.methods, "{who}");
            assert!(report.methods.iter().any(|one| one.has_run), "{who}");
        }
    }
}

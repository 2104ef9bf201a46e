//! Many threads at once, and many classes.

use runtap_bytefrog_proto::{Configuration, Extension, JavaString, RecordMode, WhenSlow};
use runtap_testkit::{Jdk, require};

use crate::common::{Listening, demo, run_both};
use crate::counts::{expected, plain, seen};

/// The original agent hangs here: each of its threads holds a buffer and waits for another one.
#[test]
fn two_hundred_threads_begin_at_once() {
    for jdk in require!(Jdk::all()) {
        for when_slow in [WhenSlow::Block, WhenSlow::Drop, WhenSlow::Counts] {
            for _ in 0..2 {
                let extension = Extension { when_slow, ..Extension::default() };
                let hq = Listening::with(Configuration { extension, data_senders: 3, ..demo() });
                require!(run_both(&jdk, hq.hq.address().port(), "", &["demo.Counts", "200", "5"]));
                let report = hq.report();
                if when_slow == WhenSlow::Block {
                    assert_eq!(plain(seen(&report)), plain(expected(200, 5)), "JDK {}", jdk.major());
                    assert_eq!(report.findings, []);
                }
                assert_eq!(report.counters.orphans, 0);
            }
        }
    }
}

/// Classes of the JDK itself, including those that the probes use: the program runs, and its output is unchanged.
#[test]
fn classes_of_the_boot_loader() {
    for jdk in require!(Jdk::all()) {
        for record in [RecordMode::Coverage, RecordMode::Counts, RecordMode::Full] {
            let extension = Extension { record, when_slow: WhenSlow::Drop, ..Extension::default() };
            let inclusions = vec![JavaString::from("^java/|^jdk/|^sun/|^demo/")];
            let hq = Listening::with(Configuration { extension, inclusions, ..demo() });
            let port = hq.hq.address().port();
            let finished = require!(run_both(&jdk, port, ",boot=yes", &["demo.Counts", "2", "20"]));
            assert_eq!(finished.stderr, "", "{finished}");
            let report = hq.report();
            let theirs = report.methods.iter().filter(|method| {
                let ran = method.entries > 0 || method.counted.is_some() || method.has_run;
                ran && method.signature.starts_with("java/")
            });
            assert!(theirs.count() > 100, "JDK {} {record:?}", jdk.major());
        }
    }
}

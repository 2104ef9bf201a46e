//! The entries, exits and exceptions of each method equal those expected from the program.

use std::collections::BTreeMap;

use runtap_bytefrog::Report;
use runtap_bytefrog::hq::{Event, Options};
use runtap_bytefrog_proto::hq::Settings;
use runtap_bytefrog_proto::{Configuration, Dialect, Extension};
use runtap_testkit::{Jdk, Skip, require};

use crate::common::{Listening, demo, run_both};

/// Entries, exits, and calls that an exception has ended, by method.
pub(crate) type Counts = BTreeMap<String, (u64, u64, u64)>;

/// Returns the counts of `demo.Counts` with this number of threads and rounds.
pub(crate) fn expected(threads: u64, rounds: u64) -> Counts {
    let by = |divisor: u64, rest: u64| (0..rounds).filter(|round| round % divisor == rest).count() as u64;
    let all = threads * rounds;
    let (threes, ones) = (threads * by(3, 0), threads * by(3, 1));
    // Calls of fib(n): 2 × F(n + 1) - 1, and F(11) is 89.
    let fib = all * 177;
    let rows = [
        ("demo/Counts.main;9;([Ljava/lang/String;)V", (1, 1, 0)),
        ("demo/Counts.lambda$main$1;4106;([JII)V", (threads, threads, 0)),
        ("demo/Counts.lambda$work$0;4106;(I)I", (all, all, 0)),
        ("demo/Counts.work;8;(I)J", (threads, threads, 0)),
        ("demo/Counts.fib;8;(I)I", (fib, fib, 0)),
        ("demo/Counts.twice;8;(I)I", (threads * by(2, 1), threads * by(2, 1), 0)),
        ("demo/Counts.thrower;8;(I)I", (all, all - threes - ones, threes + ones)),
        ("demo/Counts.catcher;8;(I)I", (all, all - ones, ones)),
        ("demo/Counts.outer;8;(I)I", (all, all, 0)),
        ("demo/Counts.loop;40;(I)J", (all, all, 0)),
        ("demo/Counts$Node.<init>;0;(Ldemo/Counts$Node;)V", (all, all, 0)),
        ("demo/Counts$Base.<init>;0;(I)V", (all, all, 0)),
        ("demo/Counts$Derived.<init>;0;(I)V", (all, all, 0)),
        ("demo/Counts$Shape.sides;1;()I", (all, all, 0)),
        ("demo/Counts$1.<init>;0;()V", (threads, threads, 0)),
    ];
    rows.into_iter()
        .filter(|(_, counts)| counts.0 > 0)
        .map(|(name, counts)| (name.to_owned(), counts))
        .collect()
}

pub(crate) fn seen(report: &Report) -> Counts {
    let methods = report.methods.iter();
    methods.map(|method| (method.signature.clone(), (method.entries, method.exits, method.bubbles))).collect()
}

/// Shortens names of lambdas and anonymous classes, which depend on the compiler: `lambda$main$1` to `lambda$main`.
pub(crate) fn plain(counts: Counts) -> Counts {
    let name = |name: String| match name.split_once(";4106;") {
        Some((before, after)) => {
            format!("{};4106;{after}", before.trim_end_matches(|c: char| c.is_ascii_digit() || c == '$'))
        }
        None => name,
    };
    counts.into_iter().map(|(key, value)| (name(key), value)).collect()
}

fn traces(jdk: &Jdk, hq: &Listening, options: &str, threads: u64, rounds: u64) -> Result<Report, Skip> {
    let port = hq.hq.address().port();
    let finished = run_both(jdk, port, options, &["demo.Counts", &threads.to_string(), &rounds.to_string()])?;
    assert_eq!(finished.stderr, "", "{finished}");
    let report = hq.report();
    assert_eq!(plain(seen(&report)), plain(expected(threads, rounds)), "JDK {}", jdk.major());
    assert_eq!(report.findings, [], "JDK {}", jdk.major());
    Ok(report)
}

#[test]
fn every_call_is_there_once() {
    for jdk in require!(Jdk::all()) {
        let hq = Listening::with(demo());
        let report = require!(traces(&jdk, &hq, "", 3, 500));
        assert_eq!(hq.dialect(), Some(Dialect::F1));
        let workers = report.threads.iter().filter(|thread| {
            thread.name.as_deref().is_some_and(|name| name.starts_with("worker-")) && thread.ended
        });
        assert_eq!(workers.count(), 3, "{:?}", report.threads);
    }
}

#[test]
fn older_versions_say_the_same() {
    for jdk in require!(Jdk::all()) {
        let protocol = Settings { dialects: vec![Dialect::V1], ..Settings::default() };
        let hq = Listening::new(Options { configuration: demo(), protocol, ..Options::default() });
        require!(traces(&jdk, &hq, "", 3, 300));
        assert_eq!(hq.dialect(), Some(Dialect::V1));
    }
}

/// Versions 2 to 4 have no messages for exceptions: all calls end with an exit.
#[test]
fn versions_in_between_say_how_calls_ended() {
    let jdk = require!(Jdk::with_compiler());
    for (version, dialect) in [("2", Dialect::V2), ("3", Dialect::V3), ("4", Dialect::V4)] {
        let hq = Listening::with(demo());
        let port = hq.hq.address().port();
        require!(run_both(&jdk, port, &format!(",version={version}"), &["demo.Counts", "2", "300"]));
        let report = hq.report();
        assert_eq!(hq.dialect(), Some(dialect));
        let sums = |counts: Counts| -> BTreeMap<String, (u64, u64)> {
            plain(counts)
                .into_iter()
                .map(|(name, (entries, exits, bubbles))| (name, (entries, exits + bubbles)))
                .collect()
        };
        assert_eq!(sums(seen(&report)), sums(expected(2, 300)), "{dialect}");
        assert_eq!(report.findings, [], "{dialect}");
    }
}

#[test]
fn with_the_coarse_clock_too() {
    for jdk in require!(Jdk::all()) {
        let extension = Extension { coarse_clock: true, ..Extension::default() };
        let hq = Listening::with(Configuration { extension, ..demo() });
        require!(traces(&jdk, &hq, "", 2, 300));
        let heard = hq.heard.lock().unwrap();
        let process = heard.iter().find_map(|(_, event)| match event {
            Event::Process(process) => Some(process),
            _ => None,
        });
        let process = process.expect("F1 begins with the process");
        assert_eq!(process.resolution, 1_000_000);
        assert_eq!(process.main.to_string(), "demo.Counts");
        assert!(process.jvm.to_string().starts_with(&jdk.major().to_string()), "{process:?}");
    }
}

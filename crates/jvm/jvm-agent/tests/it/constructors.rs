//! Constructors that an exception of `super(…)` or `this(…)` ends, which no probe can see, are reported as other calls.

use std::collections::BTreeSet;
use std::time::Duration;

use runtap_bytefrog::hq::AgentId;
use runtap_bytefrog_proto::{Configuration, Extension, RecordMode};
use runtap_testkit::{Jdk, JvmCounter, Skip, require};

use crate::common::{Listening, demo, programs, run_both};
use crate::counts::seen;
use crate::oracle::{Load, words};

const ROUNDS: u64 = 40;

/// The calls, returns, and ends by an exception, of one round of `demo.Constructors`.
const EXPECTED: [(&str, (u64, u64, u64)); 9] = [
    ("demo/Constructors$Base.<init>;0;(I)V", (3, 1, 2)),
    ("demo/Constructors$Middle.<init>;0;(I)V", (4, 1, 3)),
    ("demo/Constructors$Middle.<init>;0;()V", (1, 0, 1)),
    ("demo/Constructors$Lowest.<init>;0;(I)V", (3, 1, 2)),
    ("demo/Constructors$Missing.<init>;0;(Ljava/lang/String;)V", (2, 0, 2)),
    ("demo/Constructors$Fine.<init>;0;(Ljava/lang/String;)V", (1, 1, 0)),
    ("demo/Constructors$Recursive.<init>;0;(I)V", (4, 4, 0)),
    ("demo/Constructors.caught;8;(Ljava/lang/Throwable;)I", (7, 7, 0)),
    ("demo/Constructors.round;8;(I)I", (1, 1, 0)),
];

#[test]
fn calls_that_super_ends_are_calls() {
    for jdk in require!(Jdk::all()) {
        for version in ["f1", "1"] {
            let hq = Listening::with(demo());
            let port = hq.hq.address().port();
            let program = ["demo.Constructors", &ROUNDS.to_string()];
            let finished = require!(run_both(&jdk, port, &format!(",version={version}"), &program));
            assert_eq!(finished.stderr, "", "{finished}");
            let report = hq.report();
            assert_eq!(report.findings, [], "JDK {}, {version}", jdk.major());
            let seen = seen(&report);
            for (name, (calls, returned, thrown)) in EXPECTED {
                let expected = (calls * ROUNDS, returned * ROUNDS, thrown * ROUNDS);
                assert_eq!(seen.get(name), Some(&expected), "{name} on JDK {}, {version}", jdk.major());
            }
        }
    }
}

/// A constructor has called its superclass's constructor and the methods for its arguments, and nothing after its end.
#[test]
fn callees_of_a_constructor_are_in_its_time() {
    let jdk = require!(Jdk::with_compiler());
    let hq = Listening::with(demo());
    let port = hq.hq.address().port();
    require!(run_both(&jdk, port, "", &["demo.Constructors", &ROUNDS.to_string()]));
    let report = hq.report();
    let tree = hq.hq.call_tree(AgentId(0), None).unwrap();
    let name = |number: usize| {
        let signature = tree.signatures[number].as_str();
        signature.split(';').next().unwrap_or_default().trim_start_matches("demo/Constructors").to_owned()
    };
    let mut pairs = BTreeSet::new();
    let mut path: Vec<String> = Vec::new();
    for row in &tree.rows {
        path.truncate(row.depth);
        pairs.insert((path.last().cloned().unwrap_or_default(), name(row.signature)));
        path.push(name(row.signature));
    }
    let expected = [
        ("", ".main"),
        ("$Base.<init>", ".work"),
        ("$Lowest.<init>", "$Middle.<init>"),
        ("$Middle.<init>", "$Base.<init>"),
        ("$Middle.<init>", "$Middle.<init>"),
        ("$Middle.<init>", ".argument"),
        ("$Recursive.<init>", "$Recursive.<init>"),
        (".main", ".round"),
        (".round", "$Fine.<init>"),
        (".round", "$Lowest.<init>"),
        (".round", "$Middle.<init>"),
        (".round", "$Missing.<init>"),
        (".round", "$Recursive.<init>"),
        (".round", ".caught"),
        // The superclass has no probes: the calls for its arguments precede the constructor.
        (".round", ".path"),
    ];
    let expected: BTreeSet<_> = expected.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
    assert_eq!(pairs, expected);
    let total = |name: &str| {
        let method = report.methods.iter().find(|method| method.signature.starts_with(name)).unwrap();
        method.inclusive
    };
    assert!(
        total("demo/Constructors$Lowest.<init>") >= total("demo/Constructors.work"),
        "{:?}",
        report.methods
    );
}

/// Counts and coverage include the call, but not that an exception has ended it.
#[test]
fn they_have_run_in_counts_and_in_coverage() {
    let jdk = require!(Jdk::with_compiler());
    for record in [RecordMode::Counts, RecordMode::Coverage] {
        let extension = Extension { record, ..Extension::default() };
        let hq = Listening::with(Configuration { extension, ..demo() });
        let port = hq.hq.address().port();
        require!(run_both(&jdk, port, "", &["demo.Constructors", &ROUNDS.to_string()]));
        let report = hq.report();
        for (name, (calls, ..)) in EXPECTED {
            let method = report.methods.iter().find(|method| method.signature == name).unwrap();
            assert!(method.has_run, "{name}, {record:?}");
            if record == RecordMode::Counts {
                assert_eq!(method.calls(), calls * ROUNDS, "{name}");
            }
        }
    }
}

fn judged(jdk: &Jdk) -> Result<(), Skip> {
    let folder = tempfile::tempdir().unwrap();
    let counter = JvmCounter::build(folder.path())?;
    let load = Load {
        name: "constructors",
        class_path: vec![programs()?.to_owned()],
        options: Vec::new(),
        main: "demo.Constructors",
        arguments: words("200"),
        files: Vec::new(),
        packages: &["demo/"],
        limit: Duration::from_mins(4),
    };
    let work = folder.path().join("work");
    let plain = load.plain(jdk, &work);
    for record in [RecordMode::Full, RecordMode::Counts] {
        let (compared, wrong) = load.judged(jdk, &work, &counter, &plain, record).differences();
        assert!(wrong.is_empty(), "JDK {}, {record:?}: {wrong:#?}", jdk.major());
        let unborn = if record == RecordMode::Full { 0 } else { 200 * 6 };
        assert_eq!(compared.unborn, unborn, "{compared:?}");
    }
    Ok(())
}

#[test]
fn the_jvm_counts_the_same() {
    for jdk in require!(Jdk::all()) {
        require!(judged(&jdk));
    }
}

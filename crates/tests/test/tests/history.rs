//! Histories: what a run adds, what is forgotten, what two become, and what is wrong with a file.

use std::time::Duration;

use proptest::prelude::*;
use runtap_test::plan::{
    AddError, Finished, History, HistoryError, Limits, ModuleHistory, ModuleKey, ModuleRun, PastOutcome,
    Seen, add_run,
};

const OUTCOMES: [PastOutcome; 5] = [
    PastOutcome::Passed,
    PastOutcome::Skipped,
    PastOutcome::Flaky,
    PastOutcome::Failed,
    PastOutcome::TimedOut,
];

#[expect(clippy::unnecessary_wraps, reason = "all durations here are optional")]
fn ms(ms: u64) -> Option<Duration> {
    Some(Duration::from_millis(ms))
}

fn key() -> ModuleKey {
    ModuleKey::new("M", "net10.0")
}

fn complete(at: u64, fingerprint: &str) -> ModuleRun<'_> {
    ModuleRun {
        at,
        complete: true,
        broken: false,
        fingerprint: Some(fingerprint),
        start: ms(300),
        wall: ms(1_000),
    }
}

fn finished(uid: &str, outcome: PastOutcome, duration: u64) -> Finished<'_> {
    Finished { duration: ms(duration), class: Some("C"), ..Finished::new(uid, outcome) }
}

fn module(history: &History) -> &ModuleHistory {
    history.module(&key()).unwrap()
}

#[test]
fn the_newest_run_counts_a_third() {
    let mut history = History::default();
    history.record(key(), &complete(1, "f"), [finished("a", PastOutcome::Passed, 300)]);
    history.record(
        key(),
        &ModuleRun { start: ms(600), ..complete(2, "f") },
        [finished("a", PastOutcome::Failed, 600)],
    );
    history.record(
        key(),
        &ModuleRun { complete: false, ..complete(3, "f") },
        [finished("a", PastOutcome::Skipped, 9_999)],
    );
    let module = module(&history);
    let test = module.test("a").unwrap();
    assert_eq!(test.duration, ms(400), "a skipped test takes no time");
    assert_eq!(module.start, Some(Duration::from_micros(366_666)));
    assert_eq!(module.wall, ms(1_000));
    let seen = |at, outcome| Seen { at, outcome };
    assert_eq!(
        test.outcomes(),
        [seen(1, PastOutcome::Passed), seen(2, PastOutcome::Failed), seen(3, PastOutcome::Skipped)]
    );
    assert_eq!((test.last_seen(), module.last_run()), (3, 3));
}

#[test]
fn what_failed_last_has_to_run_again() {
    let mut history = History::default();
    let all = |outcomes: [PastOutcome; 5]| {
        ["a", "b", "c", "d", "e"].into_iter().zip(outcomes).map(|(uid, outcome)| finished(uid, outcome, 1))
    };
    history.record(key(), &complete(1, "f"), all([PastOutcome::Failed; 5]));
    history.record(key(), &complete(2, "f"), all(OUTCOMES));
    assert_eq!(module(&history).failed().collect::<Vec<_>>(), ["d", "e"]);
    let rerun = ModuleRun { at: 3, ..ModuleRun::default() };
    history.record(
        key(),
        &rerun,
        [finished("e", PastOutcome::Passed, 1), finished("d", PastOutcome::Passed, 1)],
    );
    assert_eq!(module(&history).failed().count(), 0);
    // Twice in one run: the worse one counts.
    history.record(
        key(),
        &rerun,
        [finished("d", PastOutcome::Failed, 1), finished("d", PastOutcome::Passed, 1)],
    );
    assert_eq!(module(&history).failed().collect::<Vec<_>>(), ["d"]);
}

#[test]
fn flakiness_counts_changes() {
    let mut history = History::default();
    for (at, outcome) in (1..).zip([
        PastOutcome::Passed,
        PastOutcome::Failed,
        PastOutcome::Skipped,
        PastOutcome::Failed,
        PastOutcome::Flaky,
        PastOutcome::TimedOut,
    ]) {
        history.record(key(), &complete(at, "f"), [finished("a", outcome, 1)]);
    }
    let found = module(&history).test("a").unwrap().flakiness();
    assert_eq!((found.runs, found.failed, found.flaky, found.changes), (5, 3, 1, 3));
}

#[test]
fn only_a_complete_run_of_the_same_file_lists_the_tests() {
    let mut history = History::default();
    let uids = |history: &History, fingerprint: &str| {
        let listed = module(history).listed(fingerprint)?;
        Some(listed.map(|(uid, _)| uid.to_owned()).collect::<Vec<_>>().join(" "))
    };
    let partial = ModuleRun { complete: false, ..complete(1, "f1") };
    history.record(key(), &partial, [finished("a", PastOutcome::Passed, 1)]);
    assert_eq!(uids(&history, "f1"), None);
    history.record(key(), &complete(2, "f1"), ["a", "b"].map(|uid| finished(uid, PastOutcome::Passed, 600)));
    assert_eq!(uids(&history, "f1").as_deref(), Some("a b"));
    assert_eq!(module(&history).concurrency_percent(), 100, "400 and 600 ms in 1000");
    history.record(
        key(),
        &complete(3, "f2"),
        ["b", "c"].map(|uid| finished(uid, PastOutcome::Passed, 3_600)),
    );
    assert_eq!(uids(&history, "f1"), None);
    assert_eq!(uids(&history, "f2").as_deref(), Some("b c"), "a is no longer there");
    // b: (2 × 600 + 3600) / 3 = 1600; c: 3600; the wall clock says 1000.
    assert_eq!(module(&history).concurrency_percent(), 520);
    // A list of which tests are forgotten is none.
    history.prune(&Limits { tests: 1, ..Limits::default() });
    assert_eq!(uids(&history, "f2"), None);
    assert_eq!(module(&history).tests().count(), 1);
}

#[test]
fn what_is_old_is_forgotten() {
    let mut history = History::default();
    for at in 1..=5 {
        let old = (at <= 2).then(|| finished("old", PastOutcome::Passed, 1));
        history.record(
            key(),
            &complete(at, "f"),
            old.into_iter().chain([finished("new", PastOutcome::Passed, 1)]),
        );
        history.record(ModuleKey::new(format!("Other{at}"), ""), &complete(at, "f"), []);
    }
    // A run of some tests does not age the others.
    history.record(
        key(),
        &ModuleRun { at: 6, ..ModuleRun::default() },
        [finished("new", PastOutcome::Passed, 1)],
    );
    let mut kept = history.clone();
    kept.prune(&Limits { unseen_runs: 4, ..Limits::default() });
    assert_eq!(kept, history);
    history.prune(&Limits { unseen_runs: 3, modules: 2, ..Limits::default() });
    let names: Vec<&str> = history.modules().map(|(key, _)| key.name.as_str()).collect();
    assert_eq!(names, ["M", "Other5"]);
    assert_eq!(module(&history).tests().map(|(uid, _)| uid).collect::<Vec<_>>(), ["new"]);
}

/// Golden: a file that was written by the first version.
const FILE: &str = r#"{"schema":"runtap.test-history/1"}
{"module":{"name":"M","framework":"net10.0","fingerprint":"f","start_us":300000,"wall_us":1000000,"updated":7,"runs":[7],"listed":[7,"f"]}}
{"test":{"uid":"a \"ü\"","class":"C","duration_us":1500,"last_seen":7,"outcomes":[[7,"timed-out"]]}}
{"test":{"uid":"b","last_seen":7,"outcomes":[[7,"passed"]]}}
{"end":{"tests":2}}
"#;

fn written(history: &History) -> Vec<u8> {
    let mut file = Vec::new();
    history.write(&mut file).unwrap();
    file
}

#[test]
fn the_file_is_what_is_documented() {
    let mut history = History::default();
    let slow = Finished {
        duration: Some(Duration::from_micros(1_500)),
        ..finished("a \"ü\"", PastOutcome::TimedOut, 0)
    };
    history.record(key(), &complete(7, "f"), [slow, Finished::new("b", PastOutcome::Passed)]);
    assert_eq!(String::from_utf8(written(&history)).unwrap(), FILE);
    assert_eq!(History::read(FILE.as_bytes()).unwrap(), history);
    let later = FILE.replace(r#""runs":"#, r#""new_member":{"x":[1]},"runs":"#);
    assert_eq!(History::read(later.as_bytes()).unwrap(), history);
}

#[test]
fn a_file_that_is_none_says_so() {
    let error = |text: &str| History::read(text.as_bytes()).unwrap_err();
    let newer = error(r#"{"schema":"runtap.test-history/2","modules":{}}"#);
    assert_eq!(newer, HistoryError::Newer("runtap.test-history/2".to_owned()));
    assert!(matches!(error(r#"{"schema":"runtap.test-history/x"}"#), HistoryError::OtherSchema(_)));
    assert!(matches!(error(r#"{"schema":"other/1"}"#), HistoryError::OtherSchema(_)));
    assert_eq!(
        error("{ \"schem\": 1}\n").to_string(),
        "the test history is damaged at line 1, column 13: missing field `schema`"
    );
    let lines: Vec<&str> = FILE.split_inclusive('\n').collect();
    for (text, message) in [
        (lines[..4].concat(), "line 5, column 0: the file ends too early"),
        (FILE.replace("{\"tests\":2}", "{\"tests\":3}"), "line 5, column 0: there are 2 tests, not 3"),
        (FILE.to_owned() + "x", "line 6, column 0: the file contains data after its end"),
        (lines[0].to_owned() + lines[2], "line 2, column 0: a test of no module"),
    ] {
        assert_eq!(error(&text).to_string(), format!("the test history is damaged at {message}"));
    }
    let word = FILE.replace("timed-out", "exploded");
    assert!(error(&word).to_string().contains("unknown variant `exploded`"), "{}", error(&word));
    for end in 0..FILE.len() - 1 {
        let part = FILE.as_bytes().get(..end).unwrap();
        assert!(matches!(History::read(part), Err(HistoryError::Damaged { .. })), "{end}");
    }
    let deep = "[".repeat(1_000_000);
    assert!(matches!(error(&deep), HistoryError::Damaged { .. }));
}

/// A run of a module with a few tests.
#[derive(Debug, Clone)]
struct Run {
    key: ModuleKey,
    at: u64,
    complete: bool,
    fingerprint: Option<String>,
    /// By uid.
    tests: Vec<(String, PastOutcome, Option<u64>, bool)>,
}

impl Run {
    fn told(&self) -> ModuleRun<'_> {
        ModuleRun {
            broken: self.at.is_multiple_of(5),
            at: self.at,
            complete: self.complete,
            fingerprint: self.fingerprint.as_deref(),
            start: ms(self.at * 7),
            wall: self.complete.then_some(Duration::from_millis(self.at)),
        }
    }

    fn tests(&self) -> impl Iterator<Item = Finished<'_>> {
        self.tests.iter().map(|(uid, outcome, duration, class)| Finished {
            uid,
            class: class.then_some("C"),
            outcome: *outcome,
            duration: duration.map(Duration::from_micros),
        })
    }
}

fn runs() -> impl Strategy<Value = Run> {
    let outcome = prop::sample::select(OUTCOMES.to_vec());
    let test = ("t[0-3]", outcome, prop::option::of(0..5_000_u64), any::<bool>());
    let tests = prop::collection::vec(test, 0..5);
    (0..3_u8, 0..40_u64, any::<bool>(), prop::option::of("f[01]"), tests).prop_map(
        |(module, at, complete, fingerprint, mut tests)| {
            tests.sort();
            Run { key: ModuleKey::new(format!("M{module}"), "net8.0"), at, complete, fingerprint, tests }
        },
    )
}

/// Runs of a few modules.
fn histories() -> impl Strategy<Value = History> {
    prop::collection::vec(runs(), 0..12).prop_map(|runs| {
        let mut history = History::default();
        for run in &runs {
            history.record(run.key.clone(), &run.told(), run.tests());
        }
        history
    })
}

/// Adds a run test by test.
fn add(file: Option<&[u8]>, run: &Run, limits: &Limits) -> Result<Vec<u8>, AddError> {
    let mut out = Vec::new();
    add_run(file, &run.key, &run.told(), run.tests(), limits, &mut out).map(|()| out)
}

#[test]
fn what_is_out_of_order_or_too_much_is_added_in_memory_only() {
    let test = |uid: &str| (uid.to_owned(), PastOutcome::Passed, None, false);
    let run = |tests: &[&str]| Run {
        key: key(),
        at: 9,
        complete: true,
        fingerprint: None,
        tests: tests.iter().map(|uid| test(uid)).collect(),
    };
    let limits = Limits::default();
    let added = |file: &str, tests: &[&str], limits: &Limits| add(Some(file.as_bytes()), &run(tests), limits);
    let two = added(FILE, &["a", "c"], &limits).unwrap();
    let history = History::read(&*two).unwrap();
    assert_eq!(module(&history).tests().map(|(uid, _)| uid).collect::<Vec<_>>(), ["a", "a \"ü\"", "b", "c"]);
    let lines: Vec<&str> = FILE.split_inclusive('\n').collect();
    let swapped = [lines[0], lines[1], lines[3], lines[2], lines[4]].concat();
    let twice = [&lines[..4], &lines[1..2], &lines[4..]].concat().concat();
    for result in [
        added(&swapped, &[], &limits),
        added(&twice, &[], &limits),
        added(FILE, &["c", "a"], &limits),
        added(FILE, &["a", "c"], &Limits { tests: 3, ..limits }),
        added(&FILE.replace("\"M\"", "\"L\""), &[], &Limits { modules: 1, ..limits }),
    ] {
        assert!(matches!(result, Err(AddError::InMemoryOnly)), "{result:?}");
    }
    let word = FILE.replace("timed-out", "exploded");
    assert!(matches!(
        added(&word, &[], &limits),
        Err(AddError::History(HistoryError::Damaged { line: 3, .. }))
    ));
    let newer = added("{\"schema\":\"runtap.test-history/2\"}\n", &[], &limits);
    assert!(matches!(newer, Err(AddError::History(HistoryError::Newer(_)))));
}

fn merged(mut one: History, other: &History) -> History {
    one.merge(other.clone());
    one
}

proptest! {
    #[test]
    fn what_is_written_is_read(history in histories()) {
        let bytes = written(&history);
        let again = History::read(&*bytes).unwrap();
        prop_assert_eq!(&again, &history);
        prop_assert_eq!(written(&again), bytes);
    }

    #[test]
    fn a_run_is_added_test_by_test_as_it_is_in_memory(
        history in prop::option::of(histories()),
        run in runs(),
        unseen_runs in 1..5_usize,
    ) {
        let limits = Limits { unseen_runs, ..Limits::default() };
        let mut expected = history.clone().unwrap_or_default();
        // A file that was written has been pruned; what is old in other modules goes all the same.
        let file = history.as_ref().map(written);
        expected.record(run.key.clone(), &run.told(), run.tests());
        expected.prune(&limits);
        let added = add(file.as_deref(), &run, &limits).unwrap();
        prop_assert_eq!(String::from_utf8(added), String::from_utf8(written(&expected)));
    }

    #[test]
    fn any_bytes_are_a_history_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..64), at in any::<prop::sample::Index>()) {
        let _ = History::read(&*bytes);
        let mut damaged = FILE.as_bytes().to_vec();
        let at = at.index(damaged.len());
        damaged.splice(at..at, bytes);
        if let Ok(history) = History::read(&*damaged) {
            prop_assert_eq!(History::read(&*written(&history)).unwrap(), history);
        }
    }

    #[test]
    fn merging_knows_no_order(a in histories(), b in histories(), c in histories()) {
        prop_assert_eq!(merged(a.clone(), &b), merged(b.clone(), &a));
        prop_assert_eq!(merged(merged(a.clone(), &b), &c), merged(a.clone(), &merged(b.clone(), &c)));
        prop_assert_eq!(&merged(a.clone(), &a), &a);
        let both = merged(a, &b);
        prop_assert_eq!(merged(both.clone(), &b), both);
    }

    #[test]
    fn limits_hold(history in histories(), unseen_runs in 0..5_usize, tests in 0..6_usize, modules in 0..3_usize) {
        let mut pruned = history.clone();
        let limits = Limits { unseen_runs, tests, modules };
        pruned.prune(&limits);
        prop_assert!(pruned.modules().count() <= modules);
        prop_assert!(pruned.modules().map(|(_, module)| module.tests().count()).sum::<usize>() <= tests);
        let again = { let mut again = pruned.clone(); again.prune(&limits); again };
        prop_assert_eq!(again, pruned);
        let mut all = history;
        all.prune(&Limits::default());
        prop_assert!(all.modules().all(|(_, module)| module.tests().all(|(_, test)| test.outcomes().len() <= 10)));
    }
}

#[test]
fn failed_tests_are_forgotten_last_and_not_silently() {
    let limits = |tests| Limits { tests, ..Limits::default() };
    let key = ModuleKey::new("M", "net10.0");
    let run = ModuleRun { at: 1_000, complete: true, ..ModuleRun::default() };
    let all = ["a", "b", "c", "d"];
    let outcome = |uid: &str| if uid < "c" { PastOutcome::Failed } else { PastOutcome::Passed };
    let mut history = History::default();
    history.record(key.clone(), &run, all.iter().map(|uid| Finished::new(uid, outcome(uid))));
    history.prune(&limits(2));
    let module = history.module(&key).unwrap();
    assert_eq!((module.failed().collect::<Vec<_>>(), module.broken), (vec!["a", "b"], false));
    history.prune(&limits(1));
    let module = history.module(&key).unwrap();
    assert_eq!((module.failed().collect::<Vec<_>>(), module.broken), (vec!["b"], true));
}

#[test]
fn only_a_complete_run_mends_a_broken_one() {
    let key = ModuleKey::new("M", "net10.0");
    let mut history = History::default();
    let mut broken_after = |at, complete, broken| {
        let run = ModuleRun { at, complete, broken, ..ModuleRun::default() };
        history.record(key.clone(), &run, [Finished::new("a", PastOutcome::Passed)]);
        history.module(&key).unwrap().broken
    };
    assert!(broken_after(1, false, true));
    assert!(broken_after(2, false, false), "a part of the tests");
    assert!(!broken_after(3, true, false));
    assert!(!broken_after(4, false, false));
}

//! Schedules: the order, the splits, and what always holds.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::time::Duration;

use proptest::prelude::*;
use runtap_test::plan::{
    Finished, History, Module, ModuleKey, ModuleRun, PastOutcome, ProcessTests, Schedule, ScheduleOptions,
    TestCost, schedule,
};

fn options(parallel: usize) -> ScheduleOptions {
    ScheduleOptions::new(NonZeroUsize::new(parallel).unwrap())
}

fn test<'a>(uid: &'a str, class: Option<&'a str>, ms: u64) -> TestCost<'a> {
    TestCost { uid, class, duration: Some(Duration::from_millis(ms)) }
}

fn listed(tests: Vec<TestCost<'_>>) -> Module<'_> {
    Module { tests, listed: true, ..Module::default() }
}

fn order(schedule: &Schedule<'_>) -> Vec<usize> {
    schedule.processes.iter().map(|process| process.module).collect()
}

fn uids<'a>(schedule: &Schedule<'a>) -> Vec<Vec<&'a str>> {
    let which = schedule.processes.iter().map(|process| match &process.which {
        ProcessTests::All => vec!["*"],
        ProcessTests::Uids(uids) => uids.clone(),
    });
    which.collect()
}

#[test]
fn the_longest_first_and_the_unknown_before() {
    let module = |ms| Module { tests: vec![test("a", None, ms)], ..Module::default() };
    let counted = Module { count: Some(3), ..Module::default() };
    let modules = [module(10), Module::default(), module(5_000), counted, module(10), module(700)];
    let plan = schedule(&modules, &options(2));
    assert_eq!(order(&plan), [1, 3, 2, 5, 0, 4]);
    assert_eq!(plan.processes[0].estimate, None);
    assert_eq!(plan.processes[2].estimate, Some(Duration::from_millis(5_300)));
    // The median of 5300, 1000, 310 and 310 is 1000; the counted one is 3 times the median test of 700, and 300.
    assert_eq!(plan.unsplit, Duration::from_millis(1_000 + 5_300));
    assert_eq!(plan.makespan, plan.unsplit);
}

#[test]
fn one_slow_module_is_split_over_the_places() {
    let slow = listed(["a", "b", "c", "d", "e", "f", "g", "h"].map(|uid| test(uid, None, 2_000)).to_vec());
    let fast = listed(vec![test("x", None, 500)]);
    let plan = schedule(&[fast, slow], &options(4));
    assert_eq!(plan.unsplit, Duration::from_millis(16_300));
    // Three tests a process on three places; the fast module has the fourth, and room for two of them.
    assert!(plan.makespan <= Duration::from_millis(6_300), "{plan:?}");
    assert_eq!(plan.processes.iter().filter(|process| process.module == 0).count(), 1);
}

#[test]
fn two_equal_modules_are_split_together() {
    // Splitting only one of them gains nothing.
    let a = listed(["a1", "a2"].map(|uid| test(uid, None, 10_000)).to_vec());
    let b = listed(["b1", "b2"].map(|uid| test(uid, None, 10_000)).to_vec());
    let plan = schedule(&[a, b], &options(4));
    assert_eq!(uids(&plan), [["a1"], ["a2"], ["b1"], ["b2"]]);
    assert_eq!((plan.unsplit, plan.makespan), (Duration::from_millis(20_300), Duration::from_millis(10_300)));
}

#[test]
fn pieces_are_small_enough_to_fill_the_places() {
    // Three modules of 12 s on four places: halves would leave two rounds of 6 s, thirds are nine pieces of 4 s and
    // leave three, quarters are twelve of 3 s and fill three rounds.
    let uids: Vec<String> = (0..12).map(|uid| format!("t{uid}")).collect();
    let module = Module {
        start: Some(Duration::from_millis(10)),
        ..listed(uids.iter().map(|uid| test(uid, None, 1_000)).collect())
    };
    let plan = schedule(&[module.clone(), module.clone(), module], &options(4));
    assert_eq!(plan.processes.len(), 12);
    assert_eq!(plan.makespan, Duration::from_millis(3 * 3_010));
}

#[test]
fn what_gains_little_is_not_split() {
    let module = |ms| listed(["a", "b"].map(|uid| test(uid, None, ms)).to_vec());
    assert_eq!(uids(&schedule(&[module(1_000)], &options(2))), [["a"], ["b"]], "1 s is enough");
    assert_eq!(uids(&schedule(&[module(999)], &options(2))), [["*"]], "less is not");
    // A start that costs as much as it saves.
    let dear = Module { start: Some(Duration::from_secs(30)), ..module(20_000) };
    assert_eq!(uids(&schedule(&[dear], &options(2))), [["*"]]);
    assert_eq!(uids(&schedule(&[module(60_000)], &options(1))), [["*"]], "only one place");
    let off = ScheduleOptions { split: false, ..options(2) };
    assert_eq!(uids(&schedule(&[module(60_000)], &off)), [["*"]]);
    let percent = ScheduleOptions { min_gain_percent: 60, ..options(2) };
    assert_eq!(uids(&schedule(&[module(60_000)], &percent)), [["*"]], "half is not 60 %");
    // Other modules keep all places busy anyway.
    let busy = [module(5_000), module(5_000), module(5_000), module(5_000)];
    assert_eq!(order(&schedule(&busy, &options(2))), [0, 1, 2, 3]);
    // The framework runs both at the same time already.
    let concurrent = Module { concurrency_percent: 200, ..module(5_000) };
    assert_eq!(uids(&schedule(&[concurrent], &options(2))), [["*"]]);
    // It is unknown whether these are all tests.
    let unlisted = Module { listed: false, ..module(60_000) };
    assert_eq!(uids(&schedule(&[unlisted], &options(2))), [["*"]]);
}

#[test]
fn classes_stay_together_where_it_costs_little() {
    let tests = |sizes: &[(&'static str, u64)]| -> Vec<TestCost<'static>> {
        let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
        names.iter().zip(sizes).map(|(uid, (class, ms))| test(uid, Some(class), *ms)).collect()
    };
    let plan =
        schedule(&[listed(tests(&[("A", 3_000), ("B", 3_000), ("A", 2_900), ("B", 3_100)]))], &options(2));
    assert_eq!(uids(&plan), [["b", "d"], ["a", "c"]]);
    // One class has nearly all: it is divided, the small one is not.
    let plan = schedule(
        &[listed(tests(&[("A", 3_000), ("A", 3_000), ("A", 3_000), ("A", 3_000), ("B", 100), ("B", 100)]))],
        &options(2),
    );
    assert_eq!(plan.processes.len(), 2);
    let together = uids(&plan).iter().any(|uids| uids.contains(&"e") && uids.contains(&"f"));
    assert!(together, "{plan:?}");
    assert!(plan.makespan <= Duration::from_millis(6_500), "{plan:?}");
}

#[test]
fn a_module_without_tests_to_run_gets_no_process() {
    let plan = schedule(&[listed(Vec::new()), Module::default()], &options(2));
    assert_eq!(order(&plan), [1]);
    assert_eq!(schedule(&[], &options(2)), Schedule::default());
}

#[test]
fn from_a_history() {
    let mut history = History::default();
    let key = ModuleKey::new("M", "net10.0");
    let run = ModuleRun {
        broken: false,
        at: 1,
        complete: true,
        fingerprint: Some("f"),
        start: Some(Duration::from_millis(200)),
        wall: None,
    };
    let tests = ["a", "b"].map(|uid| Finished {
        duration: Some(Duration::from_secs(4)),
        ..Finished::new(uid, PastOutcome::Passed)
    });
    history.record(key.clone(), &run, tests);
    let module = history.module(&key).unwrap();
    let plan = |fingerprint| schedule(&[Module::recorded(module, fingerprint)], &options(2));
    assert_eq!(uids(&plan(Some("f"))), [["a"], ["b"]]);
    assert_eq!(plan(Some("f")).unsplit, Duration::from_millis(8_200));
    // Another file may have other tests; their time is still the best guess.
    assert_eq!(uids(&plan(Some("g"))), [["*"]]);
    assert_eq!(uids(&plan(None)), [["*"]]);
    assert_eq!(plan(Some("g")).makespan, Duration::from_millis(8_200));
}

#[test]
fn the_largest_times_do_no_harm() {
    let huge = TestCost { uid: "a", class: None, duration: Some(Duration::MAX) };
    let modules = [
        listed(vec![huge, TestCost { uid: "b", ..huge }]),
        Module { count: Some(usize::MAX), ..Module::default() },
    ];
    let plan = schedule(&modules, &ScheduleOptions { start: Duration::MAX, ..options(3) });
    assert!(plan.makespan <= plan.unsplit);
}

#[derive(Debug, Clone)]
struct Facts {
    /// Uid, class, duration.
    tests: Vec<(u8, Option<u8>, Option<u16>)>,
    listed: bool,
    count: Option<usize>,
    start: Option<u16>,
    concurrency_percent: u32,
}

fn facts() -> impl Strategy<Value = Facts> {
    let test = (0..30_u8, prop::option::of(0..4_u8), prop::option::weighted(0.8, any::<u16>()));
    let tests = prop::collection::vec(test, 0..25);
    (tests, any::<bool>(), prop::option::of(0..9_usize), prop::option::of(any::<u16>()), 0..300_u32).prop_map(
        |(tests, listed, count, start, concurrency_percent)| Facts {
            tests,
            listed,
            count,
            start,
            concurrency_percent,
        },
    )
}

proptest! {
    #[test]
    fn every_test_once_and_never_longer(modules in prop::collection::vec(facts(), 0..6), parallel in 1..7_usize, gain in 0..3_000_u64) {
        let uids: Vec<String> = (0..30).map(|uid| format!("t{uid}")).collect();
        let classes = ["A", "B", "C", "D"];
        let ms = |ms: u16| Duration::from_millis(ms.into());
        let inputs: Vec<Module<'_>> = modules.iter().map(|facts| Module {
            tests: facts.tests.iter().map(|(uid, class, duration)| TestCost {
                uid: &uids[usize::from(*uid)],
                class: class.map(|class| classes[usize::from(class)]),
                duration: duration.map(ms),
            }).collect(),
            listed: facts.listed,
            count: facts.count,
            start: facts.start.map(ms),
            concurrency_percent: facts.concurrency_percent,
        }).collect();
        let options = ScheduleOptions { min_gain: Duration::from_millis(gain), ..options(parallel) };
        let plan = schedule(&inputs, &options);
        prop_assert_eq!(&plan, &schedule(&inputs, &options));

        // Never longer; shorter by the threshold if anything is split.
        let whole = schedule(&inputs, &ScheduleOptions { split: false, ..options });
        prop_assert_eq!(plan.unsplit, whole.makespan);
        prop_assert_eq!(whole.makespan, whole.unsplit);
        if plan.processes.iter().any(|process| process.which != ProcessTests::All) {
            prop_assert!(plan.makespan + options.min_gain <= plan.unsplit);
            prop_assert!(plan.makespan.as_micros() * 100 <= plan.unsplit.as_micros() * 90);
        } else {
            prop_assert_eq!(&plan, &whole);
        }

        let mut by_module: BTreeMap<usize, Vec<&ProcessTests<'_>>> = BTreeMap::new();
        for process in &plan.processes {
            by_module.entry(process.module).or_default().push(&process.which);
        }
        for (position, module) in inputs.iter().enumerate() {
            let processes = by_module.remove(&position).unwrap_or_default();
            if module.listed && module.tests.is_empty() {
                prop_assert!(processes.is_empty());
            } else if processes != [&ProcessTests::All] {
                prop_assert!(module.listed && processes.len() <= parallel);
                let mut given: Vec<&str> = Vec::new();
                for which in processes {
                    let ProcessTests::Uids(uids) = which else { return Err(TestCaseError::fail("all, and some again")) };
                    prop_assert!(!uids.is_empty());
                    given.extend(uids);
                }
                let expected: BTreeSet<&str> = module.tests.iter().map(|test| test.uid).collect();
                given.sort_unstable();
                prop_assert_eq!(given, expected.into_iter().collect::<Vec<_>>());
            }
        }
        // Known processes are in descending order behind the unknown ones.
        let estimates: Vec<_> = plan.processes.iter().map(|process| process.estimate).collect();
        let known = estimates.iter().position(Option::is_some).unwrap_or(estimates.len());
        prop_assert!(estimates[known..].iter().all(Option::is_some));
        prop_assert!(estimates[known..].is_sorted_by(|a, b| a >= b));
    }
}

//! Earlier runs: what a run adds to them, and what is done about a file that is none.

use std::fs;
use std::time::{Duration, SystemTime};

use runtap_mtp::suite::history::{Recorder, Store, StoreError};
use runtap_mtp::{
    Introduction, LaunchEnd, LaunchId, Module, ModuleFailure, ModuleId, RunEvent, TestResult, Totals,
};
use runtap_test::plan::{ModuleKey, PastOutcome};
use runtap_test_report::{Attempt, Memory, Module as Reported, Run, TestOutcome, TestResult as Reporting};

const MODULE: ModuleId = ModuleId(0);
const LAUNCH: LaunchId = LaunchId(1);

/// What a run of one module with these tests leaves, which ended like this.
fn events(end: LaunchEnd) -> Vec<RunEvent> {
    let introduction = Introduction { framework: ".NET 10.0.12".into(), ..Introduction::default() };
    let execution = Attempt { duration_ns: Some(1_000_000), ..Attempt::default() };
    let result = TestResult { uid: "a".into(), execution, ..TestResult::default() };
    vec![
        RunEvent::LaunchStarted { module: MODULE, launch: LAUNCH, attempt: 1, part: (1, 1), pid: 1 },
        RunEvent::Introduced { module: MODULE, launch: LAUNCH, introduction },
        RunEvent::TestEnded { module: MODULE, launch: LAUNCH, result, so_far: Totals::default() },
        RunEvent::LaunchEnded { module: MODULE, launch: LAUNCH, end },
    ]
}

fn results() -> Memory {
    let run = Run {
        started: SystemTime::UNIX_EPOCH,
        duration_ns: 0,
        command: Vec::new(),
        runner: String::new(),
        version: String::new(),
        exit_code: 0,
        interrupted: None,
        error: None,
        machine: String::new(),
    };
    let attempt = |state| Attempt { state, duration_ns: Some(2_000_000), ..Attempt::default() };
    let result = |uid: &str, state| Reporting {
        uid: uid.into(),
        type_name: Some("CartTests".into()),
        last: attempt(state),
        ..Reporting::default()
    };
    let all = vec![
        result("a", TestOutcome::Passed),
        result("b", TestOutcome::Failed),
        result("c", TestOutcome::Cancelled),
        result("d", TestOutcome::Skipped),
        Reporting { earlier: vec![attempt(TestOutcome::Error)], ..result("flaky", TestOutcome::Passed) },
    ];
    Memory::new(run, [(Reported::new("/a/Shop.dll"), all)])
}

fn ended_well() -> LaunchEnd {
    LaunchEnd { exit: Some(runtap_mtp::Exit::Code(2)), ..LaunchEnd::default() }
}

fn modules() -> Vec<Module> {
    vec![Module::new("/a/Shop.dll")]
}

fn recorder(at: u64, end: LaunchEnd) -> Recorder {
    let mut recorder = Recorder::new(at, modules(), [MODULE]);
    for event in &events(end) {
        recorder.event(event);
    }
    recorder
}

#[test]
fn a_run_adds_outcomes_and_durations() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::at(directory.path().join("history"));
    assert_eq!(store.load(&modules()).unwrap().modules().count(), 0);
    store.add(&recorder(1_000, ended_well()), &results()).unwrap();
    let history = store.load(&modules()).unwrap();
    let module = history.module(&ModuleKey::new("Shop", "net10.0")).unwrap();
    let outcomes: Vec<_> = module.tests().map(|(uid, test)| (uid, test.outcomes()[0].outcome)).collect();
    assert_eq!(
        outcomes,
        [
            ("a", PastOutcome::Passed),
            ("b", PastOutcome::Failed),
            ("c", PastOutcome::TimedOut),
            ("d", PastOutcome::Skipped),
            ("flaky", PastOutcome::Flaky)
        ]
    );
    assert_eq!(module.failed().collect::<Vec<_>>(), ["b", "c"]);
    let test = module.test("a").unwrap();
    assert_eq!((test.duration, test.class.as_deref()), (Some(Duration::from_millis(2)), Some("CartTests")));
    assert!(module.wall.is_some() && module.start.is_some());
    // A second run is a second outcome.
    store.add(&recorder(2_000, ended_well()), &results()).unwrap();
    assert_eq!(
        store.load(&modules()).unwrap().modules().next().unwrap().1.test("a").unwrap().outcomes().len(),
        2
    );
}

#[test]
fn only_a_complete_run_tells_how_long_all_tests_take() {
    let directory = tempfile::tempdir().unwrap();
    let died = LaunchEnd { failures: vec![ModuleFailure::ExitCode(7)], ..ended_well() };
    let mut interrupted = recorder(1_000, ended_well());
    interrupted.interrupted();
    for (name, recorder) in [("died", recorder(1_000, died)), ("interrupted", interrupted)] {
        let store = Store::at(directory.path().join(name));
        store.add(&recorder, &results()).unwrap();
        let history = store.load(&modules()).unwrap();
        let (_, module) = history.modules().next().unwrap();
        assert_eq!((module.wall, module.broken), (None, true), "{name}");
        assert_eq!(module.tests().count(), 5, "{name}: what has ended is known all the same");
    }
}

#[test]
fn a_damaged_file_is_replaced_and_another_ones_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::at(directory.path().to_owned());
    store.add(&recorder(1_000, ended_well()), &results()).unwrap();
    let path = fs::read_dir(directory.path()).unwrap().next().unwrap().unwrap().path();
    assert!(path.file_name().unwrap().to_str().unwrap().starts_with("Shop-"), "{}", path.display());
    fs::write(&path, "{\"schema\": \"runtap.test-history/1\"}\n{\"module\":").unwrap();
    assert!(matches!(store.load(&modules()), Err(StoreError::Wrong { .. })));
    store.add(&recorder(1_000, ended_well()), &results()).unwrap();
    assert_eq!(store.load(&modules()).unwrap().modules().count(), 1);
    for foreign in ["{\"schema\": \"runtap.test-history/2\", \"modules\": []}", "{\"schema\": \"other/1\"}"] {
        fs::write(&path, foreign).unwrap();
        let error = store.add(&recorder(1_000, ended_well()), &results()).unwrap_err();
        assert!(error.to_string().contains("schema"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), foreign);
    }
}

#[test]
fn a_module_has_nothing_to_do_with_the_file_of_another_one() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::at(directory.path().to_owned());
    store.add(&recorder(1_000, ended_well()), &results()).unwrap();
    let path = fs::read_dir(directory.path()).unwrap().next().unwrap().unwrap().path();
    fs::write(&path, "damaged").unwrap();
    let others = [Module::new("/a/Other.dll")];
    assert_eq!(store.load(&others).unwrap().modules().count(), 0);
    assert!(store.load(&modules()).is_err());
}

#[test]
fn a_run_without_a_recorded_end_is_known() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::at(directory.path().join("history"));
    let unfinished = || store.earlier(&modules()).unwrap().unfinished.len();
    let begun = |at| {
        let mut recorder = recorder(at, ended_well());
        store.begin(&mut recorder, [MODULE, MODULE]).unwrap();
        recorder
    };
    assert_eq!(unfinished(), 0);
    let recorder = begun(1_000);
    assert_eq!(unfinished(), 1);
    store.add(&recorder, &results()).unwrap();
    assert_eq!(unfinished(), 0);
    // One that was killed, until all tests have run.
    drop(begun(2_000));
    let mut part = Recorder::new(3_000, modules(), []);
    store.begin(&mut part, [MODULE]).unwrap();
    for event in events(ended_well()) {
        part.event(&event);
    }
    store.add(&part, &results()).unwrap();
    assert_eq!(unfinished(), 1);
    assert_eq!(store.earlier(&[Module::new("/b/Shop.dll")]).unwrap().unfinished.len(), 0);
    let next = begun(4_000);
    let later = begun(5_000);
    store.add(&next, &results()).unwrap();
    assert_eq!(unfinished(), 1, "the one that began later");
    store.add(&later, &results()).unwrap();
    assert_eq!(unfinished(), 0);
    // One that can't be recorded.
    let lost = begun(6_000);
    let file = fs::read_dir(store.directory()).unwrap().map(|entry| entry.unwrap().path());
    let file = file.into_iter().find(|path| path.extension().is_some_and(|it| it == "jsonl")).unwrap();
    fs::write(&file, "{\"schema\": \"other/1\"}").unwrap();
    store.add(&lost, &results()).unwrap_err();
    fs::remove_file(&file).unwrap();
    assert_eq!(unfinished(), 1);
}

//! Any bytes as the history of test runs, and as `runtap.toml`: no panic, an error has a position, and a history is
//! unchanged by writing it again, and by merging it with itself.
#![no_main]

use runtap_test::plan::{Config, Finished, History, Limits, ModuleKey, ModuleRun, PastOutcome, add_run};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    if let Ok(history) = History::read(input) {
        let mut file = Vec::new();
        history.write(&mut file).unwrap();
        assert_eq!(History::read(&*file).as_ref(), Ok(&history));
        let mut twice = history.clone();
        twice.merge(history.clone());
        assert_eq!(twice, history);
        add(input, history);
    }
    let Ok(text) = str::from_utf8(input) else { return };
    if let Err(error) = text.parse::<Config>() {
        let line = text.split('\n').nth(error.line - 1).expect("a line of the text");
        assert!(error.column <= line.chars().count() + 1, "{error:?}");
    }
});

/// Adding a run to the text line by line either gives the result of adding it in memory, or fails.
fn add(input: &[u8], mut history: History) {
    let key = history.modules().next().map_or_else(|| ModuleKey::new("M", ""), |(key, _)| key.clone());
    let run = ModuleRun { at: 1_790_000_000_000, complete: true, ..ModuleRun::default() };
    let tests = ["", "a", "a", "b"].map(|uid| Finished::new(uid, PastOutcome::Failed));
    let limits = Limits { unseen_runs: 2, tests: 100, modules: 3 };
    let mut out = Vec::new();
    if add_run(Some(input), &key, &run, tests.clone().into_iter(), &limits, &mut out).is_ok() {
        history.record(key, &run, tests);
        history.prune(&limits);
        assert_eq!(History::read(&*out), Ok(history));
    }
}

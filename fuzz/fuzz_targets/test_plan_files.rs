//! Any bytes as the history of test runs, and as `runtap.toml`: no panic, an error has a place, and a history that is
//! written again is the same, merged with itself too.
#![no_main]

use runtap_test_plan::{Config, History};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    if let Ok(history) = History::from_json(input) {
        assert_eq!(History::from_json(&history.to_json()).as_ref(), Ok(&history));
        let mut twice = history.clone();
        twice.merge(history.clone());
        assert_eq!(twice, history);
    }
    let Ok(text) = str::from_utf8(input) else { return };
    if let Err(error) = text.parse::<Config>() {
        let line = text.split('\n').nth(error.line - 1).expect("a line of the text");
        assert!(error.column <= line.chars().count() + 1, "{error:?}");
    }
});

//! Any text, up to a 0, as a condition on tests; the following texts, separated by zeros, are the fields of a test: no
//! panic, an error has a position in the text, a printed condition keeps its meaning, and a decision about a module
//! holds for its tests.
#![no_main]

use runtap_test::plan::{Filter, ModuleMatch, Test};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Ok(text) = str::from_utf8(input) else { return };
    let mut texts = text.split('\0');
    let text = texts.next().unwrap_or_default();
    let filter: Filter = match text.parse() {
        Ok(filter) => filter,
        Err(error) => {
            assert!(text.get(error.offset..error.offset + error.length).is_some(), "{error:?}");
            assert!(error.column() <= text.chars().count() + 1);
            assert_eq!(error.caret().lines().count(), 2, "{error:?}");
            return;
        }
    };
    let printed = filter.to_string();
    assert_eq!(printed.parse().as_ref(), Ok(&filter), "{printed}");

    let mut field = || texts.next().filter(|text| !text.is_empty()).map(Into::into);
    let mut test = Test::new(field().unwrap_or_default(), field().unwrap_or_default());
    (test.namespace, test.class, test.method, test.file, test.module) =
        (field(), field(), field(), field(), field());
    while let Some(key) = field() {
        test.traits.push((key, field().unwrap_or_default()));
    }
    match format!("not ({printed})").parse::<Filter>() {
        Ok(opposite) => assert_ne!(filter.matches(&test), opposite.matches(&test)),
        // The printed condition is nested more deeply, and the original may have the maximum depth.
        Err(error) => assert!(error.to_string().contains("fewer parentheses"), "{error}"),
    }
    if let Some(uids) = filter.uids() {
        assert_eq!(filter.matches(&test), uids.contains(&&*test.uid));
    }
    if let Some(module) = test.module.as_deref() {
        match filter.of_module(module) {
            ModuleMatch::All => assert!(filter.matches(&test)),
            ModuleMatch::None => assert!(!filter.matches(&test)),
            ModuleMatch::Depends => {}
        }
    }
});

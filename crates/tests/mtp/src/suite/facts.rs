//! Conversion of discovered tests for filters.

use std::borrow::Cow;

use crate::{Module, TestInfo};
use runtap_test::plan::Test;

/// Converts a discovered test.
pub(crate) fn discovered<'a>(test: &'a TestInfo, module: &'a str) -> Test<'a> {
    let text = |text: &'a Option<String>| text.as_deref().map(Cow::Borrowed);
    Test {
        namespace: text(&test.namespace),
        class: text(&test.type_name),
        method: text(&test.method),
        traits: test.traits.iter().map(|(key, value)| (key.into(), value.into())).collect(),
        file: text(&test.file),
        line: test.line.and_then(|line| u32::try_from(line).ok()),
        module: Some(module.into()),
        ..Test::new(test.uid.as_str(), test.name.as_str())
    }
}

/// Returns the paths of modules, by which filters identify them.
pub(crate) fn paths(modules: &[Module]) -> Vec<String> {
    modules.iter().map(|module| module.path().to_string_lossy().into_owned()).collect()
}

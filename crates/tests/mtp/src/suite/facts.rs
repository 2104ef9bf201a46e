//! What is known of tests before they run, as filters see it.

use std::borrow::Cow;

use crate::{Module, TestInfo};
use runtap_test::plan::Test;

/// A test of a module that has been discovered.
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

/// The paths of modules, which is what filters know them by.
pub(crate) fn paths(modules: &[Module]) -> Vec<String> {
    modules.iter().map(|module| module.path().to_string_lossy().into_owned()).collect()
}

//! Every rule of the protocol has a scenario that breaks it.

use std::collections::BTreeSet;

use crate::scenario;

/// Returns the ids of the rules in a text.
pub(crate) fn named_in(text: &str) -> BTreeSet<String> {
    let is_id = |word: &&str| {
        word.len() == 6 && word.starts_with("MTP") && word.bytes().skip(3).all(|byte| byte.is_ascii_digit())
    };
    text.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(is_id).map(str::to_owned).collect()
}

pub(crate) fn every_rule_has_a_scenario() {
    // The page lists the rules of the code, which a test of that crate checks.
    let page = runtap_testkit::workspace_root().join("docs/mtp-rules.md");
    let page = std::fs::read_to_string(page).unwrap();
    let rows = page.lines().filter(|line| line.starts_with("| MTP"));
    let rules: BTreeSet<String> = rows.flat_map(named_in).collect();
    assert!(rules.len() >= 38, "{rules:?}");
    for rule in rules {
        let name = rule.to_lowercase();
        let scenario = scenario::all().into_iter().find(|scenario| scenario.name == name);
        let scenario = scenario.unwrap_or_else(|| panic!("{rule} has no scenario {name}.mtp"));
        assert!(scenario.rules.contains(&rule), "{name} does not say that it breaks {rule}");
        // A scenario that breaks this rule was rejected for another one before.
        let most = if rule == "MTP016" { 2 } else { 1 };
        assert!(scenario.rules.len() <= most, "{name} breaks {:?}", scenario.rules);
    }
}

//! The rules have stable ids, and their page has them all.

use std::collections::BTreeSet;

use runtap_bytefrog_proto::Rule;

#[test]
fn ids_are_in_order_and_unique() {
    let ids: Vec<&str> = Rule::ALL.iter().map(|rule| rule.id()).collect();
    let unique: BTreeSet<&&str> = ids.iter().collect();
    assert_eq!(unique.len(), ids.len());
    assert!(ids.is_sorted());
    assert!(ids.iter().all(|id| id.len() == 7 && id.starts_with("FROG")));
}

#[test]
fn the_page_has_every_rule() {
    let page = runtap_testkit::workspace_root().join("docs/bytefrog-rules.md");
    let page = std::fs::read_to_string(page).expect("the page is there");
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| FROG")).collect();
    let expected: Vec<String> = Rule::ALL
        .iter()
        .map(|rule| {
            format!("| {} | {} | {} | {} |", rule.id(), rule.severity(), rule.summary(), rule.source())
        })
        .collect();
    assert_eq!(rows, expected, "the table of docs/bytefrog-rules.md should be:\n{}", expected.join("\n"));
}

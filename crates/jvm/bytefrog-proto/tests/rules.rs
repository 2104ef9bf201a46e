//! The rules have stable ids, and their documentation lists all of them.

use std::collections::BTreeSet;

use runtap_bytefrog_proto::mode::CommandEffect;
use runtap_bytefrog_proto::{AgentState, Command, Mode, Rule};

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

/// The states of an agent, with their names in the documentation.
const STATES: [(AgentState, &str); 6] = [
    (AgentState::NEW, "initializing"),
    (AgentState { mode: Mode::Suspended, started: false }, "suspended, waits for start"),
    (AgentState { mode: Mode::Tracing, started: true }, "tracing"),
    (AgentState { mode: Mode::Paused, started: true }, "paused"),
    (AgentState { mode: Mode::Suspended, started: true }, "suspended"),
    (AgentState { mode: Mode::ShuttingDown, started: true }, "shutting down"),
];

#[test]
fn the_page_has_every_transition() {
    let page = runtap_testkit::workspace_root().join("docs/bytefrog-rules.md");
    let page = std::fs::read_to_string(page).expect("the page is there");
    let titles: Vec<&str> = STATES.iter().map(|(_, title)| *title).collect();
    let mut expected =
        vec![format!("| command | {} |", titles.join(" | ")), format!("| --- |{}", " --- |".repeat(6))];
    for command in Command::ALL {
        let cells = STATES.map(|(state, _)| match state.after(command) {
            CommandEffect::To(next) => {
                let known = STATES.iter().find(|(state, _)| *state == next);
                known.unwrap_or_else(|| panic!("{command} leads to {next:?}, which has no column")).1
            }
            CommandEffect::Ignored => "*nothing*",
            CommandEffect::Illegal => "**illegal**",
        });
        expected.push(format!("| `{command}` | {} |", cells.join(" | ")));
    }
    let table = expected.join("\n");
    assert!(page.contains(&table), "docs/bytefrog-rules.md should have:\n{table}");
}

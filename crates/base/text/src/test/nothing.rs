//! Messages about why no test or fewer tests than intended are run: unmatched conditions and unknown properties of tests.

use runtap_model::Message;
use runtap_mtp::Module;
use runtap_mtp::suite::plan::{EmptyReason, Planned, Selection};
use runtap_test::plan::Unmet;

use crate::units::Things;

/// The maximum number of conditions and ids that are named.
const MAX_NAMED: usize = 5;

/// Returns why none of the listed tests is run.
pub fn empty(empty: &EmptyReason, selection: &Selection) -> Vec<Message> {
    match empty {
        EmptyReason::OtherParts { tests } => {
            let partition = selection.partition.map(|it| it.to_string()).unwrap_or_default();
            let tests = Things(*tests as u64, "test");
            vec![Message::Note(format!(
                "nothing to run in part {partition}: the other parts have all of {tests}"
            ))]
        }
        EmptyReason::NoMatch { listed, unmet } => {
            let what = match &selection.filter {
                Some(filter) => format!("the filter '{filter}'"),
                None => "--filter-uid".to_owned(),
            };
            let listed = Things(*listed as u64, "test");
            let mut messages = vec![Message::Warning(format!("{what} matches none of {listed}"))];
            messages.extend(unmet.iter().take(MAX_NAMED).map(|Unmet { condition, nearest }| {
                let meant = nearest.as_ref().map(|near| format!("; is it {near}?")).unwrap_or_default();
                Message::Note(format!("  no test meets {condition}{meant}"))
            }));
            if unmet.len() > MAX_NAMED {
                messages.push(Message::Note(format!("  and {} more conditions", unmet.len() - MAX_NAMED)));
            }
            messages
        }
    }
}

/// Returns a warning for each application that does not report the classes, traits or files on which conditions depend.
pub fn missing_facts(planned: &Planned, modules: &[Module]) -> Vec<Message> {
    let modules = planned.names_only.iter().filter_map(|module| modules.get(module.0));
    let warning = |module: &Module| {
        Message::Warning(format!(
            "{module} reports only the names of its tests, so conditions on classes, namespaces, traits and files match none of them (Microsoft.Testing.Platform reports these from version 1.9 on)"
        ))
    };
    modules.map(warning).collect()
}

/// Returns a warning that no application has a test with the given ids, if the applications were not listed before.
pub fn unknown_ids(planned: &Planned, selection: &Selection) -> Option<Message> {
    let of_filter = || selection.filter.as_ref()?.uids();
    let given = || selection.uids.iter().map(String::as_str).collect::<Vec<_>>();
    let ids = if selection.uids.is_empty() { of_filter().unwrap_or_default() } else { given() };
    if ids.is_empty() || planned.empty.is_some() || selection.failed_only {
        return None;
    }
    let more =
        if ids.len() > MAX_NAMED { format!(" and {} more", ids.len() - MAX_NAMED) } else { String::new() };
    let named: Vec<_> = ids.iter().take(MAX_NAMED).copied().collect();
    Some(Message::Warning(format!(
        "no test has the id {}{more}; --list-tests=json shows ids",
        named.join(" or ")
    )))
}

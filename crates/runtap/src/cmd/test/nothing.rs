//! Messages about why no test or fewer tests than intended are run: unmatched conditions and unknown properties of tests.

use runtap_mtp::Module;
use runtap_mtp::suite::plan::{EmptyReason, Planned, Selection};
use runtap_test::plan::Unmet;

use crate::output::Output;
use crate::units::Things;

/// The maximum number of conditions and ids that are named.
const MAX_NAMED: usize = 5;

/// Prints why none of the listed tests is run.
pub(super) fn report_empty(empty: &EmptyReason, selection: &Selection, output: Output) {
    match empty {
        EmptyReason::OtherParts { tests } => {
            let partition = selection.partition.map(|it| it.to_string()).unwrap_or_default();
            let tests = Things(*tests as u64, "test");
            output.note(format_args!(
                "nothing to run in part {partition}: the other parts have all of {tests}"
            ));
        }
        EmptyReason::NoMatch { listed, unmet } => {
            let what = match &selection.filter {
                Some(filter) => format!("the filter '{filter}'"),
                None => "--filter-uid".to_owned(),
            };
            output.warning(format_args!("{what} matches none of {}", Things(*listed as u64, "test")));
            for Unmet { condition, nearest } in unmet.iter().take(MAX_NAMED) {
                let meant = nearest.as_ref().map(|near| format!("; is it {near}?")).unwrap_or_default();
                output.note(format_args!("  no test meets {condition}{meant}"));
            }
            if unmet.len() > MAX_NAMED {
                output.note(format_args!("  and {} more conditions", unmet.len() - MAX_NAMED));
            }
        }
    }
}

/// Warns of applications that do not report the classes, traits or files on which conditions depend.
pub(super) fn warn_of_missing_facts(planned: &Planned, modules: &[Module], output: Output) {
    for module in planned.names_only.iter().filter_map(|module| modules.get(module.0)) {
        output.warning(format_args!(
            "{module} tells only the names of its tests: conditions on classes, namespaces, traits and files meet none of them (Microsoft.Testing.Platform tells these from version 1.9 on)"
        ));
    }
}

/// Warns that no application has a test with the given ids, if the applications were not listed before.
pub(super) fn warn_of_unknown_ids(planned: &Planned, selection: &Selection, output: Output) {
    let of_filter = || selection.filter.as_ref()?.uids();
    let given = || selection.uids.iter().map(String::as_str).collect::<Vec<_>>();
    let ids = if selection.uids.is_empty() { of_filter().unwrap_or_default() } else { given() };
    if ids.is_empty() || planned.empty.is_some() || selection.failed_only {
        return;
    }
    let more =
        if ids.len() > MAX_NAMED { format!(" and {} more", ids.len() - MAX_NAMED) } else { String::new() };
    let named: Vec<_> = ids.iter().take(MAX_NAMED).copied().collect();
    output.warning(format_args!(
        "no test has the id {}{more}; --list-tests=json shows ids",
        named.join(" or ")
    ));
}

//! The tests that a process did not run although it should have run all tests: the tests that its application lists,
//! without those that have a result.

use std::collections::{BTreeMap, HashSet};

use runtap_mtp_proto::server::Mode;

use super::{LaunchSpec, start_process};
use crate::digest::UidSet;
use crate::event::{ModuleFailure, RunEvent, TestInfo};
use crate::run::Timeouts;
use crate::stop::Stop;

/// The tests that are left for another process.
#[derive(Debug, Default)]
pub(super) struct RemainingTests {
    pub uids: Option<Vec<String>>,
    /// Explicit tests beside `uids`.
    pub explicit: Vec<TestInfo>,
    /// The names of `uids`.
    pub names: BTreeMap<String, String>,
    /// The ids and names of rows without a result, of tests with results for other rows.
    pub rows: Vec<(String, String)>,
    /// A failure if the remaining tests are unknown, and therefore not run.
    pub unknown: Option<ModuleFailure>,
}

/// Lists the tests of the application, and returns those without a result.
pub(super) fn find(spec: &LaunchSpec<'_>, seen: &UidSet, stop: &Stop) -> RemainingTests {
    let unknown = |why: String| {
        let text = format!("the remaining tests are unknown because the application cannot list them: {why}");
        RemainingTests { unknown: Some(ModuleFailure::NotRun(text)), ..RemainingTests::default() }
    };
    // Limit the time of the listing.
    let timeouts = Timeouts { whole: Some(spec.timeouts.start), ..spec.timeouts };
    let application = &spec.application.only_known_lists();
    let asking = LaunchSpec { mode: Mode::Discover, live_output: false, timeouts, application, ..*spec };
    let (mut left, mut explicit, mut names) = (Vec::new(), Vec::new(), BTreeMap::new());
    let mut known = HashSet::new();
    let (mut rows, mut with_results) = (Vec::new(), HashSet::new());
    let mut has_seen = seen.is_empty();
    let listed = start_process(&asking, stop).map(|begun| {
        begun.supervise(&asking, None, &mut |events: Vec<RunEvent>| {
            for event in events {
                let RunEvent::Discovered { test, .. } = event else { continue };
                if seen.contains(&test.uid) {
                    has_seen = true;
                    if seen.contains_row(&test.uid, &test.name) {
                        with_results.insert(test.uid);
                    } else {
                        rows.push((test.uid, test.name));
                    }
                } else if known.insert(test.uid.clone()) {
                    if test.is_explicit() {
                        explicit.push(test);
                    } else {
                        left.push(test.uid.clone());
                        names.insert(test.uid, test.name);
                    }
                }
            }
        })
    });
    // If no listed name of a test has a result, results use other names than the list, and missing rows are unknown.
    rows.retain(|(uid, _)| with_results.contains(uid));
    match listed {
        // The run was stopped: nothing more is started.
        _ if stop.level().is_some() => RemainingTests::default(),
        Ok(listed) => match listed.done.failures.first() {
            Some(failure) => {
                let printed = [listed.end.stdout.trim_end(), listed.end.stderr.trim_end()];
                let printed = printed.into_iter().filter(|text| !text.is_empty()).map(str::to_owned);
                unknown(std::iter::once(shortly(failure)).chain(printed).collect::<Vec<_>>().join("\n"))
            }
            None if !has_seen => unknown("the list has none of the tests that have results".to_owned()),
            None => RemainingTests {
                uids: (!left.is_empty()).then_some(left),
                explicit,
                names,
                rows,
                unknown: None,
            },
        },
        Err(error) => unknown(error.to_string()),
    }
}

/// Describes a failure in a few words.
fn shortly(failure: &ModuleFailure) -> String {
    match failure {
        ModuleFailure::NotStarted(why) | ModuleFailure::Unresponsive(why) | ModuleFailure::NotRun(why) => {
            why.clone()
        }
        ModuleFailure::Incompatible(what) | ModuleFailure::Protocol(what) => {
            what.lines().next().unwrap_or_default().to_owned()
        }
        ModuleFailure::NoHandshake(None) => "it never connected".to_owned(),
        ModuleFailure::NoHandshake(Some(code))
        | ModuleFailure::NotHosted { exit: code, .. }
        | ModuleFailure::Died { exit: code, .. }
        | ModuleFailure::ExitCode(code) => format!("exit code {code}"),
    }
}

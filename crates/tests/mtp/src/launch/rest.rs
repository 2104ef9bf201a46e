//! Which tests a process did not come to that was to run all of them: those that its application lists, without those that
//! have a result.

use std::collections::{BTreeMap, HashSet};

use runtap_mtp_proto::server::Mode;

use super::{LaunchSpec, begin};
use crate::digest::Uids;
use crate::event::{ModuleFailure, RunEvent, TestInfo};
use crate::run::Timeouts;
use crate::stop::Stop;

/// What is left for another process.
#[derive(Debug, Default)]
pub(super) struct Rest {
    pub uids: Option<Vec<String>>,
    /// Explicit tests beside those.
    pub explicit: Vec<TestInfo>,
    /// The names of `uids`.
    pub names: BTreeMap<String, String>,
    /// Ids and names of rows without a result, of tests that have results for others of their rows.
    pub rows: Vec<(String, String)>,
    /// It can't be found out: tests that nobody knows are not run.
    pub unknown: Option<ModuleFailure>,
}

/// Asks the application.
pub(super) fn find(spec: &LaunchSpec<'_>, seen: &Uids, stop: &Stop) -> Rest {
    let unknown = |why: String| {
        let text = format!("those that it did not come to are not known, since it can't list them: {why}");
        Rest { unknown: Some(ModuleFailure::NotRun(text)), ..Rest::default() }
    };
    // Nobody waits for a list without an end.
    let timeouts = Timeouts { whole: Some(spec.timeouts.start), ..spec.timeouts };
    let application = &spec.application.only_known_lists();
    let asking = LaunchSpec { mode: Mode::Discover, live_output: false, timeouts, application, ..*spec };
    let (mut left, mut explicit, mut names) = (Vec::new(), Vec::new(), BTreeMap::new());
    let mut known = HashSet::new();
    let (mut rows, mut with_results) = (Vec::new(), HashSet::new());
    let mut has_seen = seen.is_empty();
    let listed = begin(&asking, stop).map(|begun| {
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
    // If no listed name of a test has a result, the names of its results differ from the listed ones, and nothing is known.
    rows.retain(|(uid, _)| with_results.contains(uid));
    match listed {
        // It was told to end itself: nothing is begun any more.
        _ if stop.level().is_some() => Rest::default(),
        Ok(listed) => match listed.done.failures.first() {
            Some(failure) => {
                let printed = [listed.end.stdout.trim_end(), listed.end.stderr.trim_end()];
                let printed = printed.into_iter().filter(|text| !text.is_empty()).map(str::to_owned);
                unknown(std::iter::once(shortly(failure)).chain(printed).collect::<Vec<_>>().join("\n"))
            }
            None if !has_seen => unknown("its list has none of the tests that have results".to_owned()),
            None => Rest { uids: (!left.is_empty()).then_some(left), explicit, names, rows, unknown: None },
        },
        Err(error) => unknown(error.to_string()),
    }
}

/// What a process has failed by, in a few words.
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

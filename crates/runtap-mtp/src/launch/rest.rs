//! Which tests a process did not come to that was to run all of them: those that its application lists, without those that
//! have a result.

use std::collections::HashSet;

use runtap_mtp_proto::server::Mode;

use super::{LaunchSpec, begin};
use crate::digest::Uids;
use crate::event::{ModuleFailure, RunEvent};
use crate::run::Timeouts;
use crate::stop::Stop;

/// What is left for another process.
#[derive(Debug, Default)]
pub(super) struct Rest {
    pub uids: Option<Vec<String>>,
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
    let (mut left, mut known) = (Vec::new(), HashSet::new());
    let listed = begin(&asking, stop).map(|begun| {
        begun.supervise(&asking, None, &mut |events: Vec<RunEvent>| {
            for event in events {
                if let RunEvent::Discovered { test, .. } = event
                    && !seen.contains(&test.uid)
                    && known.insert(test.uid.clone())
                {
                    left.push(test.uid);
                }
            }
        })
    });
    match listed {
        // It was told to end itself: nothing is begun any more.
        _ if stop.level().is_some() => Rest::default(),
        Ok(listed) => match listed.done.failures.first() {
            Some(failure) => unknown(shortly(failure)),
            None => Rest { uids: (!left.is_empty()).then_some(left), unknown: None },
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

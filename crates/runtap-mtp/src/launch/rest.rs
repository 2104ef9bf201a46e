//! Which tests a process did not come to that was to run all of them: those that its application lists, without those that
//! have a result.

use std::collections::HashSet;

use runtap_mtp_proto::server::Mode;

use super::{LaunchSpec, begin};
use crate::digest::Uids;
use crate::event::{ModuleFailure, RunEvent, Severity};
use crate::run::Timeouts;
use crate::stop::Stop;

/// Asks the application. `None`: nothing is left, or it can't be found out, which is told.
pub(super) fn find(
    spec: &LaunchSpec<'_>,
    seen: &Uids,
    stop: &Stop,
    emit: &mut dyn FnMut(Vec<RunEvent>),
) -> Option<Vec<String>> {
    let mut tell = |text: String| {
        emit(vec![RunEvent::Message { module: spec.id, severity: Severity::Warning, text }]);
    };
    let cannot =
        "the tests that it did not come to are not run, since they are not known: it can't list them";
    // Nobody waits for a list without an end.
    let timeouts = Timeouts { whole: Some(spec.timeouts.start), ..spec.timeouts };
    let application = &spec.application.only_known_lists();
    let asking = LaunchSpec { mode: Mode::Discover, live_output: false, timeouts, application, ..*spec };
    let (mut left, mut known) = (Vec::new(), HashSet::new());
    let listed = begin(&asking, stop).map(|begun| {
        begun.supervise(&asking, None, &mut |events| {
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
        _ if stop.level().is_some() => None,
        Ok(listed) => match listed.done.failures.first() {
            Some(failure) => {
                tell(format!("{cannot}: {}", shortly(failure)));
                None
            }
            None if left.is_empty() => None,
            None => {
                let tests = if left.len() == 1 { "1 test" } else { &format!("{} tests", left.len()) };
                tell(format!("{tests} that it did not come to will be run in another process"));
                Some(left)
            }
        },
        Err(error) => {
            tell(format!("{cannot}: {error}"));
            None
        }
    }
}

/// What a process has failed by, in a few words.
fn shortly(failure: &ModuleFailure) -> String {
    match failure {
        ModuleFailure::NotStarted(why) | ModuleFailure::Unresponsive(why) => why.clone(),
        ModuleFailure::Incompatible(what) | ModuleFailure::Protocol(what) => {
            what.lines().next().unwrap_or_default().to_owned()
        }
        ModuleFailure::NoHandshake(None) => "it never connected".to_owned(),
        ModuleFailure::NoHandshake(Some(code))
        | ModuleFailure::Died { exit: code, .. }
        | ModuleFailure::ExitCode(code) => format!("exit code {code}"),
    }
}

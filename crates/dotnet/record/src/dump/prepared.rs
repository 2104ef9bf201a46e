//! The way of a dump from the request to its place.

use std::cell::Cell;
use std::pin::pin;
use std::time::Instant;

use runtap_diag::DumpForm;
use runtap_os::in_a_thread;
use runtap_target::ResolvedTarget;

use crate::dump::ask::{Watched, ask, watch};
use crate::dump::place::{Files, Found, Place};
use crate::dump::{Dump, Error, Event, Outcome, Specification};

/// A dump whose files are open.
#[derive(Debug)]
pub struct Prepared {
    spec: Specification,
    files: Files,
}

impl Prepared {
    /// Opens the files. Nobody is asked for anything yet.
    ///
    /// # Errors
    /// We can't write there.
    pub fn open(spec: Specification) -> Result<Self, Error> {
        let files = Files::make(&spec.wanted, spec.crash_report)?;
        Ok(Self { spec, files })
    }

    /// Has the target write the dump, and brings it to its place. When `stopped` is ready nothing is waited for any more.
    ///
    /// # Errors
    /// There is no dump. [`Error::Interrupted`] if `stopped` became ready before the target was asked for anything, or when it was done.
    pub async fn write(
        self,
        target: &ResolvedTarget,
        stopped: impl Future<Output = ()>,
        tell: &dyn Fn(Event<'_>),
    ) -> Result<Outcome, Error> {
        let Self { spec, files } = self;
        let mut stopped = pin!(stopped);
        let (pid, own_pid) = tokio::select! {
            biased;
            pids = target.pids() => pids?,
            () = stopped.as_mut() => return Err(Error::Interrupted),
        };
        let place = Place::of(pid, files, spec.kind)?;
        if let Some(why) = place.fetched() {
            tell(Event::Fetching { theirs: place.theirs(), why });
        }
        tell(Event::Writing { pid, ours: place.ours() });

        let started = Instant::now();
        let asked = Cell::new(false);
        let note = || {
            asked.set(true);
            tell(Event::Asked);
        };
        let answer = ask(&target.client, &spec, place.told(), note, tell);
        let watched = watch(answer, stopped.as_mut(), &place, tell).await;
        tell(Event::Over);
        let form = match watched {
            Ok(Watched::Done(written)) => written.form,
            Ok(Watched::Interrupted) => {
                let goes_on = asked.get().then(|| place.theirs().to_owned());
                if asked.get() {
                    place.leave();
                } else {
                    place.clean();
                }
                return Ok(Outcome::Interrupted { pid, goes_on });
            }
            Err(error) => {
                let refused =
                    matches!(error, runtap_diag::Error::Refused { .. }) && !error.is_unknown_command();
                // Without an answer the dump may be there, or become.
                if asked.get() && !refused && place.written() > 0 {
                    tell(Event::Left { theirs: place.theirs() });
                    place.leave();
                } else {
                    place.clean();
                }
                return Err(error.into());
            }
        };
        let duration = started.elapsed();
        let crash_report = spec.crash_report && form != DumpForm::GenerateCoreDump;
        // Maybe a long copy.
        let found = tokio::select! {
            biased;
            found = in_a_thread(move || place.finish(crash_report)) => found??,
            () = stopped => return Err(Error::Interrupted),
        };
        let Found { path, target_path, bytes, core, crash_report } = found;
        Ok(Outcome::Written(Box::new(Dump {
            pid,
            path,
            target_path,
            bytes,
            duration,
            core,
            crash_report,
            own_pid,
        })))
    }
}

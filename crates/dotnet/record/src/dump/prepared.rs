//! Writes a dump from the request to the destination.

use std::cell::Cell;
use std::pin::pin;
use std::time::Instant;

use runtap_diag::DumpForm;
use runtap_os::in_a_thread;
use runtap_target::ResolvedTarget;

use crate::dump::ask::{Watched, ask, watch};
use crate::dump::place::{DumpPlan, Files, WrittenFile};
use crate::dump::{Dump, DumpOutcome, Error, Event, Specification};

/// A dump whose files are open.
#[derive(Debug)]
pub struct Prepared {
    spec: Specification,
    files: Files,
}

impl Prepared {
    /// Opens the files. No request is sent yet.
    ///
    /// # Errors
    /// Returns an error if the destination is not writable.
    pub fn open(spec: Specification) -> Result<Self, Error> {
        let files = Files::make(&spec.wanted, spec.crash_report)?;
        Ok(Self { spec, files })
    }

    /// Requests the dump from the target and moves it to its destination. Stops waiting when `stopped` is ready.
    ///
    /// # Errors
    /// Returns an error if there is no dump. [`Error::Interrupted`] if `stopped` became ready before the request was sent, or during
    /// the copy.
    pub async fn write(
        self,
        target: &ResolvedTarget,
        stopped: impl Future<Output = ()>,
        tell: &dyn Fn(Event<'_>),
    ) -> Result<DumpOutcome, Error> {
        let Self { spec, files } = self;
        let mut stopped = pin!(stopped);
        let (pid, own_pid) = tokio::select! {
            biased;
            pids = target.pids() => pids?,
            () = stopped.as_mut() => return Err(Error::Interrupted),
        };
        let place = DumpPlan::of(pid, files, spec.kind)?;
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
                let still_writing_to = asked.get().then(|| place.theirs().to_owned());
                if asked.get() {
                    place.leave();
                } else {
                    place.clean();
                }
                return Ok(DumpOutcome::Interrupted { pid, still_writing_to });
            }
            Err(error) => {
                let refused =
                    matches!(error, runtap_diag::Error::Refused { .. }) && !error.is_unknown_command();
                // Without an answer, the dump may exist or still be written.
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
        // This may copy a large file.
        let found = tokio::select! {
            biased;
            found = in_a_thread(move || place.finish(crash_report)) => found??,
            () = stopped => return Err(Error::Interrupted),
        };
        let WrittenFile { path, target_path, bytes, core, crash_report } = found;
        Ok(DumpOutcome::Written(Box::new(Dump {
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

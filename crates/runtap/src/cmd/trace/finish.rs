//! After the last byte: the files that were asked for, what is said about them, and the exit code.

use std::path::PathBuf;
use std::thread;

use runtap_ingest::ProfileOptions;
use tokio::sync::oneshot;

use super::conductor::Gathered;
use super::job::Job;
use super::one::Taken;
use super::signals::Ear;
use super::summary::{OutputFile, Part, Summary};
use crate::cli::{Content, FileFormat};
use crate::cmd::convert;
use crate::exit::{self, expected};
use crate::files::{Destination, Planned};
use crate::output::Output;

/// Makes the files, one process after the other, and says what there is.
///
/// # Errors
/// Something that was asked for is not there. What could be made was told.
pub(super) async fn finish(job: &Job, gathered: Gathered) -> anyhow::Result<u8> {
    let Gathered { taken, failed } = gathered;
    let mut ear = job.stops.ear();
    let mut summary = Summary::new(job.to_stdout());
    let mut first_error = None;
    let mut missing = false;
    for taken in taken {
        if taken.is_unread() {
            return Ok(exit::OK);
        }
        let (part, outcome) = convert_one(job, taken, &mut ear).await?;
        summary.add(part);
        match outcome {
            Ok(()) => {}
            Err(error) if exit::is_broken_pipe(&error) => return Ok(exit::OK),
            Err(error) => {
                // A disk that is full keeps what it has.
                missing |= exit::is_full_disk(&error);
                first_error.get_or_insert(error);
            }
        }
    }
    for (label, error) in failed {
        if summary.is_empty() && first_error.is_none() {
            first_error = Some(error);
        } else {
            missing = true;
            job.output.warning(format_args!("{label} was not recorded: {error:#}"));
        }
    }
    if summary.is_empty() {
        // Without an error somebody asked for the end before there was anything.
        return first_error.map_or_else(|| Ok(job.stops.exit_code().unwrap_or(exit::OK)), Err);
    }
    summary.print(job.output)?;
    let partial = missing || summary.is_partial();
    match first_error {
        // The rest is what is missing.
        Some(error) if partial => {
            job.output.error(&error, None);
            Ok(exit::PARTIAL)
        }
        Some(error) => Err(error),
        None => Ok(if partial { exit::PARTIAL } else { exit::OK }),
    }
}

/// Converts the recording of one process. What could be made, and why not all was.
async fn convert_one(job: &Job, taken: Taken, ear: &mut Ear) -> anyhow::Result<(Part, anyhow::Result<()>)> {
    let mut part = Part::new(&taken);
    let Taken { name, raw, planned, ended, .. } = taken;
    let profile = ProfileOptions { thread_names: ended.thread_names, process_name: Some(name) };
    let work =
        Conversion { raw: raw.path(), planned, content: job.options.content, profile, output: job.output };
    let (outputs, finished) = tokio::select! {
        finished = work.in_a_thread() => finished?,
        _ = ear.next() => {
            let interrupted = expected(exit::PARTIAL, "interrupted while the recording was converted", None);
            (raw.asked_for()?.into_iter().collect(), Err(interrupted))
        }
    };
    part.outputs = outputs;
    match &finished {
        Err(error) if !exit::is_broken_pipe(error) => {
            if let (true, Some(path)) = (raw.is_temporary(), raw.path()) {
                job.output.warning(format_args!("what was recorded is in {}", path.display()));
            }
        }
        _ => raw.remove_temporary()?,
    }
    Ok((part, finished))
}

/// Making the files that were asked for from the recorded stream.
struct Conversion {
    /// `None` when the stream went to stdout, and nothing can be made of it.
    raw: Option<PathBuf>,
    planned: Vec<Planned>,
    content: Content,
    profile: ProfileOptions,
    output: Output,
}

impl Conversion {
    /// Converts on a thread of its own, so that signals are heard meanwhile. What could be made, and why not all was.
    async fn in_a_thread(self) -> anyhow::Result<(Vec<OutputFile>, anyhow::Result<()>)> {
        let (tell, done) = oneshot::channel();
        thread::Builder::new().name("converter".into()).spawn(move || {
            // Nobody listens any more when it was interrupted.
            let mut outputs = Vec::new();
            let finished = self.run(&mut outputs);
            let _ = tell.send((outputs, finished));
        })?;
        Ok(done.await?)
    }

    fn run(&self, outputs: &mut Vec<OutputFile>) -> anyhow::Result<()> {
        let Some(raw) = &self.raw else { return Ok(()) };
        let mut trace = None;
        for Planned { format, to } in &self.planned {
            let bytes = if *format == FileFormat::Nettrace {
                std::fs::metadata(raw)?.len()
            } else {
                let trace = match &mut trace {
                    Some(trace) => trace,
                    none => {
                        none.insert(convert::profile_of(raw, self.content, &self.profile, self.output)?.0)
                    }
                };
                convert::write(trace, *format, self.content, to, self.output)?
            };
            if let Destination::File(path) = to {
                outputs.push(OutputFile::new(path, *format, bytes));
            }
        }
        Ok(())
    }
}

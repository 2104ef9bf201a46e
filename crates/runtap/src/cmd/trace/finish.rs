//! After the last byte: the files that were asked for, what is said about them, and the exit code.

use std::thread;

use runtap_ingest::ProfileOptions;
use runtap_model::Trace;
use tokio::sync::oneshot;

use super::conductor::Gathered;
use super::job::Job;
use super::one::Taken;
use super::outputs::Opened;
use super::signals::Ear;
use super::summary::{OutputFile, Part, Summary};
use crate::cli::Content;
use crate::cmd::convert;
use crate::cmd::recording::{Partial, partial_of, warn_if_partial};
use crate::exit::{self, expected};
use crate::output::Output;
use runtap_files::Recording;

/// Makes the files, one process after the other, or one for all, and says what there is.
///
/// # Errors
/// Something that was asked for is not there. What could be made was told.
pub(super) async fn finish(job: &Job, gathered: Gathered) -> anyhow::Result<u8> {
    let Gathered { taken, failed } = gathered;
    if taken.iter().any(Taken::is_unread) {
        return Ok(exit::OK);
    }
    let several = taken.len() > 1;
    let groups: Vec<Vec<Taken>> = match job.merge {
        true if taken.is_empty() => Vec::new(),
        true => vec![taken],
        false => taken.into_iter().map(|taken| vec![taken]).collect(),
    };
    let mut ear = job.stops.ear();
    let mut summary = Summary::new(job.to_stdout());
    let mut verdict = Verdict::default();
    for group in groups {
        let label = format!("process {}", group.first().map_or(0, |taken| taken.pid));
        let failed = convert_group(job, group, several, &mut summary, &mut ear).await?.err();
        match failed {
            None => {}
            Some(error) if exit::is_broken_pipe(&error) => return Ok(exit::OK),
            // What has run no managed code has nothing to show; the others have.
            Some(error) if several && exit::is_nothing_to_show(&error) => {
                job.output.warning(format_args!("{label}: {error}"));
                verdict.empty.get_or_insert(error);
            }
            Some(error) => {
                // A disk that is full keeps what it has.
                verdict.missing |= exit::is_full_disk(&error);
                verdict.error.get_or_insert(error);
            }
        }
    }
    for (label, error) in failed {
        if summary.is_empty() && verdict.error.is_none() {
            verdict.error = Some(error);
        } else {
            verdict.missing = true;
            job.output.warning(format_args!("{label} was not recorded: {error:#}"));
        }
    }
    if summary.is_empty() {
        // Without an error somebody asked for the end before there was anything.
        return verdict.error.map_or_else(|| Ok(job.stops.exit_code().unwrap_or(exit::OK)), Err);
    }
    summary.print(job.output)?;
    verdict.missing |= summary.is_partial();
    if !summary.has_files() {
        verdict.error = verdict.error.or(verdict.empty);
    }
    match verdict.error {
        // The rest is what is missing.
        Some(error) if verdict.missing => {
            job.output.error(&error, None);
            Ok(exit::PARTIAL)
        }
        Some(error) => Err(error),
        None => Ok(if verdict.missing { exit::PARTIAL } else { exit::OK }),
    }
}

/// What did not go well.
#[derive(Debug, Default)]
struct Verdict {
    /// The first failure.
    error: Option<anyhow::Error>,
    /// The first of several recordings that there was nothing to make of.
    empty: Option<anyhow::Error>,
    /// Something was recorded, and something is missing.
    missing: bool,
}

/// Makes the files of one process, or those of all. What could be made goes into the summary; why not all was comes
/// back.
async fn convert_group(
    job: &Job,
    group: Vec<Taken>,
    several: bool,
    summary: &mut Summary,
    ear: &mut Ear,
) -> anyhow::Result<anyhow::Result<()>> {
    let mut parts: Vec<Part> = group.iter().map(Part::new).collect();
    let mut outlets = Vec::new();
    let (mut raws, mut sources) = (Vec::new(), Vec::new());
    let base = group.first().map(|taken| taken.base.clone()).unwrap_or_default();
    for Taken { name, raw, outlets: files, ended, .. } in group {
        outlets.extend(files);
        let profile = ProfileOptions {
            thread_names: ended.thread_names,
            process_name: Some(name),
            ..ProfileOptions::default()
        };
        if !outlets.is_empty() || job.merge {
            sources.extend(raw.recording()?.map(|recording| (recording, profile)));
        }
        raws.push(raw);
    }
    if outlets.is_empty() && job.merge {
        // Nothing came of the process that had them.
        outlets = job.outputs_of_all(&base)?;
    }
    let mut outputs = Vec::new();
    for raw in &raws {
        outputs.extend(raw.asked_for()?);
    }
    let work = Conversion { sources, outlets, content: job.options.content, output: job.output };
    let (converted, finished) = tokio::select! {
        finished = work.in_a_thread() => finished?,
        _ = ear.next() => {
            let interrupted = expected(exit::PARTIAL, "interrupted while the recording was converted", None);
            (Made::default(), Err(interrupted))
        }
    };
    if let Some(left_out) = converted.left_out {
        summary.lacks(left_out);
    }
    outputs.extend(converted.files);
    outputs.sort_by_key(|file| job.formats.iter().position(|format| file.is(*format)));
    if let [part] = &mut parts[..] {
        part.outputs = std::mem::take(&mut outputs);
    }
    for part in parts {
        summary.add(part);
    }
    summary.add_files(outputs);
    for raw in raws {
        match &finished {
            // An empty one of several is of no use.
            Err(error) if !(exit::is_broken_pipe(error) || several && exit::is_nothing_to_show(error)) => {
                if let Some(path) = raw.keep() {
                    job.output.warning(format_args!("what was recorded is in {}", path.display()));
                }
            }
            _ => drop(raw),
        }
    }
    Ok(finished)
}

/// What was made.
#[derive(Debug, Default)]
struct Made {
    files: Vec<OutputFile>,
    /// What it lacks of what was recorded.
    left_out: Option<Partial>,
}

/// Making the files that were asked for from recorded streams.
struct Conversion {
    /// The streams with their sizes, each with what it can't tell. Of what went to stdout nothing can be made.
    sources: Vec<((Recording, u64), ProfileOptions)>,
    outlets: Vec<Opened>,
    content: Content,
    output: Output,
}

impl Conversion {
    /// Converts on a thread of its own, so that signals are heard meanwhile. What could be made, and why not all was.
    async fn in_a_thread(self) -> anyhow::Result<(Made, anyhow::Result<()>)> {
        let (tell, done) = oneshot::channel();
        thread::Builder::new().name("converter".into()).spawn(move || {
            // Nobody listens any more when it was interrupted.
            let _ = tell.send(self.run());
        })?;
        Ok(done.await?)
    }

    fn run(mut self) -> (Made, anyhow::Result<()>) {
        let outlets = std::mem::take(&mut self.outlets);
        let sources = std::mem::take(&mut self.sources);
        if outlets.is_empty() || sources.is_empty() {
            return (Made::default(), Ok(()));
        }
        let recorded = sources.iter().map(|((_, bytes), _)| bytes).sum();
        let (trace, left_out) = match self.trace(sources) {
            Ok(done) => done,
            Err(error) => return (Made::default(), Err(error)),
        };
        let outlets = outlets.into_iter().map(|(format, outlet)| (format, Ok(outlet)));
        let (converted, written) =
            convert::write_all((&trace, recorded), outlets, self.content, self.output, |_| Ok(()));
        (Made { files: converted.files, left_out }, written)
    }

    /// The profile of all streams, and what it lacks of them. What is missing from a stream itself was told.
    fn trace(
        &self,
        sources: Vec<((Recording, u64), ProfileOptions)>,
    ) -> anyhow::Result<(Trace, Option<Partial>)> {
        let (mut traces, mut left_out) = (Vec::new(), None);
        for ((recording, _), profile) in sources {
            let (trace, recording) = convert::profile_of(recording, self.content, &profile, self.output)?;
            if recording.is_cut_short() {
                warn_if_partial(&recording, self.output);
                left_out = left_out.or_else(|| partial_of(&recording));
            }
            traces.push(trace);
        }
        let trace = if traces.len() == 1 { traces.remove(0) } else { Trace::merge(traces) };
        Ok((trace, left_out))
    }
}

//! Creates the requested files from recorded streams.

use std::path::Path;

use runtap_clr::ProfileOptions;
use runtap_convert::source::{Partial, Recording};
use runtap_convert::{Content, Note, Profile, WrittenFiles, write_all};
use runtap_model::{Trace, order};
use runtap_os::in_named_thread;

use crate::Error;
use crate::conductor::CollectedStreams;
use crate::event::{Event, Reporter};
use crate::job::Job;
use crate::one::EndedStream;
use crate::outcome::{Files, Part, RecordingOutcome};
use crate::outputs::Opened;
use crate::raw::RawStream;
use crate::stops::StopListener;

/// Creates the files, one process after the other, or one for all.
pub(crate) async fn make(job: &Job, gathered: CollectedStreams) -> RecordingOutcome {
    let CollectedStreams { taken, failed } = gathered;
    let is_unread = taken.iter().any(EndedStream::is_unread);
    let mut outcome =
        RecordingOutcome { failed, is_unread, to_stdout: job.to_stdout(), ..RecordingOutcome::default() };
    if is_unread {
        return outcome;
    }
    let several = taken.len() > 1;
    let groups: Vec<Vec<EndedStream>> = match job.spec.merge {
        true if taken.is_empty() => Vec::new(),
        true => vec![taken],
        false => taken.into_iter().map(|taken| vec![taken]).collect(),
    };
    let mut requests = job.stops.listener();
    for group in groups {
        outcome.made.push(of_group(job, group, several, &mut requests).await);
    }
    outcome
}

/// Creates the files of one process, or those of all.
async fn of_group(
    job: &Job,
    mut group: Vec<EndedStream>,
    several: bool,
    requests: &mut StopListener,
) -> Files {
    let mut made = Files { parts: group.iter_mut().map(Part::new).collect(), ..Files::default() };
    let (raws, prepared) = prepare(job, group, &mut made);
    let finished = match prepared {
        Err(error) => Err(error),
        Ok(work) => tokio::select! {
            finished = in_named_thread("converter", move || work.run()) => finished.map_err(Error::from).flatten(),
            _ = requests.next() => Err(Error::Interrupted),
        },
    };
    match finished {
        Ok((converted, left_out)) => {
            made.left_out = left_out;
            made.files.extend(converted.files);
            made.is_cut = converted.is_cut;
            made.errors.extend(converted.failures.into_iter().map(Into::into));
        }
        Err(error) => made.errors.push(error),
    }
    order::sort_by_key(&mut made.files, |file| {
        job.spec.formats.iter().position(|format| *format == file.format)
    });
    // An empty recording among several is ignored.
    let matters = |error: &Error| !(error.is_closed_pipe() || several && error.is_nothing_to_show());
    if made.errors.first().is_some_and(matters) {
        for path in raws.into_iter().filter_map(RawStream::keep) {
            job.report(Event::Kept(path));
        }
    }
    made
}

/// Prepares the conversion. The streams are returned in any case.
fn prepare(
    job: &Job,
    group: Vec<EndedStream>,
    made: &mut Files,
) -> (Vec<RawStream>, Result<Conversion, Error>) {
    let base = group.first().map(|taken| taken.base.clone()).unwrap_or_default();
    let (mut raws, mut rest) = (Vec::new(), Vec::new());
    for EndedStream { name, raw, outlets, ended, .. } in group {
        raws.push(raw);
        rest.push((name, outlets, ended.thread_names));
    }
    let prepared = conversion(job, &raws, rest, &base, made);
    (raws, prepared)
}

/// The name, the output files and the thread names of a process.
type Rest = (String, Vec<Opened>, Vec<(u64, String)>);

fn conversion(
    job: &Job,
    raws: &[RawStream],
    rest: Vec<Rest>,
    base: &Path,
    made: &mut Files,
) -> Result<Conversion, Error> {
    let (mut outlets, mut sources) = (Vec::new(), Vec::new());
    for raw in raws {
        made.files.extend(raw.asked_for()?);
    }
    for (raw, (name, files, thread_names)) in raws.iter().zip(rest) {
        outlets.extend(files);
        let profile = ProfileOptions { thread_names, process_name: Some(name), ..ProfileOptions::default() };
        if !outlets.is_empty() || job.spec.merge {
            sources.extend(raw.recording()?.map(|recording| (recording, profile)));
        }
    }
    if outlets.is_empty() && job.spec.merge {
        // The process that had the outputs has no result.
        outlets = job.outputs_of_all(base)?;
    }
    Ok(Conversion { sources, outlets, content: job.spec.content, reporter: job.reporter() })
}

/// The conversion of recorded streams to the requested files.
struct Conversion {
    /// The streams, each with information that is not in it. Streams written to standard output are missing.
    sources: Vec<(Recording, ProfileOptions)>,
    outlets: Vec<Opened>,
    content: Content,
    reporter: Reporter,
}

impl Conversion {
    /// Converts the streams. Returns the files, and what they lack of the recording.
    fn run(self) -> Result<(WrittenFiles, Option<Partial>), Error> {
        let Self { sources, outlets, content, reporter } = self;
        if outlets.is_empty() || sources.is_empty() {
            return Ok((WrittenFiles::default(), None));
        }
        let recorded = sources.iter().map(|(recording, _)| recording.length()).sum();
        let mut tell = |note: Note| reporter.report(Event::Note(note));
        let (mut traces, mut left_out) = (Vec::new(), None);
        for (recording, profile) in sources {
            let Profile { trace, recording, .. } = Profile::read(recording, &content, &profile, &mut tell)?;
            // What is missing in the stream itself is reported elsewhere.
            if recording.is_incomplete()
                && let Some(partial) = recording.partial()
            {
                let path = recording.path().to_owned();
                reporter.report(Event::LeftOut { path, partial: partial.clone() });
                left_out.get_or_insert(partial);
            }
            traces.push(trace);
        }
        let trace = if traces.len() == 1 { traces.remove(0) } else { Trace::merge(traces) };
        let outlets = outlets.into_iter().map(|(format, outlet)| (format, Ok(outlet)));
        Ok((write_all(&trace, recorded, outlets, &content, &mut tell), left_out))
    }
}

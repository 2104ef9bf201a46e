//! `runtap trace`: find the process, start a session, record the stream, stop, convert.

mod raw;
mod recorder;
mod session;
mod signals;
mod summary;
mod threads;

use std::path::PathBuf;
use std::thread;

use jiff::Zoned;
use runtap_diag::providers::{Request, RequestError, Requested, Selection};
use runtap_diag::{DEFAULT_RUNDOWN_KEYWORD, ProcessInfo, RundownFallback, SessionConfig};
use runtap_ingest::ProfileOptions;
use tokio::sync::oneshot;

use self::raw::Raw;
use self::signals::Signals;
pub(super) use self::summary::OutputFile;
use self::summary::Summary;
use super::convert;
use super::failure::explain;
use super::target::{Chosen, choose, local_name};
use crate::cli::{AnyFormat, Content, FileFormat, Recording, Trace};
use crate::exit::{self, expected, usage};
use crate::files::{Destination, Planned, check_output, free_base, plan};
use crate::output::Output;

/// Longest name of a program in a file name, in bytes.
const LONGEST_NAME: usize = 100;

pub(super) async fn run(options: Trace, output: Output) -> anyhow::Result<u8> {
    let formats = formats(&options);
    check_output(&formats, options.recording.output.as_deref())?;
    let request = resolve(&options)?;
    let chosen = choose(&options.target, output).await?;
    record(&chosen, &options.recording, &formats, &request, output).await
}

fn formats(options: &Trace) -> Vec<FileFormat> {
    let mut formats = options.to.clone();
    if let Some(AnyFormat::File(format)) = options.format {
        formats.push(format);
    }
    if formats.is_empty() {
        formats.push(FileFormat::Nettrace);
    }
    formats
}

fn resolve(options: &Trace) -> anyhow::Result<Request> {
    Request::resolve(&Selection {
        providers: &options.providers,
        profiles: &options.profile,
        clr_events: options.clrevents.as_deref(),
        clr_event_level: options.clreventlevel.as_deref(),
    })
    .map_err(|error: RequestError| usage(error.to_string()))
}

/// Records a chosen process; `demo` calls it too.
pub(super) async fn record(
    chosen: &Chosen,
    options: &Recording,
    formats: &[FileFormat],
    request: &Request,
    output: Output,
) -> anyhow::Result<u8> {
    let mut signals = Signals::listen()?;
    for note in &request.notes {
        output.note(note);
    }
    for Requested { provider, by } in &request.providers {
        let (name, level) = (&provider.name, provider.level);
        output.detail(format_args!(
            "{name}  {:#018x}  {level:?}({})  {by}",
            provider.keywords,
            level.number()
        ));
    }
    let config = session_config(options, request);

    // Until there is a session, a signal ends us with nothing to keep.
    let start = async {
        let info = who(chosen).await?;
        let session = chosen.client.start_session(&config).await.map_err(explain)?;
        Ok::<_, anyhow::Error>((info, session))
    };
    let started = tokio::select! {
        started = start => Some(started?),
        _ = signals.next() => None,
    };
    let Some((info, session)) = started else { return Ok(signals.exit_code()) };

    let pid = chosen
        .process
        .as_ref()
        .map_or_else(|| info.as_ref().map_or(0, |info| info.process_id), |process| u64::from(process.pid));
    let name = info
        .and_then(|info| info.entry_assembly.filter(|name| !name.is_empty()))
        .or_else(|| chosen.process.as_ref().map(local_name))
        .unwrap_or_else(|| "process".to_owned());
    let base =
        PathBuf::from(format!("{}_{pid}_{}", file_name(&name), Zoned::now().strftime("%Y%m%d_%H%M%S")));
    let base = free_base(formats, &base);
    let planned = plan(formats, options.output.as_deref(), &base)?;
    let (raw, sink, planned) = Raw::create(planned, options.output.is_none(), &base)?;
    let ended = session::run(session, chosen, options, sink, &mut signals, output).await?;
    if ended.recorded.write_error.as_ref().is_some_and(|e| raw.is_stdout() && exit::is_closed_pipe(e)) {
        return Ok(exit::OK);
    }

    let mut summary =
        Summary::new(pid, &ended, planned.iter().any(|planned| planned.to == Destination::Stdout));
    let profile = ProfileOptions { thread_names: ended.thread_names, process_name: Some(name) };
    let work = Conversion { raw: raw.path(), planned, content: options.content, profile, output };
    let (outputs, finished) = tokio::select! {
        finished = work.in_a_thread() => finished?,
        _ = signals.next() => {
            let interrupted = expected(exit::PARTIAL, "interrupted while the recording was converted", None);
            (raw.asked_for()?.into_iter().collect(), Err(interrupted))
        }
    };
    summary.outputs = outputs;
    match finished {
        Ok(()) => {
            raw.remove_temporary()?;
            summary.print(output)?;
            Ok(if summary.is_partial() { exit::PARTIAL } else { exit::OK })
        }
        Err(error) if exit::is_broken_pipe(&error) => {
            raw.remove_temporary()?;
            Ok(exit::OK)
        }
        Err(error) => {
            if let (true, Some(path)) = (raw.is_temporary(), raw.path()) {
                output.warning(format_args!("what was recorded is in {}", path.display()));
            }
            summary.print(output)?;
            // The rest is what is missing.
            if summary.is_partial() || exit::is_full_disk(&error) {
                output.error(&error, None);
                return Ok(exit::PARTIAL);
            }
            Err(error)
        }
    }
}

/// .NET Core 3 can be traced without being able to say who it is.
async fn who(chosen: &Chosen) -> anyhow::Result<Option<ProcessInfo>> {
    match chosen.client.process_info().await {
        Ok(info) => Ok(Some(info)),
        Err(error) if error.is_unknown_command() => Ok(None),
        Err(error) => Err(explain(error)),
    }
}

fn session_config(options: &Recording, request: &Request) -> SessionConfig {
    let mut config =
        SessionConfig::new(request.providers.iter().map(|asked| asked.provider.clone()).collect());
    config.buffer_mb = options.buffersize;
    config.rundown_keyword = match options.rundown {
        Some(false) => 0,
        Some(true) => DEFAULT_RUNDOWN_KEYWORD,
        None => request.rundown_keyword.unwrap_or(DEFAULT_RUNDOWN_KEYWORD),
    };
    // A profile that asks for a small rundown is for targets in which the standard one would hurt.
    config.rundown_fallback = RundownFallback::None;
    config
}

/// A name that is safe in a file name.
fn file_name(name: &str) -> String {
    let safe = name.chars().map(|c| if c == '/' || c.is_control() { '_' } else { c });
    let mut text = String::new();
    for c in safe {
        if text.len() + c.len_utf8() > LONGEST_NAME {
            break;
        }
        text.push(c);
    }
    text
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

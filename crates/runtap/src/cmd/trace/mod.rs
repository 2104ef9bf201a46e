//! `runtap trace`: find the process, start a session, record the stream, stop, convert.

mod recorder;
mod session;
mod summary;
mod threads;

use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use jiff::Zoned;
use runtap_diag::providers::{Request, RequestError, Requested, Selection};
use runtap_diag::{DEFAULT_RUNDOWN_KEYWORD, RundownFallback, SessionConfig};
use runtap_ingest::ProfileOptions;

use self::recorder::Sink;
use self::summary::Summary;
use super::target::{Chosen, choose, local_name};
use super::{convert, failure};
use crate::cli::{AnyFormat, FileFormat, Recording, Trace};
use crate::exit::{self, usage};
use crate::files::{Destination, Planned, plan, with_extension};
use crate::output::Output;

pub(super) async fn run(options: Trace, output: Output) -> anyhow::Result<u8> {
    let formats = formats(&options);
    let request = resolve(&options)?;
    let chosen = choose(&options.target, output)?;
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
    let info = chosen.client.process_info().await;
    let pid = match (&chosen.process, &info) {
        (Some(process), _) => u64::from(process.pid),
        (None, Ok(info)) => info.process_id,
        (None, Err(_)) => 0,
    };
    let info = match info {
        Ok(info) => Some(info),
        // .NET Core 3 can be traced without being able to say who it is.
        Err(error) if error.is_unknown_command() => None,
        Err(error) => return Err(failure::explain(error)),
    };
    let name = info
        .and_then(|info| info.entry_assembly.filter(|name| !name.is_empty()))
        .or_else(|| chosen.process.as_ref().map(local_name))
        .unwrap_or_else(|| "process".to_owned());

    let base =
        PathBuf::from(format!("{}_{pid}_{}", file_name(&name), Zoned::now().strftime("%Y%m%d_%H%M%S")));
    let planned = plan(formats, options.output.as_deref(), &base)?;
    let raw = Raw::of(&planned, &base);
    let sink = Sink::create(&raw.to).with_context(|| format!("can't write {}", raw.name()))?;
    let ended = match session::run(chosen, &config, options, sink, output).await {
        Ok(ended) => ended,
        Err(error) => {
            raw.remove_empty();
            return Err(error);
        }
    };

    let mut summary = Summary::new(pid, &ended);
    let thread_names = ended.thread_names;
    let mut failed = None;
    if let Destination::File(path) = &raw.to {
        let profile = ProfileOptions { thread_names, process_name: Some(name) };
        match finish_files(path, &planned, options, &profile, output) {
            Ok(outputs) => summary.outputs = outputs,
            Err(error) => failed = Some(error),
        }
        if raw.temporary {
            if failed.is_none() {
                fs::remove_file(path).with_context(|| format!("can't delete {}", path.display()))?;
            } else {
                output.warning(format_args!("what was received is in {}", path.display()));
            }
        }
    }
    summary.print(output, raw.to == Destination::Stdout)?;
    match failed {
        Some(error) => Err(error),
        None if summary.is_partial() => Ok(exit::PARTIAL),
        None => Ok(exit::OK),
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
    name.chars().map(|c| if c == '/' || c.is_control() { '_' } else { c }).collect()
}

/// The file of the stream as it was received.
struct Raw {
    to: Destination,
    /// Nobody asked for it: it goes when the files made from it are there.
    temporary: bool,
}

impl Raw {
    fn of(planned: &[Planned], base: &std::path::Path) -> Self {
        if let Some(asked) = planned.iter().find(|planned| planned.format == FileFormat::Nettrace) {
            return Self { to: asked.to.clone(), temporary: false };
        }
        // Beside the first result, so that it is on the disk that the user chose.
        let beside = planned.iter().find_map(|planned| match &planned.to {
            Destination::File(path) => Some(path.clone()),
            Destination::Stdout => None,
        });
        let path = match beside {
            Some(path) => with_extension(&path, ".nettrace.part"),
            None => std::env::temp_dir().join(with_extension(base, ".nettrace.part")),
        };
        Self { to: Destination::File(path), temporary: true }
    }

    fn name(&self) -> String {
        match &self.to {
            Destination::Stdout => "stdout".to_owned(),
            Destination::File(path) => path.display().to_string(),
        }
    }

    fn remove_empty(&self) {
        if let Destination::File(path) = &self.to
            && fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.len() == 0)
        {
            // It only held the place; the error of the session is the one to tell.
            let _ = fs::remove_file(path);
        }
    }
}

/// Makes the files that were asked for from the recorded stream.
fn finish_files(
    raw: &std::path::Path,
    planned: &[Planned],
    options: &Recording,
    profile: &ProfileOptions,
    output: Output,
) -> anyhow::Result<Vec<summary::OutputFile>> {
    let mut outputs = Vec::new();
    let mut trace = None;
    for Planned { format, to } in planned {
        let bytes = if *format == FileFormat::Nettrace {
            fs::metadata(raw)?.len()
        } else {
            let trace = match &mut trace {
                Some(trace) => trace,
                none => none.insert(convert::profile_of(raw, profile, output)?.0),
            };
            convert::write(trace, *format, options.view, to)?
        };
        if let Destination::File(path) = to {
            outputs.push(summary::OutputFile {
                path: path.display().to_string(),
                format: format.name(),
                bytes,
            });
        }
    }
    Ok(outputs)
}

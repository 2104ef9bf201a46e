//! Converts the options of `trace` to a specification.

use std::path::{Path, PathBuf};

use jiff::Zoned;
use runtap_convert::{FileFormat, plan};
use runtap_diag::{DEFAULT_RUNDOWN_KEYWORD, RundownFallback};
use runtap_os::output::plain_name;
use runtap_record::providers::{Request, Selection, messages};
use runtap_record::{Naming, Specification};

use super::show::guard_arguments;
use crate::cli::{AnyFormat, Recording, Trace};
use crate::exit::usage;

pub(super) fn formats(options: &Trace) -> Vec<FileFormat> {
    let output = options.recording.output.as_deref();
    let mut formats = AnyFormat::files(&options.to, options.format, output);
    // Like dotnet-trace, `--format` adds a file to the recording and does not replace it.
    let beside = matches!(options.format, Some(AnyFormat::File(_))) && output.is_none_or(|path| path != "-");
    if formats.is_empty() || beside && !formats.contains(&FileFormat::Nettrace) {
        formats.insert(0, FileFormat::Nettrace);
    }
    formats
}

/// Rejects combinations of options that clap cannot check.
pub(super) fn check(options: &Trace, formats: &[FileFormat]) -> anyhow::Result<()> {
    options.recording.content.checked(formats).map_err(usage)?;
    // Rejects combinations of formats and output that cannot be planned.
    plan(formats, options.recording.output.as_deref(), Path::new("x"))?;
    if options.several.children {
        check_several(options)?;
    }
    if let Some(format) =
        formats.iter().find(|format| options.several.merge && !format.holds_several_processes())
    {
        return Err(usage(format!(
            "one {} file can't contain several processes; use --merge with another format, for example --to speedscope",
            format.name()
        )));
    }
    for (given, option) in
        [(options.show_child_io, "--show-child-io"), (options.recording.kill_command, "--kill-command")]
    {
        if given && options.command.is_empty() {
            return Err(usage(format!(
                "{option} applies only to a launched command; put the command after '--'"
            )));
        }
    }
    if options.command.first().is_some_and(|program| program.is_empty()) {
        return Err(usage("the command is empty; its first word is the program to start"));
    }
    if !options.command.is_empty() && !options.recording.resume_runtime {
        return Err(usage(
            "a launched command waits for runtap to resume it: with --resume-runtime false it would wait forever",
        ));
    }
    Ok(())
}

pub(super) fn check_several(options: &Trace) -> anyhow::Result<()> {
    let to_stdout = options.recording.output.as_deref().is_some_and(|path| path == "-");
    if to_stdout && !options.several.merge {
        return Err(usage("only one recording can be written to stdout; use -o FILE or --merge"));
    }
    Ok(())
}

pub(super) fn request(options: &Trace) -> anyhow::Result<Request> {
    let selection = Selection { event_filters: &options.event_filter, ..options.events.selection() };
    let mut request = Request::resolve(&selection).map_err(|error| usage(messages::request_error(&error)))?;
    if options.method_names {
        request.add_method_names();
    }
    Ok(request)
}

pub(super) fn specification(
    options: &Recording,
    formats: &[FileFormat],
    request: &Request,
) -> anyhow::Result<Specification> {
    let mut spec = Specification::new(request);
    spec.content = options.content.checked(formats).map_err(usage)?;
    formats.clone_into(&mut spec.formats);
    spec.output.clone_from(&options.output);
    spec.naming = Naming::new(|name, pid| {
        PathBuf::from(format!("{}_{pid}_{}", plain_name(name), Zoned::now().strftime("%Y%m%d_%H%M%S")))
    });
    spec.duration = options.duration;
    spec.resume = options.resume_runtime;
    spec.guard = Some(guard_arguments());
    spec.session.buffer_mb = options.buffersize;
    spec.session.rundown_keyword = rundown_keyword(options, request);
    let details = options.session;
    // Fall back to the standard rundown only for an explicit keyword: profiles with a small rundown are meant for targets
    // that the standard rundown would disturb.
    spec.session.rundown_fallback =
        if details.rundown_keyword.is_some() { RundownFallback::Standard } else { RundownFallback::None };
    spec.session.stackwalk = !details.no_stackwalk;
    spec.session.buffering = details.buffering_mode;
    Ok(spec)
}

/// Returns the keyword of the rundown, which selects the names that are requested at the end.
pub(super) fn rundown_keyword(options: &Recording, request: &Request) -> u64 {
    match (options.session.rundown_keyword, options.rundown) {
        (Some(keyword), _) => keyword,
        (None, Some(false)) => 0,
        (None, Some(true)) => DEFAULT_RUNDOWN_KEYWORD,
        (None, None) => request.rundown_keyword.unwrap_or(DEFAULT_RUNDOWN_KEYWORD),
    }
}

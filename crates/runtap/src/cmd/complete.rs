//! `runtap completions SHELL`, and what the shells ask back: live process ids and names.

use std::ffi::OsStr;

use clap_complete::engine::CompletionCandidate;
use clap_complete::env::Shells;
use runtap_transport::discover::{self, Kind, Options, Process};

use super::target::local_name;
use crate::cli::Completions;
use crate::exit::usage;
use crate::output::Output;

pub(super) fn run(options: &Completions, output: Output) -> anyhow::Result<u8> {
    let shells = Shells::builtins();
    let shell = shells
        .completer(&options.shell)
        .ok_or_else(|| usage(format!("'{}' is no shell that completions can be made for", options.shell)))?;
    let mut script = Vec::new();
    shell.write_registration("COMPLETE", "runtap", "runtap", "runtap", &mut script)?;
    output.text(String::from_utf8(script)?)?;
    Ok(crate::exit::OK)
}

fn dotnet() -> Vec<Process> {
    let mut processes = discover::processes(Options::default());
    processes.retain(|process| process.kind == Kind::Dotnet);
    processes
}

/// Completes `-p`.
pub(crate) fn pids(current: &OsStr) -> Vec<CompletionCandidate> {
    let current = current.to_string_lossy();
    let fits = |process: &Process| process.pid.to_string().starts_with(&*current);
    let candidate = |process: Process| {
        let help = format!("{} {}", local_name(&process), process.command_line.join(" "));
        CompletionCandidate::new(process.pid.to_string()).help(Some(help.into()))
    };
    dotnet().into_iter().filter(fits).map(candidate).collect()
}

/// Completes `-n`.
pub(crate) fn names(current: &OsStr) -> Vec<CompletionCandidate> {
    let current = current.to_string_lossy();
    let mut names: Vec<String> =
        dotnet().iter().map(local_name).filter(|name| name.starts_with(&*current)).collect();
    names.sort();
    names.dedup();
    names.into_iter().map(CompletionCandidate::new).collect()
}

/// Completes a bare target.
pub(crate) fn targets(current: &OsStr) -> Vec<CompletionCandidate> {
    let mut candidates = pids(current);
    candidates.extend(names(current));
    candidates
}

/// Completes `--profile`.
pub(crate) fn profiles(current: &OsStr) -> Vec<CompletionCandidate> {
    let current = current.to_string_lossy();
    let fitting =
        runtap_diag::providers::PROFILES.iter().filter(|profile| profile.name.starts_with(&*current));
    fitting.map(|profile| CompletionCandidate::new(profile.name).help(Some(profile.about.into()))).collect()
}

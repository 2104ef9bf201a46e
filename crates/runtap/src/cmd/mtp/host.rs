//! `runtap mtp host`: a test command that acts as a test application, and the script that starts it.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::CommandFactory as _;
use runtap_mtp_host::Launch;
use runtap_mtp_host::command::{Wrap, move_server_arguments};
use runtap_text::Output;

use crate::cli::{Cli, MtpHost, MtpKeep};
use crate::exit::{self, expected, usage};

use super::write_script;

/// Moves the arguments of a server behind the command.
pub(in crate::cmd) fn normalize_args(words: &mut Vec<OsString>) {
    if words.iter().any(|word| word == "host") {
        move_server_arguments(words, &own_options());
    }
}

/// Returns the subcommand's own options except for help, and whether each takes a value.
fn own_options() -> Vec<(String, bool)> {
    let mut all = Cli::command();
    all.build();
    let host = all.find_subcommand("mtp").and_then(|mtp| mtp.find_subcommand("host"));
    let options = host.into_iter().flat_map(clap::Command::get_arguments);
    let options = options.filter(|option| option.get_id() != "help");
    options
        .filter_map(|option| Some((format!("--{}", option.get_long()?), option.get_action().takes_values())))
        .collect()
}

pub(super) fn run(options: MtpHost, output: Output) -> anyhow::Result<u8> {
    match &options.write_module {
        Some(module) => write(&options, module, output),
        None => host(options, output),
    }
}

/// Writes the script. Servers start it from any directory and append their arguments.
fn write(options: &MtpHost, module: &Path, output: Output) -> anyhow::Result<u8> {
    let mut words = vec![std::env::current_exe()?.into_os_string()];
    words.extend(["mtp", "host", "--from", options.from.0.name(), "--module"].map(OsString::from));
    words.push(std::path::absolute(module)?.into());
    let directory = options.directory.as_deref().unwrap_or_else(|| Path::new("."));
    let directory = std::path::absolute(directory)?;
    words.extend(["--directory".into(), directory.into()]);
    if let Some(report) = &options.report {
        words.extend(["--report".into(), report.into()]);
    }
    if let Some(list) = &options.list_arguments {
        words.push(format!("--list-arguments={list}").into());
    }
    if output.is_verbose() {
        words.push("--verbose".into());
    }
    words.push(format!("--words={}", options.command.len()).into());
    words.push("--".into());
    words.extend(options.command.iter().cloned());
    write_script(module, &words)?;
    let shown = options.command.join(OsStr::new(" "));
    output.note(format_args!("{} runs {}", module.display(), shown.display()));
    Ok(exit::OK)
}

fn host(options: MtpHost, output: Output) -> anyhow::Result<u8> {
    let mut command = options.command;
    let arguments = command.split_off(options.words.unwrap_or(command.len()).min(command.len()));
    if command.is_empty() {
        return Err(usage("no command specified"));
    }
    // The remaining arguments are the server's, so errors use the exit codes that servers expect.
    let launch = match Launch::parse(arguments, &[]) {
        Ok(Some(launch)) => launch,
        Ok(None) => {
            let hint = "--write-module FILE writes a script that servers start: runtap test ./FILE";
            return Err(expected(
                exit::USAGE,
                "this verb must be started by a server".to_owned(),
                Some(hint.to_owned()),
            ));
        }
        Err(error) => {
            return Err(expected(runtap_mtp_host::Exit::USAGE.0, error.to_string(), None));
        }
    };
    let list = options.list_arguments;
    let wrap = Wrap {
        format: options.from.0,
        command,
        directory: options.directory,
        report: options.report,
        list_arguments: list.map(|list| list.split_whitespace().map(OsString::from).collect()),
        module: options.module,
        verbose: output.is_verbose(),
        keeper: ["mtp", "keep", "--"].map(OsString::from).into(),
    };
    Ok(wrap.run(&launch).0)
}

/// Runs the helper process that kills the processes of a command when runtap exits for any reason.
pub(super) fn keep(options: &MtpKeep) -> anyhow::Result<u8> {
    let kept = runtap_os::reaper::run_reaper(&options.command, options.leave_group);
    kept.map_err(|error| expected(exit::USAGE, format!("keep: {error}"), None))?;
    Ok(exit::OK)
}

//! `runtap mtp host`: a test command as a test application, or the script that is one.

use std::ffi::OsString;
use std::path::Path;

use runtap_mtp_host::Launch;
use runtap_mtp_tap::write_module;
use runtap_mtp_wrap::{Wrap, keep};

use crate::cli::MtpHost;
use crate::exit::{self, expected, usage};
use crate::output::Output;

pub(super) fn run(options: MtpHost, output: Output) -> anyhow::Result<u8> {
    match &options.write_module {
        Some(module) => write(&options, module, output),
        None => host(options),
    }
}

/// The words of the script: servers start it anywhere, and add theirs at the end.
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
    words.push(format!("--words={}", options.command.len()).into());
    words.push("--".into());
    words.extend(options.command.iter().cloned());
    write_module(module, &words)
        .map_err(|error| expected(exit::USAGE, format!("{}: {error}", module.display()), None))?;
    let shown = options.command.join(std::ffi::OsStr::new(" "));
    output.note(format_args!("{} runs {}", module.display(), shown.display()));
    Ok(exit::OK)
}

fn host(options: MtpHost) -> anyhow::Result<u8> {
    let mut command = options.command;
    let arguments = command.split_off(options.words.unwrap_or(command.len()).min(command.len()));
    if command.is_empty() {
        return Err(usage("there is no command"));
    }
    // Its own words are the server's, and so are its exit codes.
    let launch = match Launch::parse(arguments, &[]) {
        Ok(Some(launch)) => launch,
        Ok(None) => {
            let hint = "--write-module FILE leaves a script that servers start: runtap test ./FILE";
            return Err(expected(
                exit::USAGE,
                "no server has started this".to_owned(),
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
        keeper: ["mtp", "keep", "--"].map(OsString::from).into(),
    };
    Ok(wrap.run(&launch).0)
}

/// The process that ends what a command has started, whoever ends us.
pub(super) fn keep_watch(command: &[OsString]) -> anyhow::Result<u8> {
    keep(command).map_err(|error| expected(exit::USAGE, format!("keep: {error}"), None))?;
    Ok(exit::OK)
}

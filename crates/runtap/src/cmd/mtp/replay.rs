//! `runtap mtp replay FILE`: replays the application's side of a recording, or writes a script that does so.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use runtap_mtp::transcript::{Application, Replay, Server, socket_path};
use runtap_text::Output;
use runtap_text::test::transcript::ReplayedDocument;

use super::{each, warn_if_missing, write_script};
use crate::cli::MtpReplay;
use crate::exit::{self, expected, usage};
use runtap_text::units::Things;

/// The variable in which a server passes the `ExecutionId` shared by all processes of an application.
const EXECUTION_ID: &str = "TESTINGPLATFORM_DOTNETTEST_EXECUTIONID";

pub(super) fn run(options: &MtpReplay, output: Output) -> anyhow::Result<u8> {
    match &options.write_module {
        Some(module) => write(options, module, output),
        None => play(options, output),
    }
}

fn write(options: &MtpReplay, module: &Path, output: Output) -> anyhow::Result<u8> {
    // Detect an unreadable recording now instead of in the middle of a run.
    warn_if_missing(&options.file, each(&options.file, options.max_size.of(), |_| Ok(()))?.as_ref(), output);
    let mut words = vec![std::env::current_exe()?.into_os_string()];
    words.extend(["mtp", "replay"].map(OsString::from));
    if options.fast {
        words.push("--fast".into());
    }
    if options.allow_artifacts {
        words.push("--allow-artifacts".into());
    }
    if let Some(megabytes) = options.max_size.max_size {
        words.extend(["--max-size".into(), megabytes.to_string().into()]);
    }
    words.push(std::path::absolute(&options.file)?.into());
    words.push("--".into());
    words.extend(options.arguments.iter().cloned());
    write_script(module, &words)?;
    output.note(format_args!("{} plays {}", module.display(), options.file.display()));
    Ok(exit::OK)
}

fn play(options: &MtpReplay, output: Output) -> anyhow::Result<u8> {
    let server = server(options)?;
    let mut replay = Replay::new().allow_all_files(options.allow_artifacts);
    let partial = each(&options.file, options.max_size.of(), |located| {
        let taken = replay.take(located);
        taken.map_err(|error| expected(exit::USAGE, format!("{}: {error}", options.file.display()), None))
    })?;
    let missing = warn_if_missing(&options.file, partial.as_ref(), output);
    let words: Vec<_> = options.arguments.iter().map(|word| word.to_string_lossy()).collect();
    let requested = Replay::asked(words.iter().map(|word| &**word));
    if options.pipe.is_none() && requested != replay.mode() {
        let message = format!(
            "{} is the recording of an application that had to {}, but the request is to {}",
            options.file.display(),
            purpose(replay.mode()),
            purpose(requested)
        );
        return Err(expected(exit::USAGE, message, None));
    }
    let execution_id = std::env::var(EXECUTION_ID).ok().filter(|id| !id.is_empty());
    let played = replay.play(&server, execution_id.as_deref(), options.fast);
    let played = played.map_err(|error| expected(exit::FAILED, error.to_string(), None))?;
    if played.foreign_files > 0 {
        output.warning(format_args!(
            "omitted {} of this machine outside the working directory; --allow-artifacts includes them",
            Things(played.foreign_files, "artifact"),
        ));
    }
    if played.left_out > 0 {
        output.detail(format_args!(
            "the server has no control pipe; skipped {}",
            Things(played.left_out, "connection")
        ));
    }
    let exit_code = played.code.map_or(missing, |code| u8::try_from(code).unwrap_or(exit::FAILED));
    let document = ReplayedDocument::new(options.file.display().to_string(), exit_code, &played);
    if output.json() {
        output.document(&document)?;
    } else {
        output.detail(document.remark());
    }
    Ok(exit_code)
}

fn server(options: &MtpReplay) -> anyhow::Result<PathBuf> {
    if let Some(pipe) = &options.pipe {
        return Ok(socket_path(pipe.as_os_str()));
    }
    // The first word is the name of the program, as in an application's arguments.
    let words = std::iter::once(OsString::from("replay")).chain(options.arguments.iter().cloned());
    let application = Application { words: words.collect(), stdout_on_stderr: false };
    match application.server() {
        Ok(Server::At(server)) => Ok(server),
        Ok(Server::Ourselves(_)) => Err(expected(
            exit::USAGE,
            "no server specified",
            "Use --pipe PATH, or --write-module MODULE and run that module with 'dotnet test' or 'runtap test'."
                .to_owned(),
        )),
        Err(error) => Err(usage(error.to_string())),
    }
}

fn purpose(mode: runtap_mtp::transcript::Mode) -> &'static str {
    match mode {
        runtap_mtp::transcript::Mode::Run => "run its tests",
        runtap_mtp::transcript::Mode::Discover => "list its tests",
        runtap_mtp::transcript::Mode::Help => "list its options",
    }
}

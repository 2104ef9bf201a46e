//! `runtap mtp record`: runs an application with a recording proxy, or writes a script that does so.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::Arc;

use runtap_mtp::transcript::{
    Application, ApplicationError, ApplicationOutcome, Server, Signals, TestPipe, is_managed, is_started_by,
    recorder_header, resolve_application, run as run_application, with_process_id,
};
use runtap_os::{exit_code, in_a_thread};
use runtap_record::Stops;
use runtap_route::record::is_in_foreground;
use runtap_text::Output;
use runtap_text::test::transcript::{RecordedDocument, tally};
use runtap_transcript::{Error as TranscriptError, Journal, create};

use super::write_script;
use crate::cli::MtpRecord;
use crate::cmd::record::stop_requests;
use crate::cmd::{block_on, dotnet};
use crate::exit::{self, expected, usage};

/// The number of SIGINT on every system.
const INTERRUPT: i32 = 2;

pub(super) fn run(options: &MtpRecord, output: Output) -> anyhow::Result<u8> {
    match &options.write_module {
        Some(module) => write(options, module, output),
        None => block_on(record(options, output)),
    }
}

/// Writes the script. Its paths are absolute because servers start it from any directory.
fn write(options: &MtpRecord, module: &Path, output: Output) -> anyhow::Result<u8> {
    let mut words = vec![std::env::current_exe()?.into_os_string()];
    words.extend(["mtp", "record", "-o"].map(OsString::from));
    words.push(std::path::absolute(&options.output)?.into());
    if let Some(dotnet) = &options.dotnet {
        words.extend([OsString::from("--dotnet"), std::path::absolute(dotnet)?.into()]);
    }
    words.push("--".into());
    let application = resolve_application(&options.application).map_err(application_error)?;
    if application.first().is_some_and(|first| is_started_by(module, first)) {
        let message =
            format!("{} is the application itself: the script would start itself", module.display());
        return Err(expected(exit::USAGE, message, "Choose another name for the script.".to_owned()));
    }
    if std::path::absolute(module)? == std::path::absolute(&options.output)? {
        return Err(usage(format!("{} can't be both the script and the recording", module.display())));
    }
    words.extend(application);
    write_script(module, &words)?;
    let shown = options.application.join(OsStr::new(" "));
    output.note(format_args!("{} records {}", module.display(), shown.display()));
    Ok(exit::OK)
}

fn application_error(error: ApplicationError) -> anyhow::Error {
    match error {
        ApplicationError::Io(error) => error.into(),
        error @ ApplicationError::NoFile(_) => usage(error.to_string()),
    }
}

async fn record(options: &MtpRecord, output: Output) -> anyhow::Result<u8> {
    let stops = Stops::listen()?;
    let mut words = resolve_application(&options.application).map_err(application_error)?;
    if words.first().is_some_and(|first| is_managed(first)) {
        let dotnet = dotnet::host(options.dotnet.as_deref(), exit::USAGE)?;
        words.splice(0..0, [dotnet.into_os_string(), "exec".into()]);
    }
    let application = Application { words, stdout_on_stderr: output.json() };
    // Before any file is created, so that an invalid argument leaves nothing behind.
    let server = application.server().map_err(|error| usage(error.to_string()))?;
    let (file, path) = create(&with_process_id(&options.output)).map_err(|error| match error {
        // The error already tells whether the user made a mistake.
        TranscriptError::Output(error) => anyhow::Error::from(error),
        error => error.into(),
    })?;
    let (started, recorder) =
        (jiff::Timestamp::now().to_string(), concat!("runtap ", env!("CARGO_PKG_VERSION")));
    let header = recorder_header(&options.application, &server, started, recorder);
    let journal = Journal::begin::<TestPipe>(Box::new(file), header)
        .map_err(|error| expected(exit::FAILED, format!("cannot write {}: {error}", path.display()), None))?;
    let journal = Arc::new(journal);
    let signals = Signals::default();
    let (own, forwarded) = (Arc::clone(&journal), signals.clone());
    let work = in_a_thread(move || run_application(&application, &own, &forwarded));
    let mut requests = stop_requests(&stops);
    tokio::pin!(work);
    let done = loop {
        tokio::select! {
            done = &mut work => break done?,
            Ok(()) = requests.changed() => {
                let signal = requests.borrow_and_update().signal;
                // A terminal sends Ctrl-C to the application too; a second signal would kill the application.
                let typed = signal == Some(INTERRUPT) && is_in_foreground();
                if let Some(signal) = signal.filter(|_| !typed) {
                    signals.send(signal);
                }
            }
        }
    };
    let outcome = done.map_err(|error| expected(exit::RUNTAP_FAILED, error.to_string(), None))?;
    report_outcome(&path, &journal, &outcome, &server, output)
}

fn report_outcome(
    path: &Path,
    journal: &Journal,
    outcome: &ApplicationOutcome,
    server: &Server,
    output: Output,
) -> anyhow::Result<u8> {
    let is_truncated = outcome.totals.is_truncated;
    let code = exit_code(outcome.status).unwrap_or(exit::FAILED);
    if let Some(error) = journal.take_failure() {
        output.warning(format_args!("{} ends early: {error}", path.display()));
    }
    let document = RecordedDocument::new(path.display().to_string(), code, outcome);
    if output.json() {
        output.document(&document)?;
    } else {
        match (server, &outcome.tally) {
            // A server would take this line for output of the application.
            (Server::At(_), _) | (_, None) => output.detail(document.remark()),
            (Server::Ourselves(_), Some(results)) => {
                output.note(format_args!("{}; {}", document.remark(), tally(results)));
            }
        }
    }
    Ok(if code == exit::OK && is_truncated { exit::PARTIAL } else { code })
}

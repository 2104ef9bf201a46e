//! `runtap test`: runs the selected tests, prints events as text or JSON, and writes reports at the end. The run itself is
//! implemented by [`runtap_mtp`].

mod help;
mod mistakes;
mod outputs;
mod request;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use runtap_mtp::suite::history::{Earlier, Recorder, Store};
use runtap_mtp::suite::plan::{EmptyReason, PlanError, Planned, plan};
use runtap_mtp::{
    self as mtp, ApplicationOptions, FoundModules, Job, Mode, Module, ModuleKind, RunSpec, Stop, StopLevel,
    Transport, find_modules, run as run_modules,
};
use runtap_os::in_a_thread;
use runtap_record::{StopListener, StopRequest, Stops};
use runtap_test::plan::{Limit, Partition};
use runtap_text::Output;
use runtap_text::test::{RunPrinter, describe, nothing, print_app_output, with_progress_erased};

use self::request::Request;
use crate::cli::{NoTests, Test, TestTransport};
use crate::cmd::dotnet;
use crate::exit::{FAILED, OK, TEST_USAGE, expected};

/// The time that printing the message about stopping may take after the run has ended.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(1);

pub(super) async fn run(options: Test, output: Output) -> anyhow::Result<u8> {
    let stops = Stops::listen()?;
    let options = options.with_words_of_options();
    if options.help {
        help::print_own(output)?;
        if options.paths.is_empty() && options.patterns.is_none() {
            return Ok(0);
        }
    }
    mistakes::check(&options, output)?;
    let request = Request::of(&options, output)?;
    let spec = spec(&options, &request, output)?;
    if options.help {
        let stop = Stop::new();
        let running = stop.clone();
        let work = in_a_thread(move || help::of_applications(&spec, &running, output));
        return run_until_stopped(work, &stops, &stop, options.timeout, output).await?;
    }
    let printer = outputs::open(&options, &request, &spec, output)?;
    let stop = Stop::new();
    let running = stop.clone();
    let warns = options.no_tests == NoTests::Warn;
    let work = in_a_thread(move || work(spec, &request, printer, warns, &running, output));
    run_until_stopped(work, &stops, &stop, options.timeout, output).await?
}

/// Performs the run, from the plan to the history. Returns the exit code.
fn work(
    mut spec: RunSpec,
    request: &Request,
    mut printer: RunPrinter,
    warns: bool,
    stop: &Stop,
    output: Output,
) -> anyhow::Result<u8> {
    let (store, known) = earlier_runs(request, &spec, output)?;
    let mut planned = if spec.mode == Mode::Run || !request.selection.is_whole() {
        match plan(&mut spec, &request.selection, &known, stop) {
            Ok(planned) => planned,
            Err(error) => return report_plan_error(&error, request, output),
        }
    } else {
        Planned::default()
    };
    drop(known);
    if planned.nothing_failed {
        output.note("No test failed in its last run; nothing to run again.");
        return Ok(0);
    }
    output.messages(nothing::missing_facts(&planned, &spec.modules));
    if let Some(empty) = &planned.empty {
        output.messages(nothing::empty(empty, &request.selection));
        spec.may_be_empty |= matches!(empty, EmptyReason::OtherParts { .. });
    }
    spec.rules = request.settings.rules(&spec, &planned);
    printer.begin()?;
    spec.live_output = printer.follows_output();
    spec.keeper = printer.keeper();
    printer.add_known_tests(std::mem::take(&mut planned.known));
    // An application with its own restriction does not run completely.
    let is_restricted = spec.application.restricts_tests();
    let complete = if is_restricted { Vec::new() } else { std::mem::take(&mut planned.complete) };
    let mut recorder = Recorder::new(now(), spec.modules.clone(), complete);
    let mut is_unwritable = false;
    if let (Some(store), Mode::Run) = (store, spec.mode)
        && let Err(error) = store.begin(&mut recorder, spec.jobs.iter().map(|job| job.module))
    {
        is_unwritable = true;
        output.warning(format_args!("{error}; '--rerun' may ignore this run"));
    }
    let outcome = run_modules(&spec, stop, |mut event| {
        recorder.event(&event);
        printer.event(&mut event, stop.level().is_some());
    })?;
    if stop.level().is_some() {
        recorder.interrupted();
    }
    printer.request_facts(&spec, outcome.exit_code, stop);
    if let (Some(store), Mode::Run, Some(results)) = (store, spec.mode, printer.results())
        && let Err(error) = store.add(&recorder, results)
        && !is_unwritable
    {
        output.warning(error);
    }
    if outcome.exit_code == mtp::code::ZERO_TESTS {
        output.messages(nothing::unknown_ids(&planned, &request.selection));
    }
    if warns && spec.mode == Mode::Run && outcome.totals.total() == 0 && stop.level().is_none() {
        output.warning("no test was run");
    }
    let is_written = printer.finish()?;
    Ok(match u8::try_from(outcome.exit_code).unwrap_or(u8::MAX) {
        OK if !is_written => FAILED,
        code => code,
    })
}

/// Returns the store for this run, and the results of earlier runs if the selection depends on them.
fn earlier_runs<'a>(
    request: &'a Request,
    spec: &RunSpec,
    output: Output,
) -> anyhow::Result<(Option<&'a Store>, Earlier)> {
    let Some(store) = &request.store else { return Ok((None, Earlier::default())) };
    let selection = &request.selection;
    let by_time = selection.partition.as_ref().is_some_and(Partition::needs_durations);
    if spec.modules.len() < 2 && !selection.split && !selection.failed_only && !by_time {
        return Ok((Some(store), Earlier::default()));
    }
    match store.earlier(&spec.modules) {
        Ok(known) => {
            if by_time && known.history.modules().next().is_none() {
                output.warning(format_args!(
                    "{} contains no durations; distributing the tests as with --partition count",
                    store.directory().display()
                ));
            }
            Ok((Some(store), known))
        }
        // Without the history, this machine would run a wrong part of the tests, which is worse than an error.
        Err(error) if by_time || selection.failed_only => Err(usage(error.to_string(), None)),
        Err(error) => {
            output.warning(&error);
            Ok((None, Earlier::default()))
        }
    }
}

/// Reports why no plan was made. Returns the exit code if the error was printed here.
fn report_plan_error(error: &PlanError, request: &Request, output: Output) -> anyhow::Result<u8> {
    let code = |code| u8::try_from(code).unwrap_or(u8::MAX);
    Err(match error {
        PlanError::NotListed { failure, stdout, stderr, exit_code, .. } => {
            output.error(format_args!("{error}: it {}", describe(failure)), &[], None);
            print_app_output(stdout, stderr, output);
            return Ok(code(*exit_code));
        }
        PlanError::Stopped => expected(code(mtp::code::ABORTED), "stopped", None),
        PlanError::NoEarlierRun => {
            let path = request.store.as_ref().map(|store| store.directory().display().to_string());
            let hint =
                path.map(|path| format!("Searched {path}; choose another directory with --history DIR."));
            usage(error.to_string(), hint)
        }
        error => anyhow::anyhow!(error.to_string()),
    })
}

/// Returns the current time in milliseconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Waits for the run, and stops it on request: gracefully at the first, immediately at the second. A terminal that is paused
/// with Ctrl-S delays neither.
async fn run_until_stopped<T>(
    work: impl Future<Output = std::io::Result<T>>,
    stops: &Stops,
    stop: &Stop,
    timeout: Option<Duration>,
    output: Output,
) -> anyhow::Result<T> {
    tokio::pin!(work);
    // A second request may arrive before the first is handled.
    let mut listener = stops.listener();
    let over = async {
        match timeout {
            Some(timeout) => tokio::time::sleep(timeout).await,
            None => std::future::pending().await,
        }
    };
    let print_message: fn(Output) = tokio::select! {
        done = &mut work => return Ok(done?),
        () = stops.stopping() => {
            |output| output.note("Stopping: canceling running tests; Ctrl-C again kills them")
        }
        () = over => |output| output.warning("the time limit of the run has elapsed; canceling running tests"),
    };
    stop.stop(StopLevel::Graceful);
    let printing = tokio::spawn(in_a_thread(move || with_progress_erased(|| print_message(output))));
    let done = tokio::select! {
        done = &mut work => done,
        () = second_signal(&mut listener) => {
            stop.stop(StopLevel::Hard);
            work.await
        }
    };
    // If the message is still blocked after this time, give up.
    let _ = tokio::time::timeout(MESSAGE_TIMEOUT, printing).await;
    Ok(done?)
}

/// Completes at the second signal.
async fn second_signal(listener: &mut StopListener) {
    while listener.next().await != StopRequest::Abandon {}
}

/// Creates an error with the platform's exit code for invalid usage.
fn usage(message: impl Into<String>, hint: impl Into<Option<String>>) -> anyhow::Error {
    expected(TEST_USAGE, message, hint)
}

fn spec(options: &Test, request: &Request, output: Output) -> anyhow::Result<RunSpec> {
    let FoundModules { modules, order, .. } = find_applications(options, &request.root, output)?;
    let mut spec = RunSpec::new(modules);
    spec.process_keeper = process_keeper();
    spec.jobs = order.into_iter().map(Job::whole).collect();
    if options.list_tests.is_some() {
        spec.mode = Mode::Discover;
    }
    request.settings.apply(&mut spec);
    spec.timeouts.start = options.start_timeout.unwrap_or(spec.timeouts.start);
    spec.timeouts.grace = options.grace.unwrap_or(spec.timeouts.grace);
    spec.timeouts.exit = match options.exit_timeout {
        Some(Limit::At(limit)) => Some(limit),
        Some(Limit::None) => None,
        None => spec.timeouts.exit,
    };
    spec.transport = match options.transport {
        TestTransport::Pipe => Transport::Pipe,
        TestTransport::Http => Transport::Http,
    };
    spec.application = application(options, &spec.modules)?;
    spec.may_be_empty = options.no_tests != NoTests::Fail;
    spec.ignored_codes.clone_from(&options.ignore_exit_code);
    spec.ignored_codes.extend(spec.application.ignored_codes());
    Ok(spec)
}

/// Returns the arguments with which runtap supervises an application. Processes that an application leaves behind continue if
/// the application exits by itself. On Windows, a job object ends an application together with this program.
fn process_keeper() -> Vec<OsString> {
    let words: &[&str] = if cfg!(unix) { &["mtp", "keep", "--leave-group", "--"] } else { &[] };
    words.iter().map(OsString::from).collect()
}

fn find_applications(options: &Test, root: &Path, output: Output) -> anyhow::Result<FoundModules> {
    let named = options.patterns.iter().flat_map(|list| list.split(';'));
    let named = named.map(str::trim).filter(|pattern| !pattern.is_empty()).map(str::to_owned);
    let wanted: Vec<_> = options.paths.iter().cloned().chain(named).collect();
    let found =
        find_modules(root, &wanted).map_err(|error| mistakes::no_application(&error, options, root))?;
    if let [first, more @ ..] = &found.left_out[..] {
        let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
        output.note(format_args!(
            "Skipped a library that is not an application: {}{more}. Put patterns in quotes to match only test applications.",
            first.display()
        ));
    }
    // With the options of `dotnet test`, use its order too.
    let has_dotnet_options = options.patterns.is_some() && options.paths.is_empty();
    Ok(if has_dotnet_options { found.in_order_of_directories() } else { found })
}

fn application(options: &Test, modules: &[Module]) -> anyhow::Result<ApplicationOptions> {
    let managed = modules.iter().any(|module| module.kind() == ModuleKind::Managed);
    let dotnet = match &options.dotnet {
        Some(given) => Some(given.clone()),
        None if managed => Some(dotnet::host(None, TEST_USAGE)?),
        None => None,
    };
    let absolute = |path: &Option<PathBuf>| path.as_deref().map(std::path::absolute).transpose();
    Ok(ApplicationOptions {
        dotnet,
        results_directory: absolute(&options.results_directory)?,
        config_file: absolute(&options.config_file)?,
        diagnostic_directory: absolute(&options.diagnostic_output_directory)?,
        arguments: options.arguments.clone(),
        environment: options.environment.iter().map(|text| variable(text)).collect::<Result<_, _>>()?,
        working_directory: None,
    })
}

fn variable(text: &str) -> anyhow::Result<(OsString, OsString)> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.into(), value.into())),
        _ => Err(usage(format!("'{text}' is not a variable"), "Use --environment NAME=VALUE.".to_owned())),
    }
}

//! `runtap test`: what the options ask for as a run, what happens as lines or JSON, reports at the end. The run itself is
//! [`runtap_mtp`]'s.

mod choose;
mod lines;
mod list;
mod model;
mod sink;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use runtap_mtp::{
    ApplicationOptions, FindError, Mode, Module, ModuleKind, RunSpec, Stop, StopLevel, Timeouts, find_dotnet,
    find_modules, run as run_modules,
};
use runtap_record::{StopRequest, Stops};
use runtap_transport::in_a_thread;

use self::choose::Choice;
use self::sink::Sink;
use crate::cli::Test;
use crate::exit::{TEST_USAGE, expected};
use crate::output::Output;

pub(super) async fn run(options: Test, output: Output) -> anyhow::Result<u8> {
    let stops = Stops::listen()?;
    let mut spec = spec(&options)?;
    let choice = Choice::of(&options)?;
    let mut sink = Sink::new(&options, &spec, output)?;
    let stop = Stop::new();
    let running = stop.clone();
    let work = in_a_thread(move || {
        if let Some(choice) = choice {
            choice.apply(&mut spec, &running)?;
        }
        let mut trouble = None;
        let outcome = run_modules(&spec, &running, |event| {
            if trouble.is_none()
                && let Err(error) = sink.take(&event)
            {
                // Nobody reads what we say, or nothing can be kept: there is no use in going on.
                trouble = Some(error);
                running.stop(StopLevel::Hard);
            }
        });
        Ok((outcome, sink, trouble))
    });
    let done: anyhow::Result<_> = stopping(work, &stops, &stop, &options, output).await?;
    let (outcome, sink, trouble) = done?;
    if let Some(trouble) = trouble {
        return Err(trouble);
    }
    sink.finish(output)?;
    Ok(u8::try_from(outcome?.exit_code).unwrap_or(u8::MAX))
}

/// Waits for the run, and stops it when it is asked to: once in good order, twice at once.
async fn stopping<T>(
    work: impl Future<Output = std::io::Result<T>>,
    stops: &Stops,
    stop: &Stop,
    options: &Test,
    output: Output,
) -> anyhow::Result<T> {
    tokio::pin!(work);
    let over = async {
        match options.timeout {
            Some(timeout) => tokio::time::sleep(timeout).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        done = &mut work => return Ok(done?),
        () = stops.stopping() => {
            output.note("stopping: running tests are told to end; Ctrl-C once more kills them");
        }
        () = over => output.warning("the time for the run is over: running tests are told to end"),
    }
    stop.stop(StopLevel::Graceful);
    tokio::select! {
        done = &mut work => return Ok(done?),
        () = abandoned(stops) => stop.stop(StopLevel::Hard),
    }
    Ok(work.await?)
}

/// Ready when a signal has come a second time.
async fn abandoned(stops: &Stops) {
    let mut listener = stops.listener();
    while listener.next().await != StopRequest::Abandon {}
}

/// Wrong usage has the platform's code here.
fn usage(message: impl Into<String>, hint: impl Into<Option<String>>) -> anyhow::Error {
    expected(TEST_USAGE, message, hint)
}

fn spec(options: &Test) -> anyhow::Result<RunSpec> {
    let modules = modules(options)?;
    let mut spec = RunSpec::new(modules);
    if options.list_tests.is_some() {
        spec.mode = Mode::Discover;
    }
    if !options.filter_uid.is_empty() {
        for job in &mut spec.jobs {
            job.uids = Some(options.filter_uid.clone());
        }
    }
    if let Some(parallel) = options.max_parallel_test_modules {
        spec.parallel = parallel.max(1);
    }
    spec.retries = options.retries;
    spec.max_failed = options.max_fail;
    spec.minimum_expected = options.minimum_expected_tests;
    spec.timeouts = Timeouts { slow: Some(options.slow), test: options.limit_of_each, ..Timeouts::default() };
    spec.application = application(options, &spec.modules)?;
    Ok(spec)
}

fn modules(options: &Test) -> anyhow::Result<Vec<Module>> {
    let root = std::path::absolute(options.root_directory.as_deref().unwrap_or_else(|| Path::new(".")))?;
    let named = options.patterns.iter().flat_map(|list| list.split(';'));
    let named = named.map(str::trim).filter(|pattern| !pattern.is_empty()).map(str::to_owned);
    let wanted: Vec<_> = options.paths.iter().cloned().chain(named).collect();
    find_modules(&root, &wanted).map_err(|error| {
        let hint = match &error {
            FindError::Nothing => Some("runtap test PATH…: a .dll, a program, or a pattern such as 'bin/**/*.Tests.dll'"),
            FindError::NoMatch { .. } => Some(
                "test modules are managed applications that use Microsoft.Testing.Platform, and executable files",
            ),
            _ => None,
        };
        usage(error.to_string(), hint.map(str::to_owned))
    })
}

fn application(options: &Test, modules: &[Module]) -> anyhow::Result<ApplicationOptions> {
    let managed = modules.iter().any(|module| module.kind() == ModuleKind::Managed);
    let dotnet = match &options.dotnet {
        Some(given) => Some(given.clone()),
        None if managed => Some(find_dotnet().map_err(|error| {
            usage(error.to_string(), "name one with --dotnet FILE, or set DOTNET_ROOT".to_owned())
        })?),
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
        _ => Err(usage(format!("'{text}' is no variable"), "--environment NAME=VALUE".to_owned())),
    }
}

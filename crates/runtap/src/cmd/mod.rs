//! The verbs, one per file. This file dispatches to them and converts errors into exit codes.

mod address;
pub(crate) mod complete;
pub(crate) mod convert;
mod counters;
mod demo;
mod diff;
mod doctor;
mod dotnet;
mod dump;
mod env;
mod events;
mod failure;
mod heap;
mod info;
mod inspect;
mod interrupt;
mod jvm;
mod licenses;
mod list_profiles;
mod man;
mod mtp;
mod named_port;
#[cfg(unix)]
mod perf_map;
mod profiler;
mod ps;
mod record;
mod recording;
mod repair;
mod replay;
mod report;
mod resume;
mod router;
mod set_env;
mod stack;
mod startup_hook;
mod tail;
mod target;
mod test;
mod top;
mod trace;
mod version;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::CommandFactory as _;
use runtap_discover::System;

use self::interrupt::or_interrupted;
use crate::cli::{Cli, Deferred, TextOrJson, Verb};
use crate::exit;
use runtap_os::output::sweep;
use runtap_text::Output;

/// Parses the command line, runs the verb, prints its error and returns the exit code.
pub(crate) fn main() -> ExitCode {
    // A shell requests completions through an environment variable; this call then prints them and exits.
    clap_complete::CompleteEnv::with_factory(|| complete::guarded(Cli::command())).complete();
    let words = normalize_args(std::env::args_os().collect());
    let ends_with_dashes = words.last().is_some_and(|word| word == "--");
    let cli = match Cli::try_parse_quickly(words) {
        Ok(cli) => cli,
        Err(error) => {
            // Failing to print help to a closed pipe is not an error.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { wrong_usage() } else { exit::OK });
        }
    };
    let output = cli.global.output(cli.verb.result_format() == TextOrJson::Json);
    let done = match &cli.verb {
        // Probably an unset shell variable: do not fall back to a running process.
        Verb::Trace(options) | Verb::Collect(options) if ends_with_dashes && options.command.is_empty() => {
            Err(exit::usage("no command follows '--'"))
        }
        _ => run(cli.verb, output),
    };
    sweep();
    match done {
        Ok(code) => ExitCode::from(code),
        Err(error) if exit::is_broken_pipe(&error) => ExitCode::from(exit::OK),
        Err(error) => {
            // The kind of a recording determines which reports are valid.
            if let Some(error) = error.downcast_ref::<clap::Error>() {
                let _ = error.print();
                return ExitCode::from(exit::USAGE);
            }
            exit::print_error(&error, output);
            ExitCode::from(exit::code_of(&error))
        }
    }
}

/// Returns the exit code for invalid usage; `test` has the code of Microsoft.Testing.Platform.
fn wrong_usage() -> u8 {
    let is_test = std::env::args_os().nth(1).is_some_and(|verb| verb == "test");
    if is_test { exit::TEST_USAGE } else { exit::USAGE }
}

/// Converts the arguments of dotnet-dsrouter, `dotnet test`, servers that start `mtp host`, and `dotnet-dump collect` to those
/// of runtap.
fn normalize_args(mut words: Vec<OsString>) -> Vec<OsString> {
    if words.get(1).is_some_and(|verb| verb == "router") {
        runtap_route::router::normalize_args(&mut words);
    }
    mtp::normalize_args(&mut words);
    if words.get(1).is_some_and(|verb| verb == "test") {
        runtap_mtp::suite::dotnet_options::normalize_args(&mut words);
    }
    runtap_record::dump::normalize_args(&mut words);
    words
}

fn run(verb: Verb, output: Output) -> anyhow::Result<u8> {
    match verb {
        Verb::Ps(options) => on_processes(ps::run(&options, output), output),
        Verb::Info(options) => at_once(info::run(&options, output), output),
        Verb::Doctor(options) => at_once(doctor::run(&options, output), output),
        Verb::Env(options) => at_once(env::run(&options, output), output),
        Verb::SetEnv(options) => at_once(set_env::run(&options, output), output),
        Verb::Resume(options) => at_once(resume::run(&options, output), output),
        Verb::Dump(options) => on_processes(dump::run(&options, output), output),
        Verb::Heap(options) => on_processes(heap::run(&options, output), output),
        Verb::Profiler(Deferred(options)) => at_once(profiler::run(options, output), output),
        #[cfg(unix)]
        Verb::PerfMap(Deferred(options)) => at_once(perf_map::run(options, output), output),
        Verb::StartupHook(options) => at_once(startup_hook::run(&options, output), output),
        Verb::Trace(Deferred(options)) | Verb::Collect(Deferred(options)) => {
            on_processes(trace::run(*options, output), output)
        }
        Verb::Counters(Deferred(options)) => on_processes(counters::run(options, output), output),
        Verb::Top(Deferred(options)) => on_processes(top::run(options, output), output),
        Verb::Tail(options) => on_processes(tail::run(&options, output), output),
        Verb::Stack(options) => at_once(stack::run(&options, output), output),
        Verb::Convert(options) => convert::run(&options, output),
        Verb::Diff(options) => diff::run(&options, output),
        Verb::Report(options) => report::run(&options, output),
        Verb::Events(options) => events::run(&options, output),
        Verb::Repair(options) => repair::run(&options, output),
        Verb::Inspect(options) => inspect::run(&options, output),
        Verb::Router(Deferred(mode)) => block_on(router::run(mode, output)),
        Verb::Record(Deferred(options)) => on_processes(record::run(*options, output), output),
        Verb::Replay(Deferred(options)) => on_processes(replay::run(*options, output), output),
        Verb::Test(Deferred(options)) => block_on(test::run(*options, output)),
        Verb::Mtp(Deferred(options)) => mtp::run(*options, output),
        Verb::Jvm(Deferred(options)) => jvm::run(options, output),
        #[cfg(not(unix))]
        Verb::Missing(missing) => {
            let (verb, why) = missing.reason();
            Err(not_there(verb, why))
        }
        Verb::Demo(Deferred(options)) => demo::run(options, output),
        #[cfg(unix)]
        Verb::GuardPort(Deferred(options)) => block_on(trace::guard_port(options.path, options.users)),
        Verb::Completions(options) => complete::run(&options, output),
        Verb::Man(options) => man::run(&options, output),
        Verb::ListProfiles(_) => list_profiles::run(output),
        Verb::Licenses(_) => licenses::run(output),
        Verb::Version(_) => version::run(output),
    }
}

/// Creates the error for a verb that this operating system does not support.
#[cfg(not(target_os = "linux"))]
fn not_there(verb: &str, why: &str) -> anyhow::Error {
    let system = if cfg!(windows) { "Windows" } else { "macOS" };
    exit::expected(exit::USAGE, format!("'{verb}' is not there on {system}: {why}"), None)
}

/// Runs a verb that looks for processes, after checking whether `/proc` is readable.
fn on_processes(work: impl Future<Output = anyhow::Result<u8>>, output: Output) -> anyhow::Result<u8> {
    check_proc(output)?;
    block_on(work)
}

/// Runs a verb that looks for processes and stops immediately on a signal.
fn at_once(work: impl Future<Output = anyhow::Result<u8>>, output: Output) -> anyhow::Result<u8> {
    on_processes(or_interrupted(work), output)
}

/// Reports if `/proc` hides processes, so that an empty result is not taken for an absence of processes.
fn check_proc(output: Output) -> anyhow::Result<()> {
    match System::current().proc_trouble() {
        Some(trouble) if trouble.is_fatal() => {
            Err(exit::expected(exit::NO_TARGET, trouble.to_string(), trouble.fix().to_owned()))
        }
        Some(trouble) => {
            output.warning(trouble);
            Ok(())
        }
        None => Ok(()),
    }
}

/// Runs a future on the current thread. runtap waits for few and slow events, so more threads would only slow its start.
fn block_on<T>(future: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(future)
}

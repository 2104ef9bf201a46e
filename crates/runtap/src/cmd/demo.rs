//! `runtap demo`: records a built-in program, for a first look and for machines without .NET.

use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::Context;
use runtap_convert::FileFormat;
use runtap_demo::{Error, Notice, Program};
use runtap_record::Specification;
use runtap_record::providers::{Request, Selection};
use runtap_sinks::Format;
use runtap_target::TargetSpec;
use runtap_text::Output;

mod jvm;

use self::jvm::{jvm, run_agent};
use super::{block_on, target, trace};
use crate::cli::{Demo, DemoServe, DemoTrace, DemoVerb};
use crate::exit::{self, expected};

pub(super) fn run(options: Demo, output: Output) -> anyhow::Result<u8> {
    match options.verb {
        None => record(&options.trace, output),
        Some(DemoVerb::Trace(options)) => record(&options, output),
        Some(DemoVerb::Serve(options)) => serve(&options, output),
        Some(DemoVerb::Jvm(options)) => jvm(&options, output),
        Some(DemoVerb::JvmAgent(options)) => run_agent(&options),
    }
}

fn serve(options: &DemoServe, output: Output) -> anyhow::Result<u8> {
    runtap_demo::serve(options.seconds, &mut io::stdout().lock(), move |notice| match notice {
        Notice::Request { .. } => output.detail(notice),
        _ => output.warning(notice),
    })?;
    Ok(exit::OK)
}

/// Starts the built-in program in a separate process, records it like `trace` does, and prints what to do next.
fn record(options: &DemoTrace, output: Output) -> anyhow::Result<u8> {
    let program = start(options.duration)?;
    let pid = program.pid();
    output.note(format_args!(
        "The built-in program runs as process {pid}; recording it as 'runtap trace -p {pid}' does"
    ));
    let request = Request::resolve(&Selection::default())?;
    let mut spec = Specification::new(&request);
    spec.formats = vec![FileFormat::Nettrace, Format::Speedscope.into(), Format::Flamegraph.into()];
    spec.duration = Some(options.duration);
    spec.output = Some(options.output.clone().unwrap_or_else(|| PathBuf::from("runtap-demo")));
    let code = block_on(async {
        let chosen = target::resolve(&TargetSpec::Pid(pid), false, target::DotnetVerb::TRACE, output).await?;
        trace::record(chosen, spec, output).await
    })?;
    let truth = program.end()?;
    output.note(format_args!("What the demo program reported doing: {truth}"));
    output.note("Open the .svg in a browser, or the .speedscope.json at https://www.speedscope.app.");
    output.note(
        "Next: 'runtap ps' lists your own programs, 'runtap trace -p PID --to speedscope' records one.",
    );
    Ok(code)
}

/// Starts the built-in program, which is this executable with other arguments.
fn start(recorded: Duration) -> anyhow::Result<Program> {
    let mut command = Command::new(std::env::current_exe().context("can't find the program's own file")?);
    // Longer than needed: the program is stopped after the recording.
    let seconds = (recorded + Duration::from_mins(1)).as_secs().to_string();
    command.args(["demo", "serve", "--seconds", &seconds]);
    Program::start(command).map_err(|error| match error {
        Error::NotStarted => {
            let hint = "The program requires a writable temporary directory: set TMPDIR.".to_owned();
            expected(exit::FAILED, error.to_string(), hint)
        }
        error => error.into(),
    })
}

//! `runtap demo`: the main job on a program that is built in, for machines without .NET and for a first look.

use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::Context;
use runtap_convert::FileFormat;
use runtap_providers::{Request, Selection};
use rustix::process::{Pid, Signal, kill_process};

use super::{block_on, target, trace};
use runtap_sinks::Format;

use crate::cli::{Demo, DemoServe, DemoTrace, DemoVerb, Recording, Target};
use crate::exit::{self, expected};
use crate::output::Output;

pub(super) fn run(options: Demo, output: Output) -> anyhow::Result<u8> {
    match options.what {
        None => record(&options.trace, output),
        Some(DemoVerb::Trace(options)) => record(&options, output),
        Some(DemoVerb::Serve(options)) => serve(&options, output),
    }
}

fn serve(options: &DemoServe, output: Output) -> anyhow::Result<u8> {
    crate::demo::serve(options.seconds, &mut io::stdout().lock(), output)?;
    Ok(exit::OK)
}

/// Starts the program in a process of its own, records it as `trace` records any other, and says what to look at.
fn record(options: &DemoTrace, output: Output) -> anyhow::Result<u8> {
    let program = Program::start(options.duration)?;
    output.note(format_args!(
        "the built-in program runs as process {}; recording it as 'runtap trace -p {}' would",
        program.pid, program.pid
    ));
    let formats = [FileFormat::Nettrace, Format::Speedscope.into(), Format::Flamegraph.into()];
    let recording = Recording {
        duration: Some(options.duration),
        output: Some(options.output.clone().unwrap_or_else(|| PathBuf::from("runtap-demo"))),
        ..Recording::default()
    };
    let request = Request::resolve(&Selection::default())?;
    let code = block_on(async {
        let target = Target::process(program.pid);
        let chosen = target::choose(&target, output).await?;
        let request = Request { notes: Vec::new(), ..request };
        trace::record(chosen, &recording, &formats, &request, output).await
    })?;
    let truth = program.end()?;
    output.note(format_args!("what the program did, by its own account: {truth}"));
    output.note("open the .svg in a browser, or the .speedscope.json at https://www.speedscope.app;");
    output
        .note("next: 'runtap ps' lists your own programs, 'runtap trace -p PID --to speedscope' records one");
    Ok(code)
}

/// The built-in program, running.
struct Program {
    child: Child,
    lines: io::Lines<BufReader<ChildStdout>>,
    pid: u32,
}

impl Program {
    /// Starts it and waits until it can be tapped.
    fn start(recorded: Duration) -> anyhow::Result<Self> {
        let ourselves = std::env::current_exe().context("can't find the program's own file")?;
        // Far longer than needed: it is told to end when the recording is over.
        let seconds = (recorded + Duration::from_mins(1)).as_secs().to_string();
        let mut child = Command::new(ourselves)
            .args(["demo", "serve", "--seconds", &seconds])
            // It would wait for a tool that is not ours.
            .env_remove("DOTNET_DiagnosticPorts")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("can't start the built-in program")?;
        let pid = child.id();
        let stdout = child.stdout.take().context("the built-in program has no output")?;
        let mut program = Self { child, lines: BufReader::new(stdout).lines(), pid };
        if program.line_that_starts_with("ready")?.is_none() {
            program.child.wait()?;
            let hint = "it needs a temporary directory that it can write to: set TMPDIR".to_owned();
            return Err(expected(exit::FAILED, "the built-in program did not start", hint));
        }
        Ok(program)
    }

    fn line_that_starts_with(&mut self, start: &str) -> io::Result<Option<String>> {
        for line in self.lines.by_ref() {
            if let Some(rest) = line?.strip_prefix(start) {
                return Ok(Some(rest.trim().to_owned()));
            }
        }
        Ok(None)
    }

    /// Ends it and returns its own account of what it did.
    fn end(mut self) -> anyhow::Result<String> {
        self.terminate();
        let truth = self.line_that_starts_with("truth")?;
        self.child.wait()?;
        truth.context("the built-in program did not say what it did")
    }

    fn terminate(&self) {
        // A process that is gone needs no signal.
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
    }
}

impl Drop for Program {
    /// Also when the recording failed: nothing of ours stays behind.
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            self.terminate();
            // It answers the signal at once.
            let _ = self.child.wait();
        }
    }
}

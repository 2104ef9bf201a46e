//! Benchmarks of runtap. `cargo xtask bench` builds and starts this program; docs/performance.md has the results.
//!
//! - `decode`, `count`, `fields`, `stacks`, `profile`: stages of reading a recording, for a tool that counts their
//!   instructions; `make` writes such a recording.
//! - `results`: the runner's side of the `dotnet test` pipe, for that tool too; `make-results` writes what an
//!   application sends.
//! - `calls`: HQ's side of a Java agent's connection, up to the call tree, for that tool too; `make-calls` writes what
//!   an agent sends.
//! - `repeat`: makes a long recording out of a short one, for manual trials.
//! - `speed`: the stages above, in elapsed time.
//! - `bytefrog`: HQ of Bytefrog agents, from bytes to the call tree; with a number, the memory in use for that many
//!   events.
//! - `heap`: a heap's events to the graph, and dominators; with a number, the memory in use for that many objects.
//! - `capture`, `ps`: the given runtap program, with real runtimes, beside Microsoft's dotnet-trace.
//! - `nettrace`: the decoder and the given runtap program on large files, beside TraceEvent.
//! - `ports`: the given runtap program, with two hundred stand-ins for runtimes that connect.
//! - `events`: the cost of an event for a program that embeds the server.
//! - `instruments`: the cost of events, spans, metrics and log messages of `runtap-events`.
//! - `clients`: a program that embeds the server, with ten thousand hostile clients beside a regular one; `serve` is
//!   the program.
//! - `samples`: the cost of sampling a program's threads: a compressor, a parser, the given web service.
//! - `tests`: `runtap test` with test applications played by `application`, and beside `dotnet test`.
//! - `host`: a test application of `runtap-mtp-host` under the real `dotnet test`, played by this program, and a
//!   command that runtap wraps.
//! - `measure`: runs one command and prints its cost, for the benchmarks above.
//!
//! Never fails because of elapsed time: a missed bar is only reported.

mod bytefrog;
mod capture;
mod clients;
mod cost;
mod events;
mod heap;
mod hosted;
mod instruments;
mod nettrace;
mod output;
mod paired;
mod ports;
mod ps;
mod recording;
mod repeat;
mod samples;
mod session;
mod speed;
mod stages;
mod tests;

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};

use crate::output::line;

const USAGE: &str = "usage: runtap-benches make FILE SAMPLES | make-results FILE RESULTS | results FILE | make-calls FILE EVENTS | calls FILE | repeat RECORDING FILE BYTES | bytefrog [EVENTS] | heap [OBJECTS] | decode FILE | count FILE | fields FILE | stacks FILE | profile FILE | speed | events | instruments | samples SERVICE | clients | host RUNTAP | serve SOCKET | capture RUNTAP | ps RUNTAP | ports RUNTAP | nettrace RUNTAP | tests RUNTAP [SUBJECT] | application COUNT A-MESSAGE BYTES PAUSE FOLDER OPTIONS… | measure PROGRAM ARGS…";

fn main() -> Result<ExitCode> {
    if let Some(played) = hosted::play() {
        return played;
    }
    do_as_told().map(|()| ExitCode::SUCCESS)
}

fn do_as_told() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["make", file, samples] => {
            let samples = samples.parse().context("the number of samples is no number")?;
            Ok(fs::write(file, recording::make(samples)?)?)
        }
        ["make-results", file, results] => {
            let results = results.parse().context("the number of results is no number")?;
            Ok(fs::write(file, tests::frames::make(results)?)?)
        }
        ["results", file] => {
            line(tests::frames::take(&fs::read(file)?)?);
            Ok(())
        }
        ["make-calls", file, events] => {
            let events = events.parse().context("the number of events is no number")?;
            Ok(fs::write(file, bytefrog::make(events)?)?)
        }
        ["calls", file] => {
            line(bytefrog::take(&fs::read(file)?)?);
            Ok(())
        }
        ["repeat", recording, file, size] => {
            let size = size.parse().context("the size is no number")?;
            match runtap_testkit::shared_data(recording) {
                Ok(short) => line(repeat::repeat(&short, size, BufWriter::new(File::create(file)?))?),
                Err(skip) => line(skip),
            }
            Ok(())
        }
        ["speed"] => speed::run(),
        ["bytefrog"] => bytefrog::run(None),
        ["bytefrog", events] => {
            bytefrog::run(Some(events.parse().context("the number of events is no number")?))
        }
        ["heap"] => heap::run(None),
        ["heap", objects] => heap::run(Some(objects.parse().context("the number of objects is no number")?)),
        ["events"] => events::run(),
        ["instruments"] => instruments::run(),
        ["clients"] => clients::run(),
        ["host", runtap] => hosted::run(runtap),
        ["serve", socket] => clients::serve(Path::new(socket)),
        ["capture", runtap] => capture::run(Path::new(runtap)),
        ["ps", runtap] => ps::run(Path::new(runtap)),
        ["ports", runtap] => ports::run(Path::new(runtap)),
        ["samples", service] => samples::run(Path::new(service)),
        ["nettrace", runtap] => nettrace::run(Path::new(runtap)),
        ["tests", runtap, only @ ..] => tests::run(Path::new(runtap), only.first().copied()),
        ["application", words @ ..] => tests::application::play(words, false),
        // A runner passes its options first.
        ["--list-tests", "application", words @ ..] => tests::application::play(words, true),
        ["measure", program, args @ ..] => cost::measure(program, args),
        [stage, file] => {
            let Some((_, run)) = stages::ALL.iter().find(|(name, _)| name == stage) else { bail!(USAGE) };
            // Printed so that the compiler cannot remove the work.
            line(run(&fs::read(file)?)?);
            Ok(())
        }
        _ => bail!(USAGE),
    }
}

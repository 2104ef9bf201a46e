//! A program with an embedded diagnostics server: a worker that .NET tools see as a process, and whose jobs they
//! record.
//!
//! ```sh
//! cargo run -p runtap-diag-server --example embed       # prints its process id; stop it with Enter
//! runtap tail PID --providers Example-Worker:1:4       # or dotnet-trace collect -p PID --providers Example-Worker:1:4
//! ```

#![expect(clippy::print_stdout, reason = "a program, not a library")]

use std::io;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use runtap_diag_server::{DiagnosticServer, Event, EventPipe};
use runtap_nettrace::{Field, FieldType, Metadata};
use runtap_wire::Writer;

/// The keyword of job events.
const JOBS: u64 = 1;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let pipe = EventPipe::new();
    let mut metadata = Metadata::new("Example-Worker", 1, "JobDone");
    metadata.keywords = JOBS;
    metadata.fields = vec![
        Field::new("number", FieldType::U32),
        Field::new("queue", FieldType::String),
        Field::new("milliseconds", FieldType::F64),
    ];
    let done = pipe.define(metadata)?;
    // Tools find the socket until the server is dropped.
    let server = DiagnosticServer::builder().pipe(pipe).spawn()?;
    println!("process {} listens at {}; press Enter to stop it", std::process::id(), server.path().display());

    let (stop, stopped) = mpsc::channel::<()>();
    let worker = thread::spawn(move || {
        let mut number = 0;
        while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(Duration::from_millis(200)) {
            number += 1;
            work(number, &done);
        }
    });
    io::stdin().read_line(&mut String::new())?;
    drop(stop);
    let _ = worker.join();
    // Running sessions get their last events and a proper end.
    server.shut_down();
    Ok(())
}

fn work(number: u32, done: &Event) {
    let start = Instant::now();
    let sum: u64 = (0..u64::from(number) * 1_000).sum();
    std::hint::black_box(sum);
    // No session records the event: gather no data.
    if done.is_enabled() {
        let mut payload = Writer::new();
        payload.u32(number).utf16z("letters").f64(start.elapsed().as_secs_f64() * 1_000.0);
        done.write_here(payload.as_bytes());
    }
}

//! Latency of a regular client of a server to which ten thousand hostile clients connect, and their cost to the server:
//! they send garbage, a byte at a time or half a request, or do not read the answer. A session runs meanwhile.

use std::io::{BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use runtap_diag::blocking::Client;
use runtap_diag::{Level, Provider, Request, SessionConfig};
use runtap_diag_server::{Builder, EventPipe, ProcessDescription};
use runtap_nettrace::{Metadata, Reader, StreamItem};
use runtap_transport::Endpoint;

use crate::output::{self, bar, line, median};

const HOSTILE: usize = 10_000;
/// The number of hostile clients that stay connected, limited by file descriptors.
const KEPT_CONNECTIONS: usize = 500;
const PROVIDER: &str = "Bench-Events";
const EVERY: Duration = Duration::from_millis(1);
const MAX_WAIT: Duration = Duration::from_millis(50);
const MAX_GROWTH: u64 = 16 << 20;

/// The program under test: writes a thousand events per second until its input ends, then prints their number.
pub(crate) fn serve(socket: &Path) -> Result<()> {
    let pipe = EventPipe::new();
    let event = pipe.define(Metadata::new(PROVIDER, 1, "Event"))?;
    let description = ProcessDescription::of_this_process().entry_assembly("bench");
    let server = Builder::new(description).pipe(pipe).path(socket).spawn()?;
    line("ready");
    let over = AtomicBool::new(false);
    let written = thread::scope(|scope| {
        let writing = scope.spawn(|| {
            let mut written = 0u64;
            while !over.load(Ordering::Relaxed) {
                if event.is_enabled() {
                    event.write_here(&written.to_le_bytes());
                    written += 1;
                }
                thread::sleep(EVERY);
            }
            written
        });
        // Waits for the end of the input and ignores its contents.
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        over.store(true, Ordering::Relaxed);
        writing.join().unwrap_or_default()
    });
    line(written);
    server.shut_down();
    Ok(())
}

pub(crate) fn run() -> Result<()> {
    output::machine();
    let directory = tempfile::tempdir()?;
    let socket = directory.path().join("s");
    let mut program = Command::new(std::env::current_exe()?)
        .arg("serve")
        .arg(&socket)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let measured = measure(&mut program, &socket);
    if measured.is_err() {
        // It may have exited already.
        let _ = program.kill();
    }
    program.wait()?;
    measured
}

fn measure(program: &mut Child, socket: &Path) -> Result<()> {
    let mut lines = BufReader::new(program.stdout.take().context("no output")?).lines();
    lines.next().context("the program does not begin")??;
    let client = Client::new(Endpoint::unix(socket))?;
    let config = SessionConfig::new(vec![Provider::new(PROVIDER, u64::MAX, Level::Verbose)]);
    let mut session = client.start_session(&config)?;
    let reading = thread::spawn(move || -> Result<(u64, u64)> {
        let (mut reader, mut events) = (Reader::new(), 0);
        while let Some(chunk) = session.next_chunk()? {
            reader.feed(&chunk);
            while let Some(item) = reader.next()? {
                let of_ours = |event: &runtap_nettrace::Event<'_>| {
                    event.metadata.is_some_and(|metadata| metadata.provider == PROVIDER)
                };
                events += u64::from(matches!(item, StreamItem::Event(event) if of_ours(&event)));
            }
        }
        Ok((events, reader.lost()))
    });
    let before = peak(program.id())?;
    let over = AtomicBool::new(false);
    let (alone, beside, took) = thread::scope(|scope| -> Result<_> {
        let alone = waits(socket, || false, 200)?;
        let asking = scope.spawn(|| waits(socket, || !over.load(Ordering::Relaxed), 0));
        let start = Instant::now();
        let attacked = attack(socket);
        over.store(true, Ordering::Relaxed);
        let took = start.elapsed();
        attacked?;
        let Ok(beside) = asking.join() else { bail!("the good client has failed") };
        Ok((alone, beside?, took))
    })?;
    let growth = peak(program.id())?.saturating_sub(before);
    drop(program.stdin.take());
    let written: u64 = lines.next().context("the program says nothing")??.parse()?;
    let Ok(read) = reading.join() else { bail!("the reader has failed") };
    let (events, lost) = read?;
    line(format_args!(
        "{HOSTILE} hostile clients in {:.2} s; {} requests of a good one meanwhile",
        took.as_secs_f64(),
        beside.len()
    ));
    line(format_args!("a request alone: median {:.2} ms", milliseconds(median(alone))));
    let most = beside.iter().max().copied().unwrap_or_default();
    line(format_args!(
        "beside them: median {:.2} ms, longest {:.2} ms",
        milliseconds(median(beside)),
        milliseconds(most)
    ));
    bar("each request is answered within 50 ms", most <= MAX_WAIT, &format!("{:.1} ms", milliseconds(most)));
    bar(
        "the session has lost nothing",
        lost == 0 && events == written,
        &format!("{events} of {written} events"),
    );
    let megabytes = format!("{} KiB", growth / 1024);
    bar("peak memory grew by at most 16 MiB", growth <= MAX_GROWTH, &megabytes);
    output::machine();
    Ok(())
}

/// Measures the latency of consecutive requests: at least `least`, and more while `go_on` returns true.
fn waits(socket: &Path, go_on: impl Fn() -> bool, least: usize) -> Result<Vec<Duration>> {
    let client = Client::new(Endpoint::unix(socket))?;
    let mut waits = Vec::new();
    while waits.len() < least || go_on() {
        let start = Instant::now();
        client.process_info()?;
        waits.push(start.elapsed());
    }
    Ok(waits)
}

fn attack(socket: &Path) -> Result<()> {
    let request = Request::ProcessEnvironment.to_bytes()?;
    let mut staying = Vec::new();
    for n in 0..HOSTILE {
        let mut stream = UnixStream::connect(socket)?;
        let half = request.get(..n % request.len()).unwrap_or_default();
        // The server may have closed the connection.
        let _ = match n % 5 {
            0 => stream.write_all(&[0xa5; 3000]),
            1 => stream.write_all(half).and_then(|()| stream.shutdown(Shutdown::Write)),
            2 => stream.write_all(half),
            3 => stream.write_all(&request),
            _ => Ok(()),
        };
        if staying.len() < KEPT_CONNECTIONS {
            staying.push(stream);
        } else if let Some(place) = staying.get_mut(n % KEPT_CONNECTIONS) {
            // Sends another byte on a slow connection before it is replaced by this one.
            let _ = place.write(&[0]);
            *place = stream;
        }
    }
    Ok(())
}

/// Returns the peak resident memory of the process in bytes.
fn peak(pid: u32) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("no VmHWM")?;
    let number: u64 = line.trim().trim_end_matches(" kB").trim().parse()?;
    Ok(number * 1024)
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

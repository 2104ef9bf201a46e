//! Results per second through one connection, beside a bare exchange of messages of equal size on a socket pair.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use runtap_mtp::{Module, RunEvent, RunSpec, Stop};

use super::application::{self, Measured};
use crate::output::{Table, bar, median};

const RUNS: usize = 5;
/// Results per message, and their total number.
const MANY: (usize, usize) = (32, 400_000);
const SINGLE: (usize, usize) = (1, 100_000);
const MOST: f64 = 200_000.0;
/// Has the length of a real one.
pub(super) const EXECUTION: &str = "0123456789abcdef0123456789abcdef";
const LEAST_SHARE: f64 = 0.8;

/// Results per second.
#[derive(Debug, Clone, Copy, Default)]
struct Rates {
    /// As measured by the application, which waits only for replies.
    sent: f64,
    /// From the start of the application to the last event of the run.
    handled: f64,
    bare: f64,
}

pub(super) fn run() -> Result<()> {
    let mut table = Table::new(&["", "sent", "handled", "bare exchange", "sent / bare", "handled / bare"]);
    let mut all = Vec::new();
    for (each, count) in [MANY, SINGLE] {
        let mut runs = Vec::new();
        for _ in 0..RUNS {
            let bare = bare(each, count)?;
            let (sent, handled) = through(each, count)?;
            runs.push(Rates { sent, handled, bare });
        }
        let of = |rate: fn(&Rates) -> f64| median(runs.iter().map(rate).collect());
        let share = of(|run| run.sent / run.bare);
        table.row(&[
            format!("{each} a message, {count}"),
            rate(of(|run| run.sent)),
            rate(of(|run| run.handled)),
            rate(of(|run| run.bare)),
            format!("{share:.2}"),
            format!("{:.2}", of(|run| run.handled / run.bare)),
        ]);
        all.push((of(|run| run.handled.min(run.sent)), share));
    }
    table.print("Results a second through one connection");
    if let [(many, _), (_, share)] = all[..] {
        bar("at least 200,000 a second, 32 a message", many >= MOST, &rate(many));
        bar("one a message: at least 0.8 of a bare exchange", share >= LEAST_SHARE, &format!("{share:.2}"));
    }
    Ok(())
}

/// Measures frames of equal size, each answered with eight bytes.
#[expect(clippy::cast_precision_loss, reason = "shown with a few digits")]
fn bare(each: usize, count: usize) -> Result<f64> {
    let frame = application::results(EXECUTION, 0..each, "").to_frame()?;
    let (mut client, mut server) = UnixStream::pair()?;
    let length = frame.len();
    let serving = thread::spawn(move || {
        let mut buffer = vec![0; length];
        while server.read_exact(&mut buffer).is_ok() && server.write_all(&[0; 8]).is_ok() {}
    });
    let since = Instant::now();
    for _ in 0..count / each {
        client.write_all(&frame)?;
        client.read_exact(&mut [0; 8])?;
    }
    let took = since.elapsed();
    drop(client);
    // The thread has stopped with the connection.
    let _ = serving.join();
    Ok(count as f64 / took.as_secs_f64())
}

#[expect(clippy::cast_precision_loss, reason = "shown with a few digits")]
fn through(each: usize, count: usize) -> Result<(f64, f64)> {
    let folder = tempfile::tempdir()?;
    let mut spec = RunSpec::new(vec![Module::new(std::env::current_exe()?)]);
    let words = ["application".to_owned(), count.to_string(), each.to_string(), "0".into(), "0".into()];
    spec.application.arguments = words.into_iter().map(Into::into).collect();
    spec.application.arguments.push(folder.path().into());
    let (mut seen, mut introduced, mut last) = (0, None, Instant::now());
    let outcome = runtap_mtp::run(&spec, &Stop::new(), |event| match event {
        RunEvent::Introduced { .. } => introduced = Some(Instant::now()),
        RunEvent::TestEnded { .. } => {
            seen += 1;
            if seen == count {
                last = Instant::now();
            }
        }
        _ => {}
    })?;
    if (outcome.exit_code, outcome.totals.passed, seen) != (0, count as u64, count) {
        bail!("{outcome:?}, {seen} seen");
    }
    let measured = Measured::read_all(folder.path())?;
    let sending: Duration = measured.iter().map(|it| it.sending).sum();
    let handling = introduced.map(|since| last.duration_since(since)).unwrap_or_default();
    Ok((count as f64 / sending.as_secs_f64(), count as f64 / handling.as_secs_f64()))
}

fn rate(rate: f64) -> String {
    format!("{:.0} k/s", rate / 1e3)
}

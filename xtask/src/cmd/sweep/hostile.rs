//! Records, shows and converts streams that define new data endlessly (`runtap_testkit::hostile`) with the release
//! binary, and compares the peak memory with the limits of docs/reliability.md. Peak memory is the kernel's high-water
//! mark of the process (`VmHWM`), polled until it exits.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::cmd::size;
use crate::output;
use crate::workspace::Workspace;

/// Maximum duration of a run, after which it is stopped and counts as failed.
const LONGEST: Duration = Duration::from_mins(10);
/// Interval between reads of a process's memory; a peak in its last interval is not seen.
const BETWEEN: Duration = Duration::from_millis(2);

const MIB: u64 = 1 << 20;
/// Memory limit for commands that process events one by one: the tables of a reader, the largest block, reordered
/// events, and buffered output.
const PASSING: u64 = 640 * MIB;
/// Memory limit for commands that collect data from a recording: a constant, and a multiple of its size.
const GATHERED: (u64, u64) = (1024 * MIB, 8);

/// How a command gets the stream.
#[derive(Clone, Copy, PartialEq)]
enum From {
    Socket,
    Pipe,
    File,
}

/// A command to try: its name, its input, whether it collects data, and the arguments, in which `IN` and `OUT` are
/// replaced.
type Way = (&'static str, From, bool, &'static [&'static str]);

const WAYS: &[Way] = &[
    ("trace", From::Socket, false, &["trace", "--diagnostic-port", "IN", "-o", "OUT"]),
    (
        "trace --to speedscope",
        From::Socket,
        true,
        &["trace", "--diagnostic-port", "IN", "-o", "OUT", "--to", "nettrace", "--to", "speedscope"],
    ),
    ("tail", From::Socket, false, &["tail", "--diagnostic-port", "IN", "--providers", "Hostile"]),
    ("events -", From::Pipe, false, &["events", "-"]),
    ("events", From::File, false, &["events", "IN"]),
    ("events --count", From::File, true, &["events", "IN", "--count"]),
    ("report cpu", From::File, true, &["report", "IN", "cpu"]),
    ("report events", From::File, true, &["report", "IN", "events"]),
    ("speedscope", From::File, true, &["convert", "IN", "--to", "speedscope", "-o", "OUT"]),
    ("chrome", From::File, true, &["convert", "IN", "--to", "chrome", "-o", "OUT"]),
    ("folded", From::File, true, &["convert", "IN", "--to", "folded", "-o", "OUT"]),
    ("perfetto", From::File, true, &["convert", "IN", "--to", "perfetto", "-o", "OUT"]),
];

/// The result of a run.
struct Ended {
    peak: u64,
    /// `None` if killed by a signal.
    code: Option<i32>,
    time: Duration,
    /// The last line with a warning or error.
    said: String,
}

/// Runs each command with each stream of this size.
pub(super) fn run(ws: &Workspace, megabytes: u64) -> Result<()> {
    if !cfg!(target_os = "linux") {
        bail!("the memory of a process is read from /proc, which only Linux has");
    }
    size::build(ws)?;
    ws.cargo(&["build", "--release", "--package", "runtap-testkit", "--example", "hostile"]).run()?;
    let streams = ws.target().join("release/examples/hostile");
    let folder = ws.target().join("sweep");
    let bench = Bench { runtap: ws.shipped("runtap"), streams, folder, megabytes };
    let mut bad = Vec::new();
    let heads: Vec<&str> = WAYS.iter().map(|(name, ..)| *name).collect();
    let mut table = vec![
        format!("| {megabytes} MB of | {} | longest |", heads.join(" | ")),
        format!("|---{}|---|", "|---".repeat(WAYS.len())),
    ];
    for growth in bench.growths()? {
        let mut row = vec![growth.clone()];
        let mut longest = Duration::ZERO;
        for way in WAYS {
            let ended = bench.try_one(&growth, way)?;
            let (name, _, is_gathered, _) = way;
            let limit = if *is_gathered { GATHERED.0 + GATHERED.1 * megabytes * MIB } else { PASSING };
            let (megabytes, seconds) = (ended.peak / 1_000_000, ended.time.as_secs_f64());
            let code = ended.code.map_or_else(|| "a signal".to_owned(), |code| format!("code {code}"));
            output::note(&format!(
                "{growth}, {name}: {megabytes} MB, {seconds:.0} s, {code}: {}",
                ended.said
            ));
            // Streams have no end, so the result is partial, or there is nothing to show.
            if ended.peak > limit || !matches!(ended.code, Some(1 | 5)) {
                bad.push(format!("{growth}, {name}: {megabytes} MB, {code}"));
            }
            longest = longest.max(ended.time);
            row.push(megabytes.to_string());
        }
        row.push(format!("{:.0} s", longest.as_secs_f64()));
        table.push(format!("| {} |", row.join(" | ")));
        fs::remove_dir_all(&bench.folder)?;
    }
    output::note(&format!("\nPeak memory in MB:\n\n{}", table.join("\n")));
    if !bad.is_empty() {
        bail!("above the limits of docs/reliability.md, or unexpected exit codes: {}", bad.join("; "));
    }
    Ok(())
}

/// The programs and the working directory.
struct Bench {
    runtap: PathBuf,
    streams: PathBuf,
    folder: PathBuf,
    megabytes: u64,
}

impl Bench {
    /// Returns the kinds of streams: `[Definitions, Fields, …]`.
    fn growths(&self) -> Result<Vec<String>> {
        let listed =
            Command::new(&self.streams).output().context("cannot start the program of the streams")?;
        let text = String::from_utf8(listed.stderr)?;
        let names = text.trim().trim_matches(['[', ']']).split(", ").map(str::to_owned);
        Ok(names.filter(|name| !name.is_empty()).collect())
    }

    fn try_one(&self, growth: &str, (name, from, _, arguments): &Way) -> Result<Ended> {
        let Self { runtap, folder, .. } = self;
        let recording = folder.join("hostile.nettrace");
        // Removes the files of each command, except the recording, which the next ones need.
        if folder.is_dir() {
            for entry in fs::read_dir(folder)? {
                let path = entry?.path();
                if path != recording {
                    fs::remove_file(path)?;
                }
            }
        }
        fs::create_dir_all(folder)?;
        let (socket, said) = (folder.join("socket"), folder.join("said"));
        let mut source = None;
        let input = match from {
            From::Socket => {
                source = Some(Ending(self.stream(growth).arg(&socket).spawn()?));
                wait_for(&socket)?;
                format!("{},connect", socket.display())
            }
            From::Pipe => {
                source = Some(Ending(self.stream(growth).stdout(Stdio::piped()).spawn()?));
                String::new()
            }
            From::File => {
                if !recording.exists() {
                    let made = self.stream(growth).stdout(File::create(&recording)?).status()?;
                    if !made.success() {
                        bail!("the recording for {name} was not made: {made}");
                    }
                }
                recording.display().to_string()
            }
        };
        let out = folder.join("out").display().to_string();
        let mut command = Command::new(runtap);
        command.args(arguments.iter().map(|argument| match *argument {
            "IN" => input.as_str(),
            "OUT" => out.as_str(),
            word => word,
        }));
        let piped = source.as_mut().and_then(|Ending(child)| child.stdout.take());
        command.stdin(piped.map_or_else(Stdio::null, Stdio::from));
        command.stdout(Stdio::null()).stderr(File::create(&said)?);
        let ended = watch(&mut command)?;
        let text = fs::read_to_string(&said).unwrap_or_default();
        let problem = |line: &&str| line.starts_with("warning: ") || line.starts_with("error: ");
        let line = text.lines().rev().find(problem).unwrap_or_default().to_owned();
        Ok(Ended { said: line.replace(&format!("{}/", folder.display()), ""), ..ended })
    }

    fn stream(&self, growth: &str) -> Command {
        let mut command = Command::new(&self.streams);
        command.args([growth, &self.megabytes.to_string()]).stdin(Stdio::null());
        command
    }
}

/// A process that is killed on drop.
struct Ending(Child);

impl Drop for Ending {
    fn drop(&mut self) {
        // Fails if it has exited.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until the runtime listens.
fn wait_for(socket: &Path) -> Result<()> {
    let start = Instant::now();
    while !socket.exists() {
        if start.elapsed() > LONGEST {
            bail!("{} was not created", socket.display());
        }
        thread::sleep(BETWEEN);
    }
    Ok(())
}

/// Runs a command until it exits or the time limit is exceeded.
fn watch(command: &mut Command) -> Result<Ended> {
    let start = Instant::now();
    let mut child = Ending(command.spawn().context("cannot start runtap")?);
    let status = format!("/proc/{}/status", child.0.id());
    let mut peak = 0;
    loop {
        // The high-water mark only rises. An exited process has none.
        peak = high_water(&fs::read_to_string(&status).unwrap_or_default()).unwrap_or(0).max(peak);
        if let Some(ended) = child.0.try_wait()? {
            return Ok(Ended { peak, code: ended.code(), time: start.elapsed(), said: String::new() });
        }
        if start.elapsed() > LONGEST {
            return Ok(Ended { peak, code: None, time: start.elapsed(), said: "timed out".to_owned() });
        }
        thread::sleep(BETWEEN);
    }
}

/// Parses `VmHWM:   12345 kB` and returns bytes.
fn high_water(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_memory_is_measured() {
        assert_eq!(high_water("Name:\tx\nVmHWM:\t   12 kB\nVmRSS:\t 3 kB\n"), Some(12 << 10));
        assert_eq!(high_water(""), None);
        if cfg!(target_os = "linux") {
            let ended = watch(Command::new("sh").args(["-c", "sleep 2; exit 5"])).unwrap();
            assert_eq!(ended.code, Some(5));
            assert!(ended.peak > 100_000, "{}", ended.peak);
        }
    }
}

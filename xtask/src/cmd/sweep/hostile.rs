//! Streams that define and never repeat (`runtap_testkit::hostile`), recorded, shown and converted by the release binary:
//! the peak memory of each, against the limits of docs/reliability.md.
//!
//! Owns: the list of what is tried, and the table. Memory is the kernel's own mark of the most that a process had (`VmHWM`),
//! looked at until it ends. Refuses to: know what the streams are; their program tells their names.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::cmd::test;
use crate::output;
use crate::workspace::Workspace;

/// A run that takes longer is ended, and counts as failed.
const LONGEST: Duration = Duration::from_mins(10);
/// Between two looks at the memory of a process; what it takes in its last moment is not seen.
const BETWEEN: Duration = Duration::from_millis(2);

const MIB: u64 = 1 << 20;
/// What may be taken by what looks at an event and forgets it: the tables of a reader, the largest block, events that wait
/// for their order, and lines that wait for their output.
const PASSING: u64 = 640 * MIB;
/// And by what is gathered of a recording: so much, and so many times its size.
const GATHERED: (u64, u64) = (1024 * MIB, 8);

/// Where a command gets its stream from.
#[derive(Clone, Copy, PartialEq)]
enum From {
    Socket,
    Pipe,
    File,
}

/// One way to look at a stream: its name, where it comes from, whether it is gathered, and the arguments, of which `IN` and
/// `OUT` are replaced.
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

/// How a run ended.
struct Ended {
    peak: u64,
    /// `None` after a signal.
    code: Option<i32>,
    time: Duration,
    /// The last line that names a problem.
    said: String,
}

/// Tries each way with each stream of so many megabytes.
pub(super) fn run(ws: &Workspace, megabytes: u64) -> Result<()> {
    if !cfg!(target_os = "linux") {
        bail!("the memory of a process is read from /proc, which only Linux has");
    }
    test::build(ws)?;
    ws.cargo(&["build", "--release", "--package", "runtap-testkit", "--example", "hostile"]).run()?;
    let streams = ws.target().join("release/examples/hostile");
    let folder = ws.target().join("sweep");
    let bench = Bench { runtap: ws.release_binary(), streams, folder, megabytes };
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
            // No stream has an end: it is partial, or there is nothing to show.
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
        bail!("above the limits of docs/reliability.md, or not ended as it should: {}", bad.join("; "));
    }
    Ok(())
}

/// Programs and a place to work in.
struct Bench {
    runtap: PathBuf,
    streams: PathBuf,
    folder: PathBuf,
    megabytes: u64,
}

impl Bench {
    /// What streams there are: `[Definitions, Fields, …]`.
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
        // Each way leaves its files, the recording stays for the next.
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

/// A process that is ended when nobody needs it.
struct Ending(Child);

impl Drop for Ending {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Until the runtime listens.
fn wait_for(socket: &Path) -> Result<()> {
    let start = Instant::now();
    while !socket.exists() {
        if start.elapsed() > LONGEST {
            bail!("{} does not come", socket.display());
        }
        thread::sleep(BETWEEN);
    }
    Ok(())
}

/// Runs it to its end, or to the end of our patience.
fn watch(command: &mut Command) -> Result<Ended> {
    let start = Instant::now();
    let mut child = Ending(command.spawn().context("cannot start runtap")?);
    let status = format!("/proc/{}/status", child.0.id());
    let mut peak = 0;
    loop {
        // The mark only rises. A process that has ended has no memory any more.
        peak = high_water(&fs::read_to_string(&status).unwrap_or_default()).unwrap_or(0).max(peak);
        if let Some(ended) = child.0.try_wait()? {
            return Ok(Ended { peak, code: ended.code(), time: start.elapsed(), said: String::new() });
        }
        if start.elapsed() > LONGEST {
            return Ok(Ended { peak, code: None, time: start.elapsed(), said: "ended by us".to_owned() });
        }
        thread::sleep(BETWEEN);
    }
}

/// `VmHWM:   12345 kB`, in bytes.
fn high_water(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_that_a_process_had_is_seen() {
        assert_eq!(high_water("Name:\tx\nVmHWM:\t   12 kB\nVmRSS:\t 3 kB\n"), Some(12 << 10));
        assert_eq!(high_water(""), None);
        if cfg!(target_os = "linux") {
            let ended = watch(Command::new("sh").args(["-c", "sleep 2; exit 5"])).unwrap();
            assert_eq!(ended.code, Some(5));
            assert!(ended.peak > 100_000, "{}", ended.peak);
        }
    }
}

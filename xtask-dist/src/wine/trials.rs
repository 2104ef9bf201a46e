//! What is tested under Wine, each by itself. The server, its clients and the unwelcome visitors are separate programs.

mod between;
mod dump;
mod jvm;
mod rights;
mod tests;
mod words;

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use self::between::{connect_to_port, launch, record, route};
use self::jvm::jvm;
use self::rights::{first, hostile, squatter};
use self::tests::{hosted, played, tests};
use self::words::{change, names, pages};
use super::program::{MARK, Running, Said, Wine};

type Trial = fn(&Wine) -> Result<()>;

pub(super) const TRIALS: &[(&str, Trial)] = &[
    ("`version`, `list-profiles`, `--help`", alone),
    ("`demo serve`, `ps`: by process ids, as the pipes can't be listed", list),
    ("`info`, `env` (UTF-16), `set-env`, `doctor`", ask),
    ("`trace` to every format", trace),
    ("`report`, `events`, `inspect`, `repair`, `diff`, `convert`", files),
    ("`tail`", tail),
    ("two recordings at once", two_clients),
    ("a client that sends garbage, and a client that sends nothing", hostile),
    ("a process that listens under the name of another process", squatter),
    (
        "a pipe: created as the first instance of its name, with rights for its owner, the system and \
         administrators",
        first,
    ),
    ("the target is killed in mid-stream", target_killed),
    ("the client is killed in mid-stream", client_killed),
    ("Ctrl-C at a console: the recording stops normally", interrupted),
    ("`demo`: the program, its recording and its end", demo),
    ("`demo jvm`; `jvm hq` with its control pipe and recording; `jvm report`, `jvm replay`", jvm),
    ("`router`: pipes and TCP; `ps` and `info` through it", route),
    ("`record`, `inspect` and `replay` of a transcript, as the runtime and as the client", record),
    ("`trace` of a program that connects to a port (`--diagnostic-port NAME,listen`)", connect_to_port),
    ("`trace -- COMMAND`: suspended until its session has started; its exit code", launch),
    ("names of files and words beyond ASCII", names),
    ("`resume`, `profiler`, `startup-hook`: the replies of the target", change),
    (
        "`dump` of a program that writes a minidump, a part of a minidump, other data or nothing, or that \
         rejects the request",
        dump::written,
    ),
    ("`dump` to a share, a device, a pipe or a stream: rejected", dump::refused),
    ("`test`: an application written in Rust, its outcomes, a report, a filter, a list", tests),
    (
        "`mtp record`, `inspect`, `lint`, `replay`: a recording of an application, and a replay without \
         the application",
        played,
    ),
    ("`mtp host`: a test command as an application", hosted),
    ("`completions`, `man`", pages),
    ("verbs that Windows does not have explain why", refused),
];

/// Long enough for every trial; each trial ends the program earlier.
const LIFETIME: &str = "600";
/// How long a client may take to begin.
const PATIENCE: Duration = Duration::from_mins(1);
const LOOK: Duration = Duration::from_millis(50);
/// Each format's name for `--to`, and the ending of its files.
const FORMATS: [(&str, &str); 8] = [
    ("nettrace", ".nettrace"),
    ("speedscope", ".speedscope.json"),
    ("chrome", ".chromium.json"),
    ("flamegraph", ".svg"),
    ("folded", ".folded"),
    ("pprof", ".pb.gz"),
    ("perfetto", ".perfetto-trace"),
    ("firefox", ".firefox.json.gz"),
];

/// A target, and its process id.
fn serve(wine: &Wine) -> Result<(Running, String)> {
    wine.start("../runtap.exe", &["demo", "serve", "--seconds", LIFETIME], "pid ")
}

/// The arguments for a recording of samples and ticks of a target.
fn recording<'a>(pid: &'a str, duration: &'a str, output: &'a str) -> Vec<&'a str> {
    let events = ["--profile", "dotnet-sampled-thread-time", "--providers", "Runtap-Demo:1:5"];
    let mut words = vec!["trace", "-p", pid, "--duration", duration, "-o", output];
    words.extend(events);
    words
}

/// Starts a client that records to this file, and waits until the recording has begun.
fn begun(wine: &Wine, pid: &str, output: &str) -> Result<Running> {
    let client = wine.begin(&recording(pid, "5m", output))?;
    let path = wine.files().join(output);
    until(
        || Ok(fs::metadata(&path).map_or(0, |meta| meta.len()) > 0),
        &format!("{output} has not appeared"),
    )?;
    Ok(client)
}

fn contains(said: &Said, words: &[&str]) -> Result<()> {
    for word in words {
        if !said.out.contains(word) {
            bail!("`{word}` is not in: {}{}", said.out, said.err);
        }
    }
    Ok(())
}

fn alone(wine: &Wine) -> Result<()> {
    contains(&wine.works(&["version"])?, &["x86_64-pc-windows-gnu"])?;
    contains(&wine.works(&["list-profiles"])?, &["gc-verbose"])?;
    let help = wine.works(&["--help"])?;
    contains(&help, &["Record events and CPU samples"])?;
    if help.out.contains("  perfmap ") {
        bail!("the help lists a command that is not available on Windows");
    }
    Ok(())
}

fn list(wine: &Wine) -> Result<()> {
    let (_target, pid) = serve(wine)?;
    let said = wine.works(&["ps"])?;
    contains(&said, &[&pid, "demo", "running"])?;
    if !said.err.contains("can't be listed") {
        bail!("there is no remark about what cannot be listed: {}", said.err);
    }
    contains(&wine.works(&["ps", "--format", "json"])?, &["\"reachable\""])
}

fn ask(wine: &Wine) -> Result<()> {
    let (_target, pid) = serve(wine)?;
    contains(&wine.works(&["info", &pid])?, &["demo", "win-x64"])?;
    contains(&wine.works(&["info", "-n", "demo"])?, &[&pid])?;
    contains(&wine.works(&["env", &pid])?, &[&format!("{}={}", MARK.0, MARK.1)])?;
    wine.works(&["set-env", &pid, "RUNTAP_NEW=1"])?;
    contains(&wine.works(&["env", &pid])?, &["RUNTAP_NEW=1"])?;
    wine.works(&["doctor", &pid])?;
    let said = wine.runtap(&["doctor", "3"])?;
    if said.code != Some(3) {
        bail!("`doctor` for a process that does not exist ended with {:?}", said.code);
    }
    Ok(())
}

fn trace(wine: &Wine) -> Result<()> {
    let (_target, pid) = serve(wine)?;
    let mut words = recording(&pid, "2s", "all");
    words.extend(FORMATS.iter().flat_map(|(name, _)| ["--to", *name]));
    wine.works(&words)?;
    for (name, extension) in FORMATS {
        let path = wine.files().join(format!("all{extension}"));
        let bytes = fs::read(&path).with_context(|| format!("{name}: {}", path.display()))?;
        let is_text = ["speedscope", "chrome", "flamegraph", "folded"].contains(&name);
        if bytes.len() < 60 || is_text && !String::from_utf8_lossy(&bytes).contains("hot_work") {
            bail!("{name}: {} bytes without the program's function", bytes.len());
        }
    }
    let left: Vec<_> = fs::read_dir(wine.files())?.flatten().map(|entry| entry.file_name()).collect();
    if left.iter().any(|name| name.to_string_lossy().contains(".part")) {
        bail!("pending files were left behind: {left:?}");
    }
    Ok(())
}

fn files(wine: &Wine) -> Result<()> {
    contains(&wine.works(&["report", "all.nettrace", "cpu"])?, &["hot_work"])?;
    contains(&wine.works(&["events", "all.nettrace"])?, &["Tick"])?;
    contains(&wine.works(&["inspect", "all.nettrace"])?, &["MetadataBlock"])?;
    // Without its last third, as after a crash.
    let whole = fs::read(wine.files().join("all.nettrace"))?;
    let part = whole.get(..whole.len() * 2 / 3).unwrap_or_default();
    fs::write(wine.files().join("cut.nettrace"), part)?;
    let said = wine.runtap(&["repair", "cut.nettrace", "-o", "repaired.nettrace"])?;
    if !wine.files().join("repaired.nettrace").is_file() {
        bail!("repair: {:?}, {}", said.code, said.err);
    }
    wine.works(&["events", "repaired.nettrace"])?;
    wine.works(&["diff", "all.nettrace", "all.nettrace"])?;
    wine.works(&["convert", "all.nettrace", "--to", "folded", "-o", "again.folded"])?;
    let again = fs::read_to_string(wine.files().join("again.folded"))?;
    if again.contains("hot_work") { Ok(()) } else { bail!("the converted file lacks the program's function") }
}

fn tail(wine: &Wine) -> Result<()> {
    let (_target, pid) = serve(wine)?;
    let words = ["tail", "-p", &pid, "--providers", "Runtap-Demo:1:5", "--duration", "5m"];
    let (client, _) = wine.start("../runtap.exe", &words, "Tick")?;
    // Events are printed while they happen, not only at the end, which is not reached here.
    for _ in 0..3 {
        client.says("Tick")?;
    }
    contains(&wine.works(&["tail", "-p", &pid, "--providers", "Runtap-Demo:1:5", "--duration", "1s"])?, &[])
}

/// The first client starts recording before the second one, and still records after the second one has ended.
fn two_clients(wine: &Wine) -> Result<()> {
    let (target, pid) = serve(wine)?;
    let mut one = begun(wine, &pid, "one.nettrace")?;
    wine.works(&recording(&pid, "1s", "two.nettrace"))?;
    contains(&wine.works(&["events", "two.nettrace"])?, &["Tick"])?;
    if !one.runs()? {
        bail!("the first client ended together with the second one");
    }
    // Events from after the end of the second recording: there must be more than now.
    let before = ticks(wine, "one.nettrace")?;
    until(|| Ok(ticks(wine, "one.nettrace")? > before), "the first client receives no more events")?;
    target.kill()?;
    one.ended(PATIENCE).map(drop)
}

/// The number of ticks in a recording that may still grow.
fn ticks(wine: &Wine, name: &str) -> Result<usize> {
    Ok(wine.runtap(&["events", name])?.out.matches("Tick").count())
}

/// Waits until the condition is met.
fn until(mut condition: impl FnMut() -> Result<bool>, message: &str) -> Result<()> {
    let until = Instant::now() + PATIENCE;
    while !condition()? {
        if Instant::now() > until {
            bail!("{message}");
        }
        thread::sleep(LOOK);
    }
    Ok(())
}

fn target_killed(wine: &Wine) -> Result<()> {
    let (target, pid) = serve(wine)?;
    let mut client = begun(wine, &pid, "killed.nettrace")?;
    until(|| Ok(ticks(wine, "killed.nettrace")? > 0), "no tick was recorded")?;
    target.kill()?;
    let code = client.ended(PATIENCE)?;
    if code != Some(5) {
        bail!("the client ended with {code:?}");
    }
    let said = wine.runtap(&["events", "killed.nettrace"])?;
    contains(&said, &["Tick"])
}

fn client_killed(wine: &Wine) -> Result<()> {
    let (_target, pid) = serve(wine)?;
    begun(wine, &pid, "never.nettrace")?.kill()?;
    contains(&wine.works(&["info", &pid])?, &["demo"])?;
    wine.works(&recording(&pid, "1s", "after.nettrace")).map(drop)
}

fn interrupted(wine: &Wine) -> Result<()> {
    const CTRL_C: &[u8] = &[3];
    let (_target, pid) = serve(wine)?;
    let mut client = wine.at_console(&recording(&pid, "5m", "typed.nettrace"))?;
    until(|| Ok(ticks(wine, "typed.nettrace")? > 0), "no tick was recorded")?;
    client.type_in(CTRL_C)?;
    let code = client.ended(PATIENCE)?;
    if code != Some(0) {
        bail!("it ended with {code:?}");
    }
    // The recording is complete, including its end.
    let said = wine.works(&["inspect", "typed.nettrace"])?;
    if !said.err.is_empty() {
        bail!("the recording is not complete: {}", said.err);
    }
    Ok(())
}

fn demo(wine: &Wine) -> Result<()> {
    let said = wine.works(&["demo", "--duration", "1s", "-o", "demo"])?;
    if !said.err.contains("\"ticks\"") {
        bail!("the program does not report what it did: {}", said.err);
    }
    let svg = fs::read_to_string(wine.files().join("demo.svg"))?;
    if svg.contains("hot_work") { Ok(()) } else { bail!("the flame graph lacks the program's function") }
}

fn refused(wine: &Wine) -> Result<()> {
    for words in [["perfmap", "--some"], ["jvm", "attach"]] {
        let said = wine.runtap(&[&words[..], &["words"]].concat())?;
        if said.code != Some(2) || !said.err.contains("not there on Windows") {
            bail!("{}: {:?}, {}", words.join(" "), said.code, said.err);
        }
    }
    Ok(())
}

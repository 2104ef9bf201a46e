//! What is tried under Wine, each by itself: programs of their own for the server, its clients, and who is not welcome.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

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
    ("a client that sends garbage, one that says nothing", hostile),
    ("a process that listens under another one's name", squatter),
    ("the target is killed in mid-stream", target_killed),
    ("the client is killed in mid-stream", client_killed),
    ("`demo`: the program, its recording and its end", demo),
    ("verbs that are not there say why", refused),
];

/// Long enough for every trial; it is ended before.
const LIFETIME: &str = "600";
/// For a client to begin.
const PATIENCE: Duration = Duration::from_mins(1);
const LOOK: Duration = Duration::from_millis(50);
/// By their name for `--to`, with what their files end with.
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

/// Samples and ticks of a target.
fn recording<'a>(pid: &'a str, duration: &'a str, output: &'a str) -> Vec<&'a str> {
    let events = ["--profile", "dotnet-sampled-thread-time", "--providers", "Runtap-Demo:1:5"];
    let mut words = vec!["trace", "-p", pid, "--duration", duration, "-o", output];
    words.extend(events);
    words
}

/// A client that records to this file, and has begun to.
fn begun(wine: &Wine, pid: &str, output: &str) -> Result<Running> {
    let client = wine.begin(&recording(pid, "5m", output))?;
    let (path, until) = (wine.files().join(output), Instant::now() + PATIENCE);
    while fs::metadata(&path).map_or(0, |meta| meta.len()) == 0 {
        if Instant::now() > until {
            bail!("{output} has not appeared");
        }
        thread::sleep(LOOK);
    }
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
    if help.out.contains("  router ") {
        bail!("the help shows a verb that is not there");
    }
    Ok(())
}

fn list(wine: &Wine) -> Result<()> {
    let (_target, pid) = serve(wine)?;
    let said = wine.works(&["ps"])?;
    contains(&said, &[&pid, "demo", "running"])?;
    if !said.err.contains("can't be listed") {
        bail!("it does not say what it could not see: {}", said.err);
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
        bail!("doctor of nobody ends with {:?}", said.code);
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
        bail!("drafts were left behind: {left:?}");
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
    let words = ["tail", "-p", &pid, "--providers", "Runtap-Demo:1:5", "--duration", "2s"];
    let said = wine.works(&words)?;
    let ticks = said.out.matches("Tick").count();
    if ticks < 4 {
        bail!("{ticks} ticks in two seconds: {}", said.out);
    }
    Ok(())
}

fn two_clients(wine: &Wine) -> Result<()> {
    let (_target, pid) = serve(wine)?;
    let record = |name: &str| wine.works(&recording(&pid, "2s", name)).map(drop);
    thread::scope(|scope| {
        let (a, b) = (scope.spawn(|| record("one.nettrace")), scope.spawn(|| record("two.nettrace")));
        for thread in [a, b] {
            thread.join().map_err(|_panic| anyhow::anyhow!("a client's thread has panicked"))??;
        }
        anyhow::Ok(())
    })?;
    for name in ["one.nettrace", "two.nettrace"] {
        contains(&wine.works(&["events", name])?, &["Tick"])?;
    }
    Ok(())
}

fn hostile(wine: &Wine) -> Result<()> {
    let (_target, pid) = serve(wine)?;
    let pipe = format!(r"\\.\pipe\dotnet-diagnostic-{pid}");
    let mut visitors = Vec::new();
    for what in ["silent", "garbage", "garbage", "silent"] {
        visitors.push(wine.start("../visitor.exe", &[what, &pipe], "begun")?);
    }
    contains(&wine.works(&["info", &pid])?, &["demo"])?;
    drop(visitors);
    contains(&wine.works(&["info", &pid])?, &["demo"])
}

fn squatter(wine: &Wine) -> Result<()> {
    // No process has an odd id.
    let _squatter = wine.start("../visitor.exe", &["squat", r"\\.\pipe\dotnet-diagnostic-4243"], "begun")?;
    let said = wine.runtap(&["info", "4243"])?;
    if said.code == Some(0) || !said.err.contains("not 4243") {
        bail!("{:?}: {}", said.code, said.err);
    }
    Ok(())
}

fn target_killed(wine: &Wine) -> Result<()> {
    let (target, pid) = serve(wine)?;
    let mut client = begun(wine, &pid, "killed.nettrace")?;
    // A few ticks more.
    thread::sleep(Duration::from_secs(1));
    target.kill()?;
    let code = client.ended(Duration::from_secs(30))?;
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

fn demo(wine: &Wine) -> Result<()> {
    let said = wine.works(&["demo", "--duration", "1s", "-o", "demo"])?;
    if !said.err.contains("\"ticks\"") {
        bail!("the program does not say what it did: {}", said.err);
    }
    let svg = fs::read_to_string(wine.files().join("demo.svg"))?;
    if svg.contains("hot_work") { Ok(()) } else { bail!("the flame graph lacks the program's function") }
}

fn refused(wine: &Wine) -> Result<()> {
    for verb in ["dump", "perfmap", "router", "record", "replay", "test", "mtp", "jvm"] {
        let said = wine.runtap(&[verb, "--some", "words"])?;
        if said.code != Some(2) || !said.err.contains("not there on Windows") {
            bail!("{verb}: {:?}, {}", said.code, said.err);
        }
    }
    let said = wine.runtap(&["trace", "--", "program.exe"])?;
    if said.code == Some(0) || !said.err.contains("Windows") {
        bail!("trace of a command: {:?}, {}", said.code, said.err);
    }
    Ok(())
}

//! Scenarios, each with a snapshot of the output of `runtap test`.
//!
//! Comments at the head of a scenario configure how it is run:
//!
//! - `#: options WORDS`: options for `runtap test`
//! - `#: rules MTP001 …`: the rules named in the output; none if missing
//! - `#: with NAME`: this scenario is a module beside it, instead of the well-behaved one
//! - `#: alone`: no other module
//! - `#: help`: the application is run with `--help`; the verb's own options are not compared
//! - `#: interrupt`: Ctrl-C is pressed as soon as a test is shown; `#: interrupt twice`: and once more
//! - `#: memory 100MB`: maximum memory
//! - `#: within 5s`: maximum duration

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use runtap_testkit::{Running, Signal, eventually, run, scripted};

use crate::harness::Test;
use crate::memory::most_until_its_end;
use crate::{rules, shown};

/// Runs beside the others and must not be affected by them.
const WELL_BEHAVED: &str = "well-behaved";

/// A scenario and its configuration.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scenario {
    pub(crate) name: String,
    pub(crate) rules: BTreeSet<String>,
    options: Vec<String>,
    with: Vec<String>,
    /// Whether it is run with `--help`.
    help: bool,
    /// How many times Ctrl-C is pressed.
    interrupt: u32,
    memory: Option<u64>,
    within: Option<Duration>,
}

impl Scenario {
    fn read(path: &Path) -> Self {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let mut this = Self { name, with: vec![WELL_BEHAVED.to_owned()], ..Self::default() };
        let text = fs::read_to_string(path).unwrap();
        for line in text.lines().filter_map(|line| line.strip_prefix("#: ")) {
            let (what, rest) = line.split_once(' ').unwrap_or((line, ""));
            let words = || rest.split_whitespace().map(str::to_owned);
            match what {
                "options" => this.options.extend(words()),
                "rules" => this.rules.extend(words()),
                "with" => this.with = words().collect(),
                "alone" => this.with.clear(),
                "help" => this.help = true,
                "interrupt" => this.interrupt = if rest == "twice" { 2 } else { 1 },
                "memory" => {
                    let megabytes: u64 = rest.strip_suffix("MB").unwrap().parse().unwrap();
                    this.memory = Some(megabytes << 20);
                }
                "within" => {
                    this.within = Some(Duration::from_secs(rest.strip_suffix('s').unwrap().parse().unwrap()));
                }
                other => panic!("{}: #: {other}", this.name),
            }
        }
        this
    }
}

/// Returns all scenarios, sorted by name.
pub(crate) fn all() -> Vec<Scenario> {
    let entries = fs::read_dir(scripted::scenarios()).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|extension| extension == "mtp")).collect();
    paths.sort();
    paths.iter().map(|path| Scenario::read(path)).collect()
}

/// Runs the scenario and compares its output with the snapshot.
pub(crate) fn test(scenario: Scenario) -> Test {
    Test::new(format!("scenario::{}", scenario.name), move || check(&scenario))
}

fn snapshots() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripted/snapshots")
}

/// A snapshot without a scenario would never be compared.
pub(crate) fn every_snapshot_has_a_scenario() {
    let known: BTreeSet<String> = all().into_iter().map(|scenario| scenario.name).collect();
    for entry in fs::read_dir(snapshots()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().split('.').next().unwrap().to_owned();
        assert!(known.contains(&name), "{} has no scenario", path.display());
    }
}

fn check(scenario: &Scenario) {
    let folder = tempfile::Builder::new().prefix("runtap-scripted-").tempdir().unwrap();
    let started = Instant::now();
    let told = output_of(scenario, folder.path());
    if let Some(limit) = scenario.within {
        assert!(started.elapsed() < limit, "{} took {:?}", scenario.name, started.elapsed());
    }
    let told = shown::normalized(&told, folder.path().to_str().unwrap());
    assert_eq!(rules::named_in(&told), scenario.rules, "{told}");
    insta::with_settings!({
        snapshot_path => snapshots(),
        prepend_module_to_snapshot => false,
        omit_expression => true,
    }, {
        insta::assert_snapshot!(scenario.name.as_str(), told);
    });
}

/// Creates a test application that plays the scenario.
pub(crate) fn application(name: &str, folder: &Path) -> PathBuf {
    let program = folder.join(name);
    symlink(std::env::current_exe().unwrap(), &program).unwrap();
    let file = format!("{name}.mtp");
    fs::copy(scripted::scenarios().join(&file), folder.join(&file)).unwrap();
    program
}

fn command(scenario: &Scenario, folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_runtap"));
    command.arg("test").arg(application(&scenario.name, folder));
    command.args(scenario.with.iter().map(|name| application(name, folder)));
    // Lines that depend on time would not appear everywhere.
    command.args(["-j", "1", "--no-history", "--no-progress", "-e", "SCRIPTED_HOST_STEADY=1"]);
    command.args(&scenario.options).args(scenario.help.then_some("--help"));
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
        command.env_remove(name);
    }
    command
}

/// Returns the output of `runtap test` on both streams, and its exit code.
fn output_of(scenario: &Scenario, folder: &Path) -> String {
    let mut command = command(scenario, folder);
    let finished = if let Some(limit) = scenario.memory {
        let out = folder.join("out");
        command.stdout(fs::File::create(&out).unwrap());
        let mut child = command.spawn().unwrap();
        let most = most_until_its_end(&mut child);
        assert!(most < limit, "{} took {most} bytes", scenario.name);
        let status = child.wait().unwrap();
        return format!("{}\nexit code {}\n", fs::read_to_string(out).unwrap(), status.code().unwrap_or(-1));
    } else if scenario.interrupt > 0 {
        let out = folder.join("out");
        command.stdout(fs::File::create(&out).unwrap());
        let running = Running::start_as_it_is(command);
        let shown = || fs::read_to_string(&out).unwrap();
        eventually("a test is shown", || shown().contains("passed").then_some(()));
        for press in 0..scenario.interrupt {
            if press > 0 {
                // Signals before the first is handled would be merged.
                let heard = || running.stderr_so_far().contains("Stopping: ").then_some(());
                eventually("it is stopping", heard);
            }
            running.signal(Signal::INT);
        }
        let mut finished = running.wait();
        finished.stdout = shown().into_bytes();
        finished
    } else {
        run(command)
    };
    let mut text = finished.text().to_owned();
    if scenario.help {
        let mut own = Command::new(env!("CARGO_BIN_EXE_runtap"));
        let own = run({
            own.args(["test", "--help"]);
            own
        });
        text = text.strip_prefix(own.text()).unwrap().to_owned();
    }
    if !finished.stderr.is_empty() {
        write!(text, "\nstandard error:\n{}", finished.stderr).unwrap();
    }
    writeln!(text, "\nexit code {}", finished.code().unwrap_or(-1)).unwrap();
    text
}

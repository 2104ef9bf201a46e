//! `counters` of Java programs: the numbers of `jstat`, for each JDK and its collectors; programs without counters; Java and .NET
//! programs of one name; and programs that restart.

#![expect(clippy::float_cmp, reason = "counts are whole numbers")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use runtap_testkit::{Jdk, Program, RealRuntime, Running, Signal, Skip, eventually, run};
use serde_json::Value;
use tempfile::TempDir;

use crate::common::{Target, command, folder, runtap, unique};

on_the_newest_runtime!(a_name_may_stand_for_both_kinds, a_dotnet_program_that_restarts_is_followed,);

const SOURCE: &str = "import java.lang.management.ManagementFactory;
public class NAME {
    static byte[][] keep = new byte[64][];
    public static void main(String[] words) throws Exception {
        for (int i = 0; i < 2_000; i++) keep[i % keep.length] = new byte[64 << 10];
        for (int i = 0; i < 2; i++) System.gc();
        for (int i = 0; i < 3; i++) {
            Thread sleeper = new Thread(() -> {
                try { Thread.sleep(600_000); } catch (InterruptedException e) { }
            });
            sleeper.setDaemon(true);
            sleeper.start();
        }
        var threads = ManagementFactory.getThreadMXBean();
        System.out.println(\"ready \" + threads.getThreadCount() + \" \" + threads.getDaemonThreadCount());
        Thread.sleep(600_000);
    }
}
";

/// The compiled program, whose main class has a name that no other test uses.
struct Classes {
    folder: TempDir,
    name: String,
}

fn classes() -> Result<Classes, Skip> {
    let (folder, name) = (folder(), unique("Counted").replace('-', "_"));
    let source = folder.path().join(format!("{name}.java"));
    fs::write(&source, SOURCE.replace("NAME", &name)).unwrap();
    let mut javac = Command::new(Jdk::with_compiler()?.home().join("bin/javac"));
    javac.args(["--release", "11", "-d"]).arg(folder.path()).arg(&source);
    run(javac).expect_code(0);
    Ok(Classes { folder, name })
}

/// Starts the program and waits until it has done everything. `None` if this JVM does not support the options.
fn start(jdk: &Jdk, options: &[&str], classes: &Classes) -> Option<(Program, String)> {
    let mut check = jdk.java();
    check.args(options).arg("-version").stdout(Stdio::null()).stderr(Stdio::null());
    if !check.status().is_ok_and(|status| status.success()) {
        return None;
    }
    let mut java = jdk.java();
    java.args(["-Xmx128m", "-Xms128m"])
        .args(options)
        .arg("-cp")
        .arg(classes.folder.path())
        .arg(&classes.name);
    java.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut program = Program::start(java);
    let ready = program.wait_for("ready");
    Some((program, ready))
}

fn lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

/// Returns the first reading of each counter, by group, name and the tag that distinguishes it.
fn readings(pid: u32) -> BTreeMap<(String, String, String), f64> {
    let pid = pid.to_string();
    let words = ["counters", "collect", "-p", &pid, "--to", "jsonl", "-o", "-", "--duration", "250ms"];
    let mut readings = BTreeMap::new();
    for line in lines(runtap(words).expect_code(0).text()) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let tag = [&line["tags"]["pool"], &line["tags"]["collector"]].map(text).concat();
        let value = line["value"].as_f64().unwrap_or_else(|| panic!("{line:#}"));
        assert!(["gauge", "rate"].contains(&line["kind"].as_str().unwrap()), "{line:#}");
        readings.entry((text(&line["provider"]), text(&line["name"]), tag)).or_insert(value);
    }
    readings
}

/// Returns the columns of `jstat`, of which some names occur more than once.
fn jstat(option: &str, pid: u32) -> Vec<(String, String)> {
    let jdk = Jdk::with_compiler().unwrap_or_else(|_| panic!("there was a compiler"));
    let mut jstat = Command::new(jdk.home().join("bin/jstat"));
    jstat.arg(option).arg(pid.to_string());
    let done = run(jstat);
    let mut rows = done.expect_code(0).text().lines().map(str::split_whitespace);
    let (names, values) = (rows.next().unwrap(), rows.next().unwrap());
    names.zip(values).map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// Values by group, name and pool or collector.
type Readings = BTreeMap<(String, String, String), f64>;

/// Returns readings and the columns of `jstat` that were equal before and after them.
fn at_rest(option: &str, pid: u32) -> (Readings, Vec<(String, String)>) {
    eventually("equal numbers before and after a reading", || {
        let before = jstat(option, pid);
        let readings = readings(pid);
        (jstat(option, pid) == before).then_some((readings, before))
    })
}

/// Compares the memory pools and the collectors with `jstat -gc`.
fn check_gc(pid: u32, what: &str) {
    let (ours, theirs) = at_rest("-gc", pid);
    let column = |name: &str| theirs.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    let kib = |value: f64| format!("{:.1}", value / 1024.0);
    let mut compared = 0;
    for ((group, name, pool), value) in &ours {
        let letter = match (group.as_str(), name.as_str()) {
            ("jvm.memory", "used") => 'U',
            ("jvm.memory", "committed") => 'C',
            _ => continue,
        };
        let prefix = match pool.as_str() {
            "eden" | "young" => "E",
            "s0" => "S0",
            "s1" => "S1",
            "metaspace" => "M",
            "compressed_class_space" => "CCS",
            _ => "O",
        };
        assert_eq!(
            column(&format!("{prefix}{letter}")),
            Some(&*kib(*value)),
            "{what}: {pool} {name} {theirs:?}"
        );
        compared += 1;
    }
    let expected = theirs.iter().filter(|(name, value)| {
        name.ends_with(['C', 'U']) && !name.starts_with(['Y', 'F', 'G']) && value != "-"
    });
    let expected = expected.filter(|(name, _)| name != "CGC" && name != "FGC" && name != "YGC").count();
    assert_eq!(compared, expected, "{what}: {ours:#?} {theirs:?}");
    let number = |name: &str| column(name).and_then(|value| value.parse::<f64>().ok()).unwrap_or(0.0);
    let sum = |wanted: &str| -> f64 {
        let of = ours.iter().filter(|((group, name, _), _)| group == "jvm.gc" && name == wanted);
        of.map(|(_, value)| value).sum()
    };
    let collections = sum("collections");
    assert_eq!(collections, number("YGC") + number("FGC") + number("CGC"), "{what}: {ours:#?} {theirs:?}");
    assert!(collections > 0.0, "{what}");
    let time = sum("time") / 1_000.0;
    assert!((time - number("GCT")).abs() <= 0.000_501, "{what}: {time} {theirs:?}");
}

/// Compares classes and compilations with `jstat`, and threads with the program's own account.
fn check_others(pid: u32, ready: &str, what: &str) {
    let of = |ours: &BTreeMap<(String, String, String), f64>, group: &str, name: &str| {
        *ours
            .get(&(group.to_owned(), name.to_owned(), String::new()))
            .unwrap_or_else(|| panic!("{what}: {group}/{name} is not among {ours:#?}"))
    };
    let (ours, theirs) = at_rest("-class", pid);
    let theirs: Vec<&str> = theirs.iter().map(|(_, value)| value.as_str()).collect();
    let kib = |value: f64| format!("{:.1}", value / 1024.0);
    let class = |name| of(&ours, "jvm.class", name);
    assert_eq!(
        [
            class("loaded").to_string(),
            kib(class("loaded_size")),
            class("unloaded").to_string(),
            kib(class("unloaded_size")),
        ],
        theirs[..4],
        "{what}"
    );
    assert!(
        (class("load_time") / 1_000.0 - theirs[4].parse::<f64>().unwrap()).abs() <= 0.005_01,
        "{what} {theirs:?}"
    );
    let (ours, theirs) = at_rest("-compiler", pid);
    let theirs: Vec<&str> = theirs.iter().map(|(_, value)| value.as_str()).collect();
    let compiler = |name| of(&ours, "jvm.compiler", name).to_string();
    assert_eq!(
        [compiler("compilations"), compiler("failed"), compiler("invalidated")],
        theirs[..3],
        "{what}"
    );
    let threads: Vec<f64> = ready.split(' ').skip(1).map(|number| number.parse().unwrap()).collect();
    let thread = |name| of(&ours, "jvm.thread", name);
    assert_eq!([thread("live"), thread("daemon")], threads[..], "{what}");
    assert!(thread("peak") >= threads[0] && thread("started") >= threads[0], "{what}: {ours:#?}");
    for name in ["count", "time", "sync_time", "application_time"] {
        assert!(of(&ours, "jvm.safepoint", name) > 0.0, "{what}: {name}");
    }
    // JDK 25 does not report its clock.
    let uptime = ours.get(&("jvm.runtime".to_owned(), "uptime".to_owned(), String::new()));
    assert!(uptime.map_or_else(|| jdk_has_no_clock(what), |uptime| *uptime > 0.1), "{what}");
}

fn jdk_has_no_clock(what: &str) -> bool {
    what.starts_with("JDK 25 ")
}

fn collectors_of(major: u32) -> &'static [&'static str] {
    match major {
        17 => {
            &["-XX:+UseG1GC", "-XX:+UseSerialGC", "-XX:+UseParallelGC", "-XX:+UseZGC", "-XX:+UseShenandoahGC"]
        }
        11 => &["-XX:+UseG1GC", "-XX:+UseConcMarkSweepGC"],
        _ => &["-XX:+UseG1GC", "-XX:+UseParallelGC", "-XX:+UseZGC"],
    }
}

fn jstat_agrees() -> Result<(), Skip> {
    let classes = classes()?;
    for jdk in Jdk::all()? {
        for option in collectors_of(jdk.major()) {
            let Some((program, ready)) = start(&jdk, &[option], &classes) else { continue };
            let what = format!("JDK {} {option}", jdk.major());
            check_gc(program.id(), &what);
            if option.ends_with("G1GC") {
                check_others(program.id(), &ready, &what);
            }
        }
    }
    Ok(())
}

#[test]
fn the_numbers_are_those_of_jstat() {
    if let Err(skip) = jstat_agrees() {
        skip.report();
    }
}

fn selection_and_formats() -> Result<(), Skip> {
    let classes = classes()?;
    let Some((program, _)) = start(&Jdk::with_compiler()?, &["-XX:+UseSerialGC"], &classes) else {
        return Ok(());
    };
    let pid = program.id().to_string();
    let words = ["counters", &pid, "--counters", "jvm.memory[used],jvm.gc", "--duration", "300ms"];
    let text = runtap(words);
    text.expect_code(0);
    assert!(text.text().contains("  jvm.memory/used{area=heap,pool=old} (By)  "), "{text}");
    assert!(
        text.text()
            .contains("jvm.gc/collections{collector=Serial full collection pauses} ({collection})  2\n"),
        "{text}"
    );
    assert!(!text.text().contains("committed") && !text.text().contains("jvm.thread"), "{text}");
    let none =
        runtap(["counters", &pid, "--counters", "System.Runtime,jvm.memory[nosuch]", "--duration", "300ms"]);
    none.expect_code(0)
        .says("is a Java program, which has the groups jvm.class, ")
        .says("jvm.memory[nosuch]");
    let folder = folder();
    let file = |name: &str| folder.path().join(name);
    for name in ["x.csv", "x.json", "x.prom"] {
        let mut collect = command(["counters", "collect", "-n", &classes.name, "--duration", "300ms", "-o"]);
        collect.arg(file(name));
        run(collect).expect_code(0);
    }
    let csv = fs::read_to_string(file("x.csv")).unwrap();
    assert!(csv.contains(",jvm.thread,live ({thread}),Metric,"), "{csv}");
    assert!(
        csv.contains(",jvm.gc,collections ({collection})[collector=Serial full collection pauses],Total,2\n"),
        "{csv}"
    );
    let json: Value = serde_json::from_str(&fs::read_to_string(file("x.json")).unwrap()).unwrap();
    assert_eq!(json["TargetProcess"], *classes.name);
    assert!(json["Events"].as_array().unwrap().len() > 20);
    let prometheus = fs::read_to_string(file("x.prom")).unwrap();
    // The process still ran, so its series are in the file.
    let line =
        format!("jvm_gc_collections_total{{pid=\"{pid}\",collector=\"Serial full collection pauses\"}} 2\n");
    assert!(prometheus.contains(&line) && prometheus.contains("jvm_memory_used_bytes{pid="), "{prometheus}");
    runtap(["counters", &pid, "--children"]).expect_code(2).says("reads .NET programs only");
    runtap(["counters", &pid, "--wait"]).expect_code(2).says("--wait needs the name of a program");
    Ok(())
}

#[test]
fn groups_are_selected_and_written_in_every_format() {
    if let Err(skip) = selection_and_formats() {
        skip.report();
    }
}

fn without_counters() -> Result<(), Skip> {
    let classes = classes()?;
    let Some((program, _)) = start(&Jdk::with_compiler()?, &["-XX:-UsePerfData"], &classes) else {
        return Ok(());
    };
    let pid = program.id().to_string();
    let refused = runtap(["counters", &pid, "--duration", "300ms"]);
    refused.expect_code(3).says("publishes no performance counters").says("-XX:+UsePerfData");
    Ok(())
}

#[test]
fn a_program_without_counters_is_an_error() {
    if let Err(skip) = without_counters() {
        skip.report();
    }
}

/// A running `counters collect -n NAME --to jsonl`.
struct Collecting {
    running: Running,
    file: PathBuf,
    _folder: TempDir,
}

impl Collecting {
    fn start(name: &str, more: &[&str]) -> Self {
        let folder = folder();
        let file = folder.path().join("x.jsonl");
        let mut command = command(["counters", "collect", "-n", name, "--refresh-interval", "200ms", "-o"]);
        command.arg(&file).args(more);
        Self { running: Running::start(command), file, _folder: folder }
    }

    /// Waits for a reading of a process.
    fn wait_for(&self, pid: u32) {
        eventually("a reading", || self.has(pid).then_some(()));
    }

    fn has(&self, pid: u32) -> bool {
        let text = fs::read_to_string(&self.file).unwrap_or_default();
        text.contains(&format!(",\"pid\":{pid},"))
    }

    /// Stops and returns all readings.
    fn stop(self) -> Vec<Value> {
        self.running.signal(Signal::INT);
        self.running.wait().expect_code(0);
        lines(&fs::read_to_string(&self.file).unwrap())
    }
}

/// Returns the values of a series of a process.
fn values(lines: &[Value], pid: u32, provider: &str, name: &str) -> Vec<f64> {
    let of = lines
        .iter()
        .filter(|line| line["pid"] == pid && line["provider"] == provider && line["name"] == name);
    of.filter_map(|line| line["value"].as_f64()).collect()
}

fn restarts() -> Result<(), Skip> {
    let (classes, jdk) = (classes()?, Jdk::with_compiler()?);
    let serial = ["-XX:+UseSerialGC"];
    let collecting = Collecting::start(&classes.name, &["--wait"]);
    let Some((mut first, _)) = start(&jdk, &serial, &classes) else { return Ok(()) };
    let first_pid = first.id();
    collecting.wait_for(first_pid);
    // Its successor starts while it still runs.
    let Some((second, _)) = start(&jdk, &serial, &classes) else { return Ok(()) };
    first.kill();
    collecting.wait_for(second.id());
    let lines = collecting.stop();
    for pid in [first_pid, second.id()] {
        // Each has its own totals.
        let loaded = values(&lines, pid, "jvm.class", "loaded");
        assert!(
            loaded.iter().all(|value| (300.0..3_000.0).contains(value)) && !loaded.is_empty(),
            "{loaded:?}"
        );
    }
    let pids: Vec<u64> = lines.iter().filter_map(|line| line["pid"].as_u64()).collect();
    assert!(pids.is_sorted_by_key(|pid| *pid == u64::from(second.id())), "one after the other: {pids:?}");
    let first_of_second =
        lines.iter().find(|line| line["pid"] == second.id() && line["kind"] == "rate").unwrap();
    assert_eq!(first_of_second["delta"], Value::Null);
    Ok(())
}

#[test]
fn a_java_program_that_restarts_is_followed() {
    if let Err(skip) = restarts() {
        skip.report();
    }
}

/// Starts `meters` with a name.
fn meters(runtime: &RealRuntime, name: &str, folder: &Path) -> Result<Target, Skip> {
    let launch = runtime.program("meters", &["600", "50", "5", "--linger", "600"])?.called(name, folder);
    Ok(Target::start(launch))
}

fn a_dotnet_program_that_restarts_is_followed(runtime: &RealRuntime) -> Result<(), Skip> {
    let (folder, name) = (folder(), unique("m"));
    let collecting = Collecting::start(&name, &["--wait", "--counters", "Demo.Shop[orders]"]);
    let mut first = meters(runtime, &name, folder.path())?;
    let first_pid = first.pid();
    collecting.wait_for(first_pid);
    first.program.kill();
    let second = meters(runtime, &name, folder.path())?;
    collecting.wait_for(second.pid());
    collecting.running.signal(Signal::INT);
    // The first program was killed.
    collecting.running.wait().expect_code(5).says(&format!("process {first_pid}: "));
    let lines = lines(&fs::read_to_string(&collecting.file).unwrap());
    let totals = values(&lines, second.pid(), "Demo.Shop", "orders");
    assert!(!totals.is_empty() && totals.iter().all(|total| *total <= 3.0 * 600.0), "{totals:?}");
    second.still_answers();
    Ok(())
}

fn a_name_may_stand_for_both_kinds(runtime: &RealRuntime) -> Result<(), Skip> {
    let (classes, jdk) = (classes()?, Jdk::with_compiler()?);
    let Some((java, _)) = start(&jdk, &[], &classes) else { return Ok(()) };
    let folder = folder();
    // Names of programs have 15 characters in the kernel; the file has the whole name.
    let dotnet = meters(runtime, &classes.name, folder.path())?;
    let collect = |format: &str| {
        let words = ["counters", "collect", "-n", &classes.name, "--all", "--duration", "3", "--to", format];
        run(command(words.into_iter().chain(["-o", "-"]))).expect_code(0).text().to_owned()
    };
    // A busy machine may take longer than the time in which a program has to state its name.
    let lines = eventually("readings of both", || {
        let text = collect("jsonl");
        let has = |pid: u32| text.contains(&format!(",\"pid\":{pid},"));
        (has(java.id()) && has(dotnet.pid())).then(|| lines(&text))
    });
    assert!(!values(&lines, java.id(), "jvm.thread", "live").is_empty());
    let of_dotnet = lines.iter().filter(|line| line["pid"] == dotnet.pid());
    assert!(
        of_dotnet.clone().count() > 0 && of_dotnet.clone().all(|line| line["provider"] == "System.Runtime")
    );
    // The formats of dotnet-counters have the process id as a tag.
    for line in collect("csv").lines().skip(1) {
        assert!(
            line.contains(&format!("[pid={}", java.id())) || line.contains(&format!("[pid={}", dotnet.pid())),
            "{line}"
        );
    }
    dotnet.still_answers();
    Ok(())
}

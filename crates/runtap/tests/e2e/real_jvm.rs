//! The agent in real JVMs: loaded at startup, and attached while they run.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use runtap_testkit::{
    CountedMethod, Jdk, JvmCounter, Program, Running, Signal, Skip, eventually, require, run,
};
use serde_json::Value;

use crate::common::{command, folder, json, runtap};

/// Three methods with known numbers of calls: `rounds`, ten times `rounds`, and one call of main.
const PROGRAM: &str = "package shop;
public class Work {
    static int leaf(int n) { return n + 1; }
    static int work(int n) { int s = 0; for (int i = 0; i < n; i++) s += leaf(i); return s; }
    static void fails() { throw new IllegalStateException(); }
    public static void main(String[] words) throws Exception {
        int rounds = Integer.parseInt(words[0]);
        long pause = Long.parseLong(words[1]);
        System.out.println(\"ready\");
        long sum = 0;
        for (int i = 0; i < rounds; i++) {
            sum += work(10);
            if (pause > 0) Thread.sleep(pause);
        }
        for (int i = 0; i < 7; i++) try { fails(); } catch (IllegalStateException e) { sum++; }
        System.out.println(\"sum \" + sum);
        System.exit(Integer.parseInt(words[2]));
    }
}
";

/// Compiles the program into a folder.
pub(crate) fn classes() -> Result<tempfile::TempDir, Skip> {
    let folder = folder();
    let source = folder.path().join("Work.java");
    fs::write(&source, PROGRAM).unwrap();
    Jdk::with_compiler()?.compile([&source], folder.path());
    Ok(folder)
}

pub(crate) fn java(jdk: &Jdk, classes: &Path, words: [&str; 3]) -> Command {
    let mut java = jdk.java();
    java.arg("-cp").arg(classes).arg("shop.Work").args(words);
    java
}

/// Returns `runtap jvm run` of this command.
fn traced(options: &[&str], java: &Command) -> Command {
    let mut traced = command(["jvm", "run", "--include", "^shop/"]);
    traced.args(options).arg("--").arg(java.get_program()).args(java.get_args());
    traced
}

/// Returns calls, returns and exceptions of a method.
pub(crate) fn calls(agent: &Value, method: &str) -> [u64; 3] {
    let mut methods = agent["methods"].as_array().unwrap().iter();
    let has_name = |row: &&Value| row["signature"].as_str().unwrap().contains(method);
    let row = methods.find(has_name).unwrap_or_else(|| panic!("{method}: {agent:#}"));
    ["entries", "exits", "exception_exits"].map(|member| row[member].as_u64().unwrap())
}

pub(crate) fn agents(document: &Value) -> Vec<Value> {
    assert_eq!(document["schema"], "runtap.jvm/1");
    document["agents"].as_array().unwrap().clone()
}

#[test]
fn a_program_is_run_with_the_agent() {
    require!(run_with_the_agent());
}

fn run_with_the_agent() -> Result<(), Skip> {
    let classes = classes()?;
    let counter = JvmCounter::build(classes.path())?;
    for jdk in Jdk::all()? {
        let major = jdk.major();
        let out = classes.path().join("counts.tsv");
        let mut java = jdk.java();
        java.arg(counter.option(&["shop/"], &out)).args(["-Xverify:all", "-cp"]).arg(classes.path());
        java.args(["shop.Work", "100", "0", "3"]);
        let finished = run(traced(&["--format", "json"], &java));
        finished.expect_code(3).says("sum 5507");
        let [agent] = &agents(&finished.json())[..] else { panic!("{major}: {finished}") };
        assert_eq!(calls(agent, "shop/Work.work"), [100, 100, 0], "{major}");
        assert_eq!(calls(agent, "shop/Work.leaf"), [1000, 1000, 0], "{major}");
        assert_eq!(calls(agent, "shop/Work.fails"), [7, 0, 7], "{major}");
        // JVMTI's own counts of this run. Both see the entry of `main`.
        let counts = JvmCounter::counts(&out);
        fs::remove_file(&out).unwrap();
        for (CountedMethod { class, name, .. }, counts) in counts {
            let [entries, exits, thrown] = calls(agent, &format!("{class}.{name}"));
            assert_eq!(entries, counts.entries, "{major}: {class}.{name}");
            assert_eq!([exits + thrown, thrown], [counts.exits, counts.thrown], "{major}: {class}.{name}");
        }
    }
    Ok(())
}

#[test]
fn classes_of_the_jdk_are_traced_if_they_are_named() {
    require!(named_classes_of_the_jdk());
}

fn named_classes_of_the_jdk() -> Result<(), Skip> {
    let classes = classes()?;
    for jdk in Jdk::all()? {
        let mut java = jdk.java();
        java.arg("-cp").arg(classes.path()).args(["shop.Work", "5", "0", "0"]);
        let finished = run(traced(&["--include", "^java/lang/StringBuilder$", "--format", "json"], &java));
        let [agent] = &agents(&finished.expect_code(0).json())[..] else { panic!("{finished}") };
        // "sum " + sum
        let [entries, ..] = calls(agent, "java/lang/StringBuilder.append");
        assert!(entries > 0, "JDK {}: {finished}", jdk.major());
    }
    Ok(())
}

#[test]
fn uncounted_calls_are_unknown() {
    require!(coverage_without_counts());
}

fn coverage_without_counts() -> Result<(), Skip> {
    let classes = classes()?;
    let mut java = Jdk::with_compiler()?.java();
    java.arg("-cp").arg(classes.path()).args(["shop.Work", "5", "0", "0"]);
    let finished = run(traced(&["--mode", "coverage", "--format", "json"], &java));
    let [agent] = &agents(&finished.expect_code(0).json())[..] else { panic!("{finished}") };
    let mut rows = agent["methods"].as_array().unwrap().iter();
    let leaf = rows.find(|row| row["signature"].as_str().unwrap().contains("shop/Work.leaf")).unwrap();
    for member in ["entries", "exits", "exception_exits", "total_ns"] {
        assert_eq!(leaf[member], Value::Null, "{leaf:#}");
    }
    assert_eq!(
        (&agent["entries"], &agent["exits"], &agent["bubbles"]),
        (&Value::Null, &Value::Null, &Value::Null)
    );
    Ok(())
}

#[test]
fn a_shell_command_passes_the_agent_to_its_jvm() {
    require!(started_by_a_shell());
}

fn started_by_a_shell() -> Result<(), Skip> {
    let classes = classes()?;
    let jdk = Jdk::with_compiler()?;
    let script = format!(
        "'{}' -cp '{}' shop.Work 5 0 0; exit 9",
        jdk.home().join("bin/java").display(),
        classes.path().display()
    );
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]);
    let finished = run(traced(&[], &shell));
    finished.expect_code(9).says("JAVA_TOOL_OPTIONS").says("Picked up");
    assert!(
        finished.text().contains("sum 282") && finished.text().contains("shop.Work.leaf(int)"),
        "{finished}"
    );
    // A command that starts no JVM runs anyway.
    let mut nothing = Command::new("sh");
    nothing.args(["-c", "echo done"]);
    let finished = run(traced(&[], &nothing));
    finished.expect_code(5).says("no agent has connected");
    assert_eq!(finished.text(), "done\n");
    run(traced(&[], &Command::new("/no/such/program"))).expect_code(125);
    Ok(())
}

/// A running `jvm attach`.
pub(crate) struct AttachedTrace {
    pub(crate) process: Running,
    recording: tempfile::TempDir,
}

impl AttachedTrace {
    pub(crate) fn start(pid: &str, more: &[&str]) -> Self {
        let recording = folder();
        let mut attach = command(["jvm", "attach", pid, "--include", "^shop/", "--record"]);
        attach.arg(recording.path().join("recording")).args(more);
        // Standard error goes to a file, so that it can be read while the command runs.
        let mut shell = Command::new("sh");
        shell
            .args(["-c", "told=$1; shift; exec \"$@\" 2>\"$told\"", "sh"])
            .arg(recording.path().join("told"));
        shell.arg(attach.get_program()).args(attach.get_args());
        Self { process: Running::start(shell), recording }
    }

    /// Waits until enough bytes of calls have arrived: a call of `work` has 176.
    pub(crate) fn wait_for_calls(&self) {
        let folder = self.recording.path().join("recording");
        eventually("calls arrive", || {
            let files = fs::read_dir(&folder).ok()?.flatten();
            let bytes: u64 = files.map(|file| file.metadata().map_or(0, |file| file.len())).sum();
            (bytes > 20_000).then_some(())
        });
    }

    /// Returns the standard error of `jvm attach` so far.
    pub(crate) fn stderr_so_far(&self) -> String {
        fs::read_to_string(self.recording.path().join("told")).unwrap_or_default()
    }

    /// Stops the trace and returns the folder that contains the recording `recording`.
    pub(crate) fn end_recording(self) -> tempfile::TempDir {
        self.process.signal(Signal::INT);
        self.process.wait().expect_code(0);
        self.recording
    }

    /// Waits until `jvm attach` exits without a signal and returns its standard error.
    pub(crate) fn wait(self) -> String {
        let Self { process, recording } = self;
        process.wait().expect_code(0);
        fs::read_to_string(recording.path().join("told")).unwrap()
    }

    /// Stops the trace and returns its result.
    pub(crate) fn end(self) -> Value {
        self.process.signal(Signal::INT);
        let finished = self.process.wait();
        finished.expect_code(0);
        finished.json()
    }
}

#[test]
fn attaching_and_detaching_ten_times_leaves_the_program_unchanged() {
    require!(each_version());
}

fn each_version() -> Result<(), Skip> {
    let classes = classes()?;
    for jdk in Jdk::all()? {
        let mut java = java(&jdk, classes.path(), ["1000000", "1", "0"]);
        java.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut program = Program::start(java);
        program.wait_for("ready");
        attach_and_detach(&jdk, program.id());
    }
    Ok(())
}

fn attach_and_detach(jdk: &Jdk, pid: u32) {
    let (major, p) = (jdk.major(), pid.to_string());
    let threads = || fs::read_dir(format!("/proc/{pid}/task")).unwrap().count();
    let libraries = || {
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
        maps.lines().filter(|line| line.contains("libruntap_jvm_agent") && line.contains("r-xp")).count()
    };
    runtap(["jvm", "detach", &p]).expect_code(3).says("has not loaded runtap's agent");
    let mut after_first = None;
    for round in 0..10 {
        let traces = AttachedTrace::start(&p, &["--format", "json"]);
        traces.wait_for_calls();
        let document = traces.end();
        let [agent] = &agents(&document)[..] else { panic!("{major}: {document:#}") };
        let [entries, exits, thrown] = calls(agent, "shop/Work.work");
        assert!(entries > 20 && thrown == 0 && entries.abs_diff(exits) <= 1, "{major}: {entries} {exits}");
        let [leaves, ..] = calls(agent, "shop/Work.leaf");
        assert!(leaves.abs_diff(entries * 10) <= 20, "{major}: {leaves} {entries}");
        assert_eq!(agent["gaps"], 0, "{major}");
        // No library is loaded twice, and no thread remains.
        assert_eq!(libraries(), 1, "{major}: round {round}");
        let now = eventually("the agent's threads have ended", || {
            let now = threads();
            (now <= after_first.unwrap_or(now)).then_some(now)
        });
        after_first.get_or_insert(now + 2);
    }
    // Selecting a program by name, and counting calls.
    let by_name = runtap(["jvm", "attach", "-n", "no.such.Program"]);
    by_name.expect_code(3).says("no Java program of your user is named 'no.such.Program'");
    let mut time = 300;
    eventually("calls are counted", || {
        let duration = format!("{time}ms");
        time *= 2;
        let words = ["jvm", "attach", &p, "--include", "^shop/", "--duration", &duration];
        let document = json(words.into_iter().chain(["--format", "json", "--mode", "counts"]));
        let [entries, ..] = calls(&agents(&document)[0], "shop/Work.work");
        (entries > 20).then_some(())
    });
    runtap(["jvm", "detach", &p]).expect_code(0).says("the agent had already left process");
}

/// A main method that runs all the time was called before the agent was loaded: it must not be reported as never
/// called.
#[test]
fn a_running_main_method_is_not_reported_as_never_called() {
    require!(attached_while_main_runs());
}

fn attached_while_main_runs() -> Result<(), Skip> {
    let classes = classes()?;
    for jdk in Jdk::all()? {
        let mut java = java(&jdk, classes.path(), ["1000000", "1", "0"]);
        java.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut program = Program::start(java);
        program.wait_for("ready");
        let traces = AttachedTrace::start(&program.id().to_string(), &[]);
        traces.wait_for_calls();
        let AttachedTrace { process, recording } = traces;
        process.signal(Signal::INT);
        process.wait().expect_code(0);
        let recording = recording.path().join("recording");
        let mut coverage = command(["jvm", "report", "--format", "json", "--never-called"]);
        coverage.arg(classes.path()).arg(&recording);
        let never = run(coverage).json()["never_called"].clone();
        let names = |rows: &Value| -> Vec<String> {
            rows.as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap().to_owned()).collect()
        };
        // The class was loaded before: which of its other methods ran is unknown.
        assert_eq!(never["classes"], serde_json::json!([]), "{}: {never:#}", jdk.major());
        assert_eq!(names(&never["unknown"]), ["<init>", "fails", "main"], "{}: {never:#}", jdk.major());
        let fates: Vec<&Value> =
            never["unknown"].as_array().unwrap().iter().map(|row| &row["fate"]).collect();
        assert_eq!(fates, ["not_called_since_attach", "not_called_since_attach", "already_running"]);
    }
    Ok(())
}

#[test]
fn a_killed_collector_leaves_an_agent_that_can_be_unloaded() {
    require!(killed());
}

fn killed() -> Result<(), Skip> {
    let classes = classes()?;
    let jdk = Jdk::with_compiler()?;
    let mut java = java(&jdk, classes.path(), ["1000000", "1", "0"]);
    java.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut program = Program::start(java);
    program.wait_for("ready");
    let p = program.id().to_string();
    let mapped = || {
        let maps = fs::read_to_string(format!("/proc/{}/maps", program.id())).unwrap();
        maps.contains("libruntap_jvm_agent").then_some(())
    };
    let attached = Running::start(command(["jvm", "attach", &p, "--include", "^shop/"]));
    eventually("the agent is loaded", mapped);
    attached.signal(Signal::KILL);
    drop(attached);
    runtap(["jvm", "detach", &p]).expect_code(0);
    // Ctrl-C detaches the agent, and the next attach finds the JVM unchanged.
    let again = AttachedTrace::start(&p, &[]);
    again.wait_for_calls();
    again.process.signal(Signal::INT);
    let finished = again.process.wait();
    finished.expect_code(0);
    assert!(finished.text().contains("shop.Work.leaf(int)"), "{finished}");
    Ok(())
}

/// A fake executable linked to musl: its JVM would not load the agent, and print an obscure error.
#[test]
fn a_java_for_musl_is_refused_before_it_is_started() {
    let folder = folder();
    let java = folder.path().join("java");
    let loader = b"/lib/ld-musl-x86_64.so.1\0";
    let mut bytes = [&b"\x7fELF\x02\x01\x01"[..], &[0; 120]].concat();
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    // One program header, after the ELF header: PT_INTERP, whose text follows both.
    put(32, &64u64.to_le_bytes());
    put(54, &[56, 0, 1, 0]);
    put(64, &3u32.to_le_bytes());
    put(72, &127u64.to_le_bytes());
    put(96, &(loader.len() as u64).to_le_bytes());
    bytes.extend(loader);
    fs::write(&java, bytes).unwrap();
    fs::set_permissions(&java, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let refused = |java| {
        run(java).expect_code(125).says("runs on musl").says("jvm hq");
    };
    refused(traced(&[], &Command::new(&java)));
    let mut by_name = traced(&[], &Command::new("java"));
    by_name.env("PATH", folder.path());
    refused(by_name);
}

#[test]
fn processes_without_a_jvm_are_left_alone() {
    let mut sleep = Command::new("sleep");
    sleep.arg("100");
    let mut sleep = Running::start(sleep);
    let p = sleep.id().to_string();
    for verb in ["attach", "detach"] {
        runtap(["jvm", verb, &p]).expect_code(3).says("neither a .NET runtime nor a Java virtual machine");
    }
    assert!(!sleep.has_ended(), "SIGQUIT would have terminated the program");
    runtap(["jvm", "attach"]).expect_code(2);
    runtap(["jvm", "run", "--include", "x"]).expect_code(2);
}

/// An invalid expression is reported with its position before anything is started.
#[test]
fn expressions_are_checked_first() {
    let folder = folder();
    let made = folder.path().join("made");
    let mut run = command(["jvm", "run", "--include", "^app/(a|b", "--", "touch"]);
    run.arg(&made);
    runtap_testkit::run(run).expect_code(2).says("--include: '^app/(a|b'").says("(character 6)");
    assert!(!made.exists());
    runtap(["jvm", "attach", "1", "--exclude", "["]).expect_code(2).says("--exclude: '['");
    runtap(["jvm", "hq", "--listen", "127.0.0.1:0", "--include", "x)"]).expect_code(2).says("(character 2)");
}

#[test]
fn a_file_that_is_not_a_program_is_reported() {
    let finished = runtap(["jvm", "run", "--", "/etc/passwd"]);
    finished.expect_code(125).says("cannot start /etc/passwd: the file is not executable");
    assert!(!finished.stderr.contains("JAVA_TOOL_OPTIONS"), "nothing was started: {finished}");
}

#[test]
fn the_library_is_written_to_a_file() {
    use std::os::unix::fs::MetadataExt as _;
    let folder = folder();
    let file = folder.path().join("agent.so");
    fs::write(&file, "old").unwrap();
    let before = fs::metadata(&file).unwrap().ino();
    let mut agent = command(["jvm", "agent", "-o"]);
    agent.arg(&file);
    run(agent).expect_code(0).says("-agentpath:").says("agent.so=host=");
    assert!(fs::read(&file).unwrap().starts_with(b"\x7fELF"));
    assert_ne!(fs::metadata(&file).unwrap().ino(), before, "processes that have loaded the old file keep it");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    let mut agent = command(["jvm", "agent", "-o"]);
    agent.arg(folder.path());
    run(agent).expect_code(1).says("can't write");
}

/// The reason for a missing trace is reported, and the program continues.
#[test]
fn a_rejected_attach_has_a_reason() {
    require!(refused());
}

fn refused() -> Result<(), Skip> {
    let classes = classes()?;
    for jdk in Jdk::all()? {
        let mut java = java(&jdk, classes.path(), ["1000000", "1", "0"]);
        java.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut program = Program::start(java);
        program.wait_for("ready");
        let p = program.id().to_string();
        let collector = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = collector.local_addr().unwrap().to_string();
        let refuses = std::thread::spawn(move || {
            // The agent offers F1 first, then version 1.
            for _ in 0..2 {
                let (mut socket, _) = collector.accept().unwrap();
                let mut hello = [0; 2];
                std::io::Read::read_exact(&mut socket, &mut hello).unwrap();
                std::io::Write::write_all(&mut socket, b"\x63\x00\x09\x1b[31mnope").unwrap();
                let _ = std::io::Read::read(&mut socket, &mut hello);
            }
        });
        let attached = runtap(["jvm", "attach", &p, "--hq", &address]);
        attached.expect_code(4).says("did not start: HQ refuses: \\u{1b}[31mnope");
        refuses.join().unwrap();
        // The first trace is not disturbed, and only one is possible at a time.
        let traces = AttachedTrace::start(&p, &[]);
        traces.wait_for_calls();
        let second = runtap(["jvm", "attach", &p, "--include", "^shop/", "--duration", "10ms"]);
        second.expect_code(4).says("traced already").says(&format!("runtap jvm detach {p}"));
        traces.process.signal(Signal::INT);
        let finished = traces.process.wait();
        finished.expect_code(0);
        assert!(finished.text().contains("shop.Work.leaf(int)"), "JDK {}: {finished}", jdk.major());
        runtap(["jvm", "detach", &p]).expect_code(0).says("already left");
        // Names that match no class.
        let nothing = runtap(["jvm", "attach", &p, "--include", "Work", "--duration", "300ms"]);
        nothing.says("no class matched --include").says("names have slashes");
        assert!(lives(program.id()), "JDK {}", jdk.major());
    }
    Ok(())
}

/// Some collectors support only version 4, which the agent detects.
#[test]
fn a_collector_that_supports_only_version_4_gets_the_trace() {
    require!(of_version_4());
}

fn of_version_4() -> Result<(), Skip> {
    let classes = classes()?;
    let mut java = java(&Jdk::with_compiler()?, classes.path(), ["1000000", "1", "0"]);
    java.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut program = Program::start(java);
    program.wait_for("ready");
    let mut options = runtap_bytefrog::hq::Options::default();
    options.protocol.dialects = vec![runtap_bytefrog_proto::Dialect::V4];
    let any = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
    let hq = runtap_bytefrog::hq::Hq::listen(any, options, |_, _| {}).unwrap();
    let p = program.id().to_string();
    runtap(["jvm", "attach", &p, "--hq", &hq.address().to_string()]).expect_code(0).says("connects to");
    eventually("calls arrive", || {
        let report = hq.report(runtap_bytefrog::hq::AgentId(0)).ok()?;
        assert_eq!(report.dialect, runtap_bytefrog_proto::Dialect::V4);
        (report.counters.entries > 100).then_some(())
    });
    runtap(["jvm", "detach", &p]).expect_code(0);
    Ok(())
}

/// Returns the names of the agent's threads in a process, as reported by the system.
fn agent_threads(pid: &str) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let names = tasks.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
    names.filter(|name| name.starts_with("runtap-")).collect()
}

fn lives(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    !status.is_empty() && !status.contains("State:\tZ")
}

/// The program is frozen while it is traced: runtap exits, and the agent detaches once the program continues.
/// `cli_jvm` tests without Java that a second Ctrl-C waits for no agent.
#[test]
fn runtap_does_not_wait_for_a_frozen_program() {
    require!(frozen());
}

fn frozen() -> Result<(), Skip> {
    let classes = classes()?;
    let mut java = java(&Jdk::with_compiler()?, classes.path(), ["1000000", "1", "0"]);
    java.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut program = Program::start(java);
    program.wait_for("ready");
    let p = program.id().to_string();
    let traces = AttachedTrace::start(&p, &[]);
    // Calls can arrive before `jvm attach` is notified that the agent is loaded.
    eventually("runtap has attached", || {
        traces.stderr_so_far().contains("Ctrl-C stops the trace").then_some(())
    });
    traces.wait_for_calls();
    let freeze = |how: &str| {
        let mut kill = Command::new("sh");
        // The shell's built-in command: the program `kill` is not installed everywhere.
        kill.args(["-c", "kill $0 $1", how, &p]);
        run(kill).expect_code(0);
    };
    freeze("-STOP");
    eventually("each thread of the program is frozen", || {
        let tasks = fs::read_dir(format!("/proc/{p}/task")).unwrap().flatten();
        let states = tasks.filter_map(|task| fs::read_to_string(task.path().join("stat")).ok());
        let is_frozen = |stat: String| stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'));
        states.into_iter().all(is_frozen).then_some(())
    });
    traces.process.signal(Signal::INT);
    eventually("runtap waits for the agent", || {
        traces.stderr_so_far().contains("Ctrl-C again stops waiting").then_some(())
    });
    traces.process.signal(Signal::INT);
    let AttachedTrace { process, recording } = traces;
    process.wait().expect_code(5);
    let told = fs::read_to_string(recording.path().join("told")).unwrap();
    assert!(told.contains("the agent is still in process") && told.contains("is stopped"), "{told}");
    freeze("-CONT");
    // The agent has detached on its own.
    eventually("the agent's threads have ended", || agent_threads(&p).is_empty().then_some(()));
    assert!(lives(program.id()));
    Ok(())
}

//! `stack` on real runtimes: programs that are stuck in known ways, and the JDK's own tools beside it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Stdio;

use runtap_testkit::{Jdk, Program, RealRuntime, Skip, eventually, installed, require, run, workspace_root};
use serde_json::Value;

use crate::common::{Target, command, folder, json, runtap};

on_each_runtime!(stuck_threads_are_shown, every_thread_of_a_busy_program_is_shown);

/// Returns the thread with this name.
#[track_caller]
fn thread<'a>(document: &'a Value, name: &str) -> &'a Value {
    let threads = document["threads"].as_array().unwrap();
    let found = threads.iter().find(|thread| thread["name"] == name);
    found.unwrap_or_else(|| panic!("no thread is named {name}: {document:#}"))
}

fn frames(thread: &Value) -> Vec<String> {
    let frames = thread["frames"].as_array().unwrap().iter();
    frames.map(|frame| frame["name"].as_str().unwrap().to_owned()).collect()
}

#[track_caller]
fn position(thread: &Value, part: &str) -> usize {
    let frames = frames(thread);
    let found = frames.iter().position(|frame| frame.contains(part));
    found.unwrap_or_else(|| panic!("no frame contains {part}: {frames:#?}"))
}

fn stuck_threads_are_shown(runtime: &RealRuntime) -> Result<(), Skip> {
    let target = Target::start(runtime.program("async", &["all", "600"])?);
    // Everything is stuck 300 ms after the program is ready.
    let expected = if runtime.major() >= 10 { "lock" } else { "native" };
    let document = eventually("the stuck threads", || {
        let document = json(["stack", &target.p(), "--format", "json"]);
        let text = document.to_string();
        let are_stuck = text.matches("LockOrder.EnterInner").count() == 2 && text.contains("GetResultCore");
        let wait = |name| &thread(&document, name)["waits_for"]["kind"];
        (are_stuck && wait("lock-1") == expected && wait("lock-2") == expected).then_some(document)
    });
    assert_eq!((&document["schema"], &document["kind"]), (&"runtap.stack/1".into(), &"dotnet".into()));
    assert_eq!(document["pid"], target.pid());
    for (name, method) in [("lock-1", "TakeFirstThenSecond"), ("lock-2", "TakeSecondThenFirst")] {
        let thread = thread(&document, name);
        let enter = position(thread, "LockOrder.EnterInner(class System.Object)");
        assert_eq!(position(thread, &format!("LockOrder.{method}()")), enter + 1);
        assert_eq!(thread["frames"][enter]["module"], "async");
        assert!(thread["frames"][enter]["native_offset"].as_u64() > Some(0), "{thread:#}");
        assert!(thread["frames"][enter]["il_offset"].as_u64().is_some(), "{thread:#}");
        assert_eq!(thread["waits_for"]["owner"], Value::Null);
        assert_eq!(thread["state"], "native");
    }
    let threads = document["threads"].as_array().unwrap();
    let blocked = threads.iter().find(|thread| thread.to_string().contains("SyncOverAsync.BlockOnResult()"));
    let blocked = blocked.expect("the thread that waits for a task");
    assert_eq!(blocked["waits_for"]["kind"], "task");
    assert!(position(blocked, "GetResultCore(") < position(blocked, "BlockOnResult()"));
    let main = threads.iter().find(|thread| thread["tid"] == target.pid()).unwrap();
    assert_eq!(main["waits_for"]["kind"], "sleep");
    assert!(frames(main).last().unwrap().starts_with("Program.Main("), "{main:#}");
    let text = runtap(["stack", "-p", &target.p(), "--merge"]).expect_code(0).text().to_owned();
    assert!(text.contains("\"lock-1\" (tid ") && text.contains("LockOrder.TakeFirstThenSecond()"), "{text}");
    target.still_answers();
    Ok(())
}

/// The threads of `spin` run, which .NET 8 and 9 may mark as native.
fn every_thread_of_a_busy_program_is_shown(runtime: &RealRuntime) -> Result<(), Skip> {
    let target = Target::start(runtime.program("spin", &["600"])?);
    let leaves = ["A.Round", "ThreadB.Round", "ThreadC.Round"];
    let document = eventually("the threads", || {
        let document = json(["stack", &target.p(), "--format", "json"]);
        leaves.iter().all(|name| document.to_string().contains(name)).then_some(document)
    });
    for (name, method) in ["spin-A", "spin-B", "spin-C"].iter().zip(leaves) {
        let thread = thread(&document, name);
        position(thread, method);
        assert!(thread["frames"].as_array().unwrap().iter().all(|frame| frame["module"] != Value::Null));
    }
    target.still_answers();
    Ok(())
}

/// The program whose thread dumps the parser's tests contain.
fn compile_stuck(classes: &Path) -> Result<(), Skip> {
    let source = workspace_root().join("crates/jvm/jvm-attach/testdata/thread_dumps/Stuck.java");
    Jdk::with_compiler()?.compile([&source], classes);
    Ok(())
}

/// Starts the program and waits until its threads are stuck.
fn stuck(jdk: &Jdk, classes: &Path, arguments: &[&str]) -> Program {
    let mut java = jdk.java();
    java.args(["-XX:+UseSerialGC", "-Xmx128m", "-cp"]).arg(classes).arg("Stuck").args(arguments);
    java.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut program = Program::start(java);
    program.wait_for("stuck");
    program
}

/// Returns the names of the threads in each deadlock.
fn deadlocks(document: &Value) -> BTreeSet<Vec<String>> {
    let name = |place: &Value| {
        let place = usize::try_from(place.as_u64().unwrap()).unwrap();
        document["threads"][place]["name"].as_str().unwrap().to_owned()
    };
    let deadlocks = document["deadlocks"].as_array().unwrap().iter();
    deadlocks.map(|deadlock| deadlock["threads"].as_array().unwrap().iter().map(name).collect()).collect()
}

fn both_deadlocks() -> BTreeSet<Vec<String>> {
    let pair = |names: [&str; 2]| names.map(str::to_owned).to_vec();
    BTreeSet::from([pair(["lock-1", "lock-2"]), pair(["monitor-1", "monitor-2"])])
}

/// Returns the Java ids of the threads that the JDK's own tool lists, which works with all versions.
fn ids_of_jstack(pid: u32) -> Result<BTreeSet<u64>, Skip> {
    let mut jstack = installed("jstack")?;
    jstack.arg(pid.to_string());
    let listed = run(jstack);
    let text = listed.expect_code(0).text();
    let id = |line: &str| line.rsplit_once("\" #")?.1.split(' ').next()?.parse().ok();
    Ok(text
        .lines()
        .filter(|line| line.contains(" tid=0x") && !line.contains("\"fake\""))
        .filter_map(id)
        .collect())
}

fn java_threads() -> Result<(), Skip> {
    let folder = folder();
    compile_stuck(folder.path())?;
    for jdk in &Jdk::all()? {
        let program = stuck(jdk, folder.path(), &["3"]);
        let p = program.id().to_string();
        let document = json(["stack", &p, "--no-virtual", "--format", "json"]);
        assert_eq!((&document["kind"], &document["name"]), (&"jvm".into(), &"Stuck".into()));
        assert_eq!(deadlocks(&document), both_deadlocks(), "JDK {}", jdk.major());
        let threads = document["threads"].as_array().unwrap();
        // The names of two threads look like the format.
        assert_eq!(
            threads.iter().filter(|thread| thread["name"].as_str().unwrap().contains("\" #")).count(),
            2
        );
        let ids: BTreeSet<u64> = threads.iter().filter_map(|thread| thread["id"].as_u64()).collect();
        let listed = ids_of_jstack(program.id())?;
        // Compilers start and end threads at any time.
        assert!(ids.symmetric_difference(&listed).count() <= 3, "{ids:?} {listed:?}");
        let holder = threads.iter().position(|thread| thread["name"] == "holder").unwrap();
        assert_eq!(thread(&document, "blocked")["waits_for"]["owner"], holder);
        assert_eq!(thread(&document, "parked")["waits_for"]["owner"], Value::Null);
        for (name, method) in [("deep", "Stuck.down"), ("blocked", "Stuck.enter"), ("spinning", "Stuck.")] {
            position(thread(&document, name), method);
        }
        assert!(thread(&document, "spinning")["cpu_ns"].as_u64() > Some(1_000_000));
        // The kernel's ids.
        let tasks = format!("/proc/{p}/task");
        for thread in threads.iter().filter(|thread| thread["name"].as_str().unwrap().starts_with("idle-")) {
            assert!(Path::new(&tasks).join(thread["tid"].to_string()).exists(), "{thread:#}");
        }
        let document = json(["stack", &p, "--no-virtual", "--locks", "--merge", "--format", "json"]);
        let owner =
            document["threads"].as_array().unwrap().iter().position(|thread| thread["name"] == "owner");
        assert_eq!(thread(&document, "parked")["waits_for"]["owner"], owner.unwrap());
        assert_eq!(document["merged"][0]["count"].as_u64().map(|count| count >= 3), Some(true));
        let text = runtap(["stack", &p, "--no-virtual"]).expect_code(0).text().to_owned();
        assert!(
            text.contains(", 2 deadlocks\n") && !text.contains('\u{1b}') && !text.contains('\u{202e}'),
            "{text}"
        );
    }
    Ok(())
}

#[test]
fn java_threads_are_those_of_jstack() {
    require!(java_threads());
}

fn virtual_threads() -> Result<(), Skip> {
    let folder = folder();
    compile_stuck(folder.path())?;
    for jdk in Jdk::all()?.iter().filter(|jdk| jdk.major() >= 21) {
        let program = stuck(jdk, folder.path(), &["0", "10000", "plain"]);
        let p = program.id().to_string();
        let document = json(["stack", &p, "--format", "json", "--merge"]);
        assert_eq!(document["virtual_threads"], true);
        let threads = document["threads"].as_array().unwrap();
        let is_virtual: Vec<&Value> = threads.iter().filter(|thread| thread["kind"] == "virtual").collect();
        assert_eq!(is_virtual.len(), 10_000, "JDK {}", jdk.major());
        let ids: BTreeSet<u64> = is_virtual.iter().filter_map(|thread| thread["id"].as_u64()).collect();
        assert_eq!(ids.len(), 10_000);
        position(is_virtual[0], "java.lang.VirtualThread.park");
        assert_eq!((&is_virtual[0]["tid"], &document["merged"][0]["count"]), (&Value::Null, &10_000.into()));
        assert_eq!(deadlocks(&document), both_deadlocks());
        // The file and its directory are removed.
        let mut left = fs::read_dir("/tmp").unwrap().flatten();
        assert!(left.all(|entry| !entry.path().join("threads.json").exists()));
        // Names with control characters make the JVM fail.
        let program = stuck(jdk, folder.path(), &["0", "1"]);
        let p = program.id().to_string();
        runtap(["stack", &p, "--format", "json"]).expect_code(5).says("virtual threads are missing: ");
        let document = json(["stack", &p, "--no-virtual", "--format", "json"]);
        assert_eq!(document["virtual_threads"], false);
    }
    Ok(())
}

#[test]
fn virtual_threads_are_those_of_the_program() {
    require!(virtual_threads());
}

fn unreachable_programs() -> Result<(), Skip> {
    let folder = folder();
    compile_stuck(folder.path())?;
    let Some(jdk) = Jdk::all()?.into_iter().next() else { return Ok(()) };
    let mut java = jdk.java();
    java.args(["-XX:+DisableAttachMechanism", "-cp"]).arg(folder.path()).args(["Stuck", "0"]);
    java.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut program = Program::start(java);
    program.wait_for("stuck");
    let p = program.id().to_string();
    runtap(["stack", &p]).expect_code(4).says("DisableAttachMechanism");
    runtap(["stack", "-n", "no-such-program"]).expect_code(3);
    let mut none = command(["stack"]);
    none.stdin(Stdio::null());
    run(none).expect_code(2);
    Ok(())
}

#[test]
fn programs_that_do_not_attach_are_named() {
    require!(unreachable_programs());
}

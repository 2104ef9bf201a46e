//! Java virtual machines listed beside .NET processes.

use std::fs;

use runtap_testkit::{Jdk, RealRuntime, Running, Skip, eventually};

use crate::common::{Target, folder, json, runtap, unique};
use crate::real_doctor::idle;

on_the_newest_runtime!(jvm_verbs_suggest_verbs_for_dotnet);

const SLEEPER: &str = "package shop;
public class Sleeper {
    public static void main(String[] words) throws Exception { Thread.sleep(60_000); }
}
";

fn each_version() -> Result<(), Skip> {
    let folder = folder();
    let source = folder.path().join("Sleeper.java");
    fs::write(&source, SLEEPER).unwrap();
    Jdk::with_compiler()?.compile([&source], folder.path());
    // The second one has no counters: its facts come from its memory map, its command line and its installation.
    let starts = ["-XX:+UsePerfData", "-XX:-UsePerfData"];
    let jdks = Jdk::all()?;
    for (jdk, counters) in jdks.iter().flat_map(|jdk| starts.map(|counters| (jdk, counters))) {
        let mut java = jdk.java();
        java.arg(counters).arg("-cp").arg(folder.path()).args(["shop.Sleeper", "--port", "80"]);
        let java = Running::start(java);
        let pid = java.id();
        let row = eventually("the machine is listed with what runs in it", || {
            let document = runtap(["ps", "--format", "json"]).expect_code(0).json();
            let rows = document["processes"].as_array().unwrap().clone();
            rows.into_iter().find(|row| row["pid"] == pid && row["name"] == "shop.Sleeper")
        });
        assert_eq!(row["kind"], "jvm");
        let version = row["runtime_version"].as_str().unwrap();
        assert_eq!(version.split('.').next(), Some(&*jdk.major().to_string()), "{row}");
        assert_eq!(row["reachable"], false, "it speaks none of our protocols");
    }
    Ok(())
}

#[test]
fn ps_names_what_runs_in_a_java_machine() {
    if let Err(skip) = each_version() {
        skip.report();
    }
}

/// Starts a JVM and waits until it is loaded.
fn started(jdk: &Jdk, classes: &std::path::Path, option: &str) -> Running {
    let mut java = jdk.java();
    java.arg(option).arg("-cp").arg(classes).arg("shop.Idler");
    let java = Running::start(java);
    eventually("its machine is loaded", || {
        fs::read_to_string(format!("/proc/{}/maps", java.id())).ok()?.contains("libjvm.so").then_some(())
    });
    java
}

const PROFILER: [&str; 4] = ["--clsid", "{01234567-89ab-cdef-0123-456789abcdef}", "--path", "/profiler.so"];

/// The verbs that need a .NET runtime, with their arguments after the target.
const DOTNET_VERBS: [(&[&str], &[&str]); 11] = [
    (&["trace"], &[]),
    (&["tail"], &["--providers", "X"]),
    (&["top"], &[]),
    (&["dump"], &[]),
    (&["resume"], &[]),
    (&["set-env"], &["NAME=VALUE"]),
    (&["profiler", "attach"], &PROFILER),
    (&["profiler", "startup"], &PROFILER),
    (&["startup-hook"], &["/hook.dll"]),
    (&["perfmap", "enable"], &[]),
    (&["perfmap", "disable"], &[]),
];

fn verbs_on_java() -> Result<(), Skip> {
    let folder = folder();
    let source = folder.path().join("Idler.java");
    fs::write(&source, SLEEPER.replace("Sleeper", "Idler")).unwrap();
    Jdk::with_compiler()?.compile([&source], folder.path());
    let jdks = Jdk::all()?;
    let Some(jdk) = jdks.first() else { return Ok(()) };
    let java = started(jdk, folder.path(), "-XX:-UsePerfData");
    let (pid, attach) = (java.id().to_string(), format!("runtap jvm attach {}", java.id()));
    let is_java = format!("process {pid} (shop.Idler) is a Java program; 'runtap ");
    for (verb, arguments) in DOTNET_VERBS {
        for target in [&["-p", &*pid][..], &["-n", "shop.Idler"]] {
            let told = runtap(verb.iter().chain(target).chain(arguments));
            told.expect_code(3).says(&is_java).says(verb[0]).says(".NET").says(&attach);
        }
    }
    runtap(["dump", &pid]).expect_code(3).says(&format!("jcmd {pid} GC.heap_dump"));

    let closed = started(jdk, folder.path(), "-XX:+DisableAttachMechanism");
    let told = runtap(["trace", &closed.id().to_string()]).expect_code(3).to_string();
    assert!(told.contains("DisableAttachMechanism") && told.contains("runtap jvm run"), "{told}");
    eventually("both are listed, as soon as they have counters", || {
        let several = runtap(["trace", "-n", "shop.Idler"]).expect_code(3).to_string();
        let is_listed = |java: &Running| several.contains(&format!("{}  ", java.id()));
        (is_listed(&java) && is_listed(&closed) && several.contains("runtap jvm attach PID")).then_some(())
    });
    Ok(())
}

#[test]
fn verbs_for_dotnet_say_what_traces_a_java_program() {
    if let Err(skip) = verbs_on_java() {
        skip.report();
    }
}

fn java_behind_trace() -> Result<(), Skip> {
    let folder = folder();
    let source = folder.path().join("Napper.java");
    fs::write(&source, SLEEPER.replace("Sleeper", "Napper").replace("60_000", "4_000")).unwrap();
    Jdk::with_compiler()?.compile([&source], folder.path());
    let Some(jdk) = Jdk::all()?.into_iter().next() else { return Ok(()) };
    let java = jdk.home().join("bin/java");
    let java = format!("{} -cp {} shop.Napper; true", java.display(), folder.path().display());
    runtap(["trace", "--dial-in", "2s", "--", "sh", "-c", &java])
        .expect_code(0)
        .says("is a Java program, not a .NET one; to trace its calls: runtap jvm attach ")
        .says("(or from its start: runtap jvm run -- java …)");
    runtap(["trace", "--", "sh", "-c", &java])
        .expect_code(0)
        .says("nothing was recorded: the command ran a Java program (process ")
        .says("runtap jvm run -- java …");
    Ok(())
}

#[test]
fn a_java_program_that_trace_starts_is_named() {
    if let Err(skip) = java_behind_trace() {
        skip.report();
    }
}

fn jvm_verbs_suggest_verbs_for_dotnet(runtime: &RealRuntime) -> Result<(), Skip> {
    let (name, copy) = (unique("notjava"), folder());
    let target = Target::start(idle(runtime)?.called(&name, copy.path()));
    let trace = format!("runtap trace -p {}", target.p());
    let is_dotnet = format!("process {} ({name}) is a .NET program;", target.p());
    for verb in ["attach", "detach"] {
        runtap(["jvm", verb, &target.p()]).expect_code(3).says(&is_dotnet).says(&trace);
    }
    runtap(["jvm", "attach", "-n", &name]).expect_code(3).says("no Java program").says(&trace);
    assert_eq!(json(["info", &target.p(), "--format", "json"])["pid"], target.pid());
    Ok(())
}

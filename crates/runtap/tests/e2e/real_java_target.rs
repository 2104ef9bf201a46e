//! `info`, `env`, `doctor` and `ps` of Java programs.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use runtap_testkit::{Jdk, OWN_TMP, Program, Running, Skip, eventually, in_own_tmp, require, run};
use serde_json::Value;
use tempfile::TempDir;

use crate::common::{command, folder, json, ps, runtap};
use crate::real_doctor::{finding, says};
use crate::real_doctor_rights::{NOBODY, ProgramCopy, child_of};

const SOURCE: &str = "package shop;
public class NAME {
    public static void main(String[] words) throws Exception {
        System.out.println(\"ready\");
        Thread.sleep(600_000);
    }
}
";

/// The compiled program.
struct Classes {
    folder: TempDir,
    main: String,
}

/// Compiles the program for all JVMs, with a name that no other test uses. Every user can read it.
fn classes(name: &str) -> Result<Classes, Skip> {
    let folder = folder();
    let source = folder.path().join(format!("{name}.java"));
    fs::write(&source, SOURCE.replace("NAME", name)).unwrap();
    Jdk::with_compiler()?.compile([&source], folder.path());
    let mut readable = Command::new("chmod");
    readable.args(["-R", "a+rX"]).arg(folder.path());
    run(readable).expect_code(0);
    Ok(Classes { folder, main: format!("shop.{name}") })
}

/// Starts the program and waits until it runs.
fn start(java: Command, options: &[&str], classes: &Classes) -> Program {
    start_in(classes.folder.path(), java, options, classes)
}

fn start_in(path: &Path, mut java: Command, options: &[&str], classes: &Classes) -> Program {
    java.args(options).arg("-cp").arg(path).args([&classes.main, "--port", "80"]);
    let mut program = Program::start({
        java.stdin(Stdio::piped()).stdout(Stdio::piped());
        java
    });
    program.wait_for("ready");
    program
}

fn info(target: &str) -> Value {
    json(["info", target, "--format", "json"])
}

fn doctor(pid: u32, code: i32) -> Value {
    runtap(["doctor", &pid.to_string(), "--format", "json"]).expect_code(code).json()
}

/// Returns the codes of all findings.
fn codes(document: &Value) -> Vec<&str> {
    let findings = document["findings"].as_array().unwrap().iter();
    findings.map(|finding| finding["code"].as_str().unwrap()).collect()
}

#[track_caller]
fn is_described(document: &Value, main: &str, jdk: &Jdk, pid: u32, source: &str) {
    assert_eq!(document["schema"], "runtap.info/1");
    assert_eq!((&document["pid"], &document["kind"]), (&pid.into(), &"jvm".into()), "{document:#}");
    assert_eq!(document["entry"], main, "{document:#}");
    let version = document["runtime_version"].as_str().unwrap();
    assert_eq!(version.split('.').next(), Some(&*jdk.major().to_string()), "{document:#}");
    assert!(document["uptime_ns"].as_u64().unwrap() < 600_000_000_000, "{document:#}");
    assert!(
        document["command_line"].as_str().unwrap().ends_with(&format!("{main} --port 80")),
        "{document:#}"
    );
    assert!(document["user"].is_string() && document["arch"].is_string(), "{document:#}");
    let jvm = &document["jvm"];
    assert_eq!(jvm["source"], source, "{document:#}");
    let home = fs::canonicalize(jvm["java_home"].as_str().unwrap()).unwrap();
    assert_eq!(home, fs::canonicalize(jdk.home()).unwrap(), "{document:#}");
    // An installation may lack its vendor.
    assert!(jvm["vendor"].is_string() || source == "process", "{document:#}");
    let reported = [&jvm["vm_name"], &jvm["vm_version"], &jvm["vm_info"], &jvm["jvm_args"]];
    assert!(reported.iter().all(|value| value.is_string() != (source == "process")), "{document:#}");
}

fn each_jdk() -> Result<(), Skip> {
    let classes = classes("Clerk")?;
    for jdk in Jdk::all()? {
        let mut java = jdk.java();
        java.env("CLERK", "two\nlines").env("JAVA_TOOL_OPTIONS", "-Dshop.open=yes");
        let program = start(java, &["-Xmx64m"], &classes);
        let (pid, p) = (program.id(), program.id().to_string());
        let document = info(&p);
        is_described(&document, &classes.main, &jdk, pid, "counters");
        let arguments = document["jvm"]["jvm_args"].as_str().unwrap();
        assert!(arguments.contains("-Dshop.open=yes") && arguments.contains("-Xmx64m"), "{document:#}");
        let text = runtap(["info", "-n", &classes.main]).expect_code(0).text().to_owned();
        let line = |name: &str, value: &str| text.lines().any(|it| it == format!("{name:<16}{value}"));
        assert!(line("process id", &p) && line("main class", &classes.main), "{text}");
        assert!(line("virtual machine", &machine(&document)) && !text.contains("unknown"), "{text}");

        let document = json(["env", &p, "--format", "json"]);
        let clerk = document["variables"].as_array().unwrap().iter().find(|it| it["name"] == "CLERK");
        assert_eq!(clerk.unwrap()["value"], "two\nlines");
        assert_eq!((&document["schema"], &document["at_startup"]), (&"runtap.env/1".into(), &true.into()));
        let env = runtap(["env", &p]);
        assert!(env.expect_code(0).says("the environment with which process ").text().contains("CLERK=two"));

        let judged = doctor(pid, 0);
        assert_eq!((&judged["reachable"], &judged["kind"]), (&true.into(), &"jvm".into()), "{judged:#}");
        assert_eq!(codes(&judged), [] as [&str; 0], "{judged:#}");
        let judged = runtap(["doctor", "-n", &classes.main]).expect_code(0).text().to_owned();
        assert!(judged.contains("(shop.Clerk) is a Java program that can be attached to"), "{judged}");
        assert!(!is_listening(&program), "no tool has made it listen");
    }
    Ok(())
}

/// Returns the virtual machine as the text shows it.
fn machine(info: &Value) -> String {
    let part = |name: &str| info["jvm"][name].as_str().unwrap().to_owned();
    format!("{} {} ({})", part("vm_name"), part("vm_version"), part("vm_info"))
}

fn is_listening(program: &Program) -> bool {
    fs::exists(format!("/tmp/.java_pid{}", program.id())).unwrap()
}

#[test]
fn a_java_program_is_described_without_disturbing_it() {
    require!(each_jdk());
}

fn without_counters() -> Result<(), Skip> {
    let classes = classes("Quiet")?;
    for jdk in Jdk::all()? {
        let program = start(jdk.java(), &["-XX:-UsePerfData", "-Xmx64m"], &classes);
        let judged = doctor(program.id(), 0);
        assert_eq!(codes(&judged), ["no-perf-data"], "{judged:#}");
        says(&finding(&judged, "no-perf-data"), "detail", "-XX:-UsePerfData");
        assert!(!is_listening(&program), "doctor changes nothing");
        let document = info(&program.id().to_string());
        is_described(&document, &classes.main, &jdk, program.id(), "attach");
        assert_eq!(document["jvm"]["jvm_args"], "-XX:-UsePerfData -Xmx64m");
        assert!(is_listening(&program) && !fs::exists(format!("/tmp/.attach_pid{}", program.id())).unwrap());
        // Now that it listens, it is asked.
        assert_eq!(codes(&doctor(program.id(), 0)), ["no-perf-data"]);

        let options = ["-XX:-UsePerfData", "-XX:+DisableAttachMechanism"];
        let closed = start(jdk.java(), &options, &classes);
        is_described(&info(&closed.id().to_string()), &classes.main, &jdk, closed.id(), "process");
        let judged = doctor(closed.id(), 3);
        assert_eq!(
            (&judged["reachable"], codes(&judged)),
            (&false.into(), vec!["attach-disabled", "no-perf-data"])
        );
        says(&finding(&judged, "attach-disabled"), "fix", "runtap jvm run -- java");
    }
    Ok(())
}

#[test]
fn a_java_program_without_counters_is_asked_if_it_allows_that() {
    require!(without_counters());
}

fn obstacles() -> Result<(), Skip> {
    let classes = classes("Obstacle")?;
    for jdk in Jdk::all()? {
        for (options, reachable, expected) in [
            (&["-Xint"][..], true, &["interpreted"][..]),
            // Such a machine listens from its start.
            (&["-Xrs"], true, &[]),
            (&["-XX:-EnableDynamicAgentLoading"], false, &["agents-disabled"]),
            (&["-XX:+DisableAttachMechanism"], false, &["attach-disabled"]),
        ] {
            let program = start(jdk.java(), options, &classes);
            let judged = doctor(program.id(), if reachable { 0 } else { 3 });
            assert_eq!(
                (&judged["reachable"], codes(&judged)),
                (&reachable.into(), expected.to_vec()),
                "{options:?}"
            );
            let attach = runtap(["jvm", "attach", &program.id().to_string(), "--duration", "0.2s"]);
            assert_eq!(attach.code() == Some(0), reachable, "{options:?}: {attach}");
            if reachable {
                assert!(codes(&doctor(program.id(), 0)).contains(&"agent-loaded"), "{options:?}");
            }
        }
        let program = start(jdk.java(), &[], &classes);
        let pid = program.id().to_string();
        run({
            let mut stop = Command::new("kill");
            stop.args(["-STOP", &pid]);
            stop
        });
        assert_eq!(codes(&doctor(program.id(), 3)), ["busy"]);
        is_described(&info(&pid), &classes.main, &jdk, program.id(), "counters");
    }
    Ok(())
}

#[test]
fn doctor_says_what_prevents_attaching() {
    require!(obstacles());
}

fn other_users() -> Result<(), Skip> {
    let (place, classes) = (ProgramCopy::new()?, classes("Other")?);
    for jdk in Jdk::all()? {
        let mut java = Command::new(NOBODY[0]);
        java.args(&NOBODY[1..]).arg(jdk.home().join("bin/java")).env("CLERK", "other").current_dir("/");
        let theirs = start(java, &["-XX:-UsePerfData"], &classes);
        let p = theirs.id().to_string();
        is_described(&info(&p), &classes.main, &jdk, theirs.id(), "attach");
        let user = info(&p)["user"].as_str().unwrap().to_owned();
        assert_ne!(user, "root");
        assert!(runtap(["env", &p]).expect_code(0).text().contains("CLERK=other"));
        assert_eq!(codes(&doctor(theirs.id(), 0)), ["no-perf-data"]);
        let by_name = runtap(["info", "-n", &classes.main, "--user", "65534"]);
        assert!(by_name.expect_code(0).text().contains(&p), "{by_name}");
        runtap(["info", "-n", &classes.main]).expect_code(3).says(&user).says(&p);

        let ours = start(jdk.java(), &[], &classes);
        let p = ours.id().to_string();
        for verb in ["info", "env", "doctor", "resume"] {
            let told = run(place.command(&NOBODY, [verb, &p]));
            let told = told.expect_code(3).to_string();
            let fix = format!("Run: sudo runtap {verb} {p}");
            assert!(told.contains("belongs to user root") && told.contains(&fix), "{told}");
        }
    }
    Ok(())
}

#[test]
fn root_sees_java_programs_of_others_and_others_are_told_to_be_root() {
    require!(other_users());
}

fn contained() -> Result<(), Skip> {
    const WRAPPER: [&str; 6] = ["unshare", "--pid", "--mount", "--fork", "--mount-proc", "--kill-child"];
    let possible = Command::new(WRAPPER[0]).args(&WRAPPER[1..]).arg("true").stderr(Stdio::null()).status();
    if !possible.is_ok_and(|status| status.success()) {
        return Err(Skip::because("only root can make namespaces"));
    }
    let classes = classes("Inside")?;
    for jdk in Jdk::all()? {
        for (option, source) in [("-XX:+UsePerfData", "counters"), ("-XX:-UsePerfData", "attach")] {
            let mut java = Command::new(WRAPPER[0]);
            java.args(&WRAPPER[1..]).args(["sh", "-c", OWN_TMP, "sh"]);
            java.arg(in_own_tmp(&jdk.home().join("bin/java"))).env("CLERK", "contained");
            let wrapper = start_in(&in_own_tmp(classes.folder.path()), java, &[option], &classes);
            let pid = child_of(&wrapper);
            let document = info(&pid.to_string());
            assert_eq!((&document["pid"], &document["entry"]), (&pid.into(), &classes.main.as_str().into()));
            assert_eq!(document["jvm"]["source"], source, "{document:#}");
            assert!(document["jvm"]["vm_name"].is_string(), "{document:#}");
            assert!(runtap(["env", &pid.to_string()]).expect_code(0).text().contains("CLERK=contained"));
            let judged = doctor(pid, 0);
            says(
                &finding(&judged, "other-namespace"),
                "detail",
                "its PID is 1: its socket for tools is /tmp/.java_pid1",
            );
            assert_eq!(judged["reachable"], true);
        }
    }
    Ok(())
}

#[test]
fn a_java_program_in_a_container_is_described_from_the_host() {
    require!(contained());
}

fn listed() -> Result<(), Skip> {
    let classes = classes("Listed")?;
    let Some(jdk) = Jdk::all()?.into_iter().next() else { return Ok(()) };
    let program = start(jdk.java(), &[], &classes);
    let pid = program.id();
    let all = json(["doctor", "--format", "json"]);
    let row = all["processes"].as_array().unwrap().iter().find(|row| row["pid"] == pid).unwrap().clone();
    assert_eq!((&row["kind"], &row["name"]), (&"jvm".into(), &classes.main.as_str().into()));
    assert_eq!((&row["reachable"], &row["findings"]), (&true.into(), &Value::Array(Vec::new())));
    let table = runtap(["doctor"]).expect_code(0).text().to_owned();
    let line = table.lines().find(|line| line.contains(&classes.main)).unwrap();
    assert!(line.ends_with("is a Java program that can be attached to"), "{table}");

    let row = ps(command(["ps"])).into_iter().find(|row| row["pid"] == pid).unwrap();
    assert_eq!(row["parent_pid"], std::process::id());
    assert!(row["rss_bytes"].as_u64().unwrap() > 1 << 20, "{row:#}");
    assert!(row["uptime_ns"].is_u64() && row["cpu_percent"].is_number(), "{row:#}");
    let wide = runtap(["ps", "--wide", &classes.main]).expect_code(0).text().to_owned();
    let words: Vec<&str> = wide.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(words[..5], ["PID", "NAME", "STATE", "RUNTIME", "USER"]);
    assert_eq!(words[5..9], ["PARENT", "CPU", "MEMORY", "UPTIME"]);
    let narrow = runtap(["ps", &classes.main]).expect_code(0).text().to_owned();
    assert!(!narrow.contains("MEMORY") && narrow.contains(&classes.main), "{narrow}");
    Ok(())
}

#[test]
fn doctor_and_ps_list_java_programs_with_what_they_use() {
    require!(listed());
}

#[test]
fn a_process_of_neither_kind_is_said_to_have_none() {
    let mut sleep = Command::new("sleep");
    sleep.arg("600");
    let sleep = Running::start(sleep);
    let pid = sleep.id().to_string();
    for verb in [&["info"][..], &["env"], &["doctor"], &["trace"], &["jvm", "attach"]] {
        // A process that has just started may still load a runtime.
        eventually("the judgement", || {
            let told = runtap(verb.iter().chain(&[&*pid])).expect_code(3).to_string();
            told.contains("has loaded neither a .NET runtime nor a Java virtual machine").then_some(())
        });
    }
}

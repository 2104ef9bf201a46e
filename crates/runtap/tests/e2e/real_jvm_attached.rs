//! The results of an agent that was attached to a running program contain nothing that ran before.

use std::fs;
use std::process::Stdio;

use runtap_testkit::{Jdk, Program, Skip, eventually, require, run};
use serde_json::Value;

use crate::common::{command, folder};
use crate::real_jvm::{AttachedTrace, classes, java};

/// `Before` is loaded and initialized before the agent is attached; `Since` after the program receives input, and so is
/// the second half of `both` called.
const PROGRAM: &str = "package shop;
public class Shop {
    static class Before {
        static int loaded;
        static { loaded = 1; }
        static void once() { loaded++; }
        static void unused() { loaded--; }
    }
    static class Since {
        static int loaded;
        static { loaded = 1; }
        static void again() { loaded++; }
        static void unused() { loaded--; }
    }
    static int setUp() { return 1; }
    static int both(boolean first) {
        if (first)
            return 7;
        return 8;
    }
    public static void main(String[] words) throws Exception {
        int sum = setUp() + both(true);
        Before.once();
        System.out.println(\"ready\");
        System.in.read();
        sum += both(false);
        Since.again();
        System.out.println(\"done \" + sum);
        System.in.read();
        System.in.read();
    }
}
";

/// Returns the names of the listed methods of a class.
fn listed(never: &Value, class: &str) -> Vec<String> {
    let classes = never["classes"].as_array().unwrap();
    let of_class = classes.iter().filter(|row| row["class"] == class);
    let methods = of_class.flat_map(|row| row["methods"].as_array().unwrap());
    methods.map(|method| method["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn methods_run_before_the_attach_are_not_reported_as_never_called() {
    require!(attached_to_shop());
}

fn attached_to_shop() -> Result<(), Skip> {
    let classes = folder();
    let source = classes.path().join("Shop.java");
    fs::write(&source, PROGRAM).unwrap();
    Jdk::with_compiler()?.compile([&source], classes.path());
    for (jdk, mode) in Jdk::all()?.iter().flat_map(|jdk| [(jdk, "coverage"), (jdk, "full")]) {
        let context = format!("JDK {}, {mode}", jdk.major());
        let mut java = jdk.java();
        java.arg("-cp").arg(classes.path()).arg("shop.Shop");
        java.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut program = Program::start(java);
        program.wait_for("ready");
        let traces = AttachedTrace::start(&program.id().to_string(), &["--mode", mode]);
        // Classes have their probes before `jvm attach` is notified that the agent is loaded.
        eventually("it has attached", || {
            traces.stderr_so_far().contains("Ctrl-C stops the trace").then_some(())
        });
        program.begin();
        program.wait_for("done");
        let recording = traces.end_recording();
        let report = |arguments: &[&str]| {
            let mut report = command(["jvm", "report", "--format", "json"]);
            report.arg(recording.path().join("recording")).args(arguments).arg(classes.path());
            run(report).expect_code(0).json()
        };
        let never = report(&["--never-called"])["never_called"].clone();
        assert_eq!(listed(&never, "shop/Shop$Since"), ["<init>", "unused"], "{context}: {never:#}");
        assert_eq!(never["classes_count"], 1, "{context}: {never:#}");
        let fates = |list: &str, name: &str| -> Vec<(String, String)> {
            let rows = never[list].as_array().unwrap().iter();
            rows.map(|row| {
                let text = |member: &str| row[member].as_str().unwrap().to_owned();
                (text(name), text("fate"))
            })
            .collect()
        };
        let row = |name: &str, fate: &str| (name.to_owned(), fate.to_owned());
        assert_eq!(
            fates("untraced", "class"),
            [row("shop/Shop$Before", "not_called_since_attach")],
            "{context}"
        );
        let since = |name| row(name, "not_called_since_attach");
        let of_shop = [since("<init>"), since("setUp"), row("main", "already_running")];
        assert_eq!(fates("unknown", "name"), of_shop, "{context}");
        // Of `Before`, including the constructor and `<clinit>`.
        assert_eq!(never["not_called_since_attach"], 6, "{context}: {never:#}");
        let caveat = |caveat: &Value| caveat.as_str().unwrap().starts_with("6 methods were not called since");
        assert!(never["caveats"].as_array().unwrap().iter().any(caveat), "{context}: {never:#}");
        let written = classes.path().join("shop.info");
        let lcov = format!("lcov={}", written.display());
        let document = report(&["--coverage", &lcov, "--classes"]);
        assert_eq!(document["coverage"]["notes"]["not_called_since_attach"], 6, "{context}: {document:#}");
        let lcov = fs::read_to_string(&written).unwrap();
        assert!(lcov.contains("Shop.both(Z)I") && lcov.contains("Shop$Since.unused()V"), "{context}: {lcov}");
        assert!(!lcov.contains("setUp") && !lcov.contains("Shop$Before"), "{context}: {lcov}");
        if mode == "coverage" {
            // A line of `both` that ran only before, one that ran since, and one of a method that was never called.
            assert!(lcov.contains("DA:19,1") && lcov.contains("DA:13,0"), "{context}: {lcov}");
            assert!(!lcov.contains("DA:18,0"), "{context}: {lcov}");
        }
    }
    Ok(())
}

/// The program exits on its own: no agent is left, and nothing has to be detached.
#[test]
fn a_program_that_ends_while_it_is_traced_has_no_agent_left() {
    require!(ended_while_traced());
}

fn ended_while_traced() -> Result<(), Skip> {
    let classes = classes()?;
    for jdk in Jdk::all()? {
        let major = jdk.major();
        let mut java = java(&jdk, classes.path(), ["2000", "1", "0"]);
        java.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut program = Program::start(java);
        program.wait_for("ready");
        let traces = AttachedTrace::start(&program.id().to_string(), &[]);
        let told = traces.wait();
        assert!(told.contains("Ctrl-C stops the trace"), "{major}: {told}");
        assert!(!told.contains("still in process"), "{major}: {told}");
    }
    Ok(())
}

//! `heap` on real JVMs: the objects are those that the JVM itself counts.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use runtap_testkit::{Jdk, Program, Skip, run};
use serde_json::Value;

use crate::common::{folder, json, runtap};

/// The number and size of the objects of each class.
type Classes = BTreeMap<String, (u64, u64)>;

/// Runs `jcmd PID GC.class_histogram`, which only knows the names that class files have.
fn counted_by_jvm(jdk: &Jdk, pid: u32) -> Classes {
    let mut jcmd = Command::new(jdk.home().join("bin/jcmd"));
    jcmd.arg(pid.to_string()).arg("GC.class_histogram");
    let text = String::from_utf8(run(jcmd).expect_code(0).stdout.clone()).unwrap();
    let row = |line: &str| {
        let mut words = line.split_whitespace();
        words.next()?.strip_suffix(':')?;
        let (count, bytes) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        Some((words.next()?.to_owned(), (count, bytes)))
    };
    text.lines().filter_map(row).collect()
}

fn classes(document: &Value) -> Classes {
    let row = |row: &Value| {
        let numbers = (row["count"].as_u64().unwrap(), row["bytes"].as_u64().unwrap());
        (row["type"].as_str().unwrap_or_default().to_owned(), numbers)
    };
    document["types"].as_array().unwrap().iter().map(row).collect()
}

fn assert_equal(document: &Value, of_jvm: &Classes, options: &[&str]) {
    let ours = classes(document);
    for (name, in_class_file) in [
        ("KnownHeap$Node", "KnownHeap$Node"),
        ("KnownHeap$Wide", "KnownHeap$Wide"),
        ("KnownHeap$Holder", "KnownHeap$Holder"),
        ("KnownHeap$Node[]", "[LKnownHeap$Node;"),
    ] {
        assert_eq!(ours[name], of_jvm[in_class_file], "{name} with {options:?}");
    }
    // Each request leaves a few objects behind.
    for (name, in_class_file) in [("byte[]", "[B"), ("java.lang.String", "java.lang.String")] {
        let (ours, (count, bytes)) = (ours[name], of_jvm[in_class_file]);
        assert!(ours.0.abs_diff(count) <= count / 20 + 20, "{name}: {ours:?}, {count} with {options:?}");
        assert!(ours.1.abs_diff(bytes) <= bytes / 20 + 2000, "{name}: {ours:?}, {bytes} with {options:?}");
    }
}

/// Returns the heap dumps that are left in the temporary directory.
fn leftovers() -> Vec<String> {
    let folders = fs::read_dir("/tmp").unwrap().flatten().map(|entry| entry.path());
    let ours = folders.filter(|path| path.to_string_lossy().contains("/runtap-agent-"));
    let files = ours.filter_map(|path| fs::read_dir(path).ok()).flat_map(Iterator::flatten);
    files.map(|file| file.path().display().to_string()).filter(|path| path.ends_with("heap.hprof")).collect()
}

fn heap_of(jdk: &Jdk, classes: &Path, options: &[&str]) {
    let mut java = jdk.java();
    java.args(options).arg("-cp").arg(classes).arg("KnownHeap");
    java.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut program = Program::start(java);
    program.wait_for("ready");
    let pid = program.id().to_string();
    let of_jvm = counted_by_jvm(jdk, program.own_pid());

    let quick = json(["heap", &pid, "--quick", "--format", "json"]);
    assert_eq!((&quick["format"], &quick["complete"]), (&"class-histogram".into(), &true.into()));
    assert_equal(&quick, &of_jvm, options);
    assert_eq!((&quick["references"], &quick["types"][0]["retained_bytes"]), (&Value::Null, &Value::Null));
    let report = json(["heap", &pid, "--report", "--format", "json"]);
    assert_eq!((&report["format"], &report["complete"]), (&"hprof".into(), &true.into()));
    assert_eq!(report["pid"], program.id());
    assert_equal(&report, &of_jvm, options);
    let retained = |name: &str| {
        let row = report["types"].as_array().unwrap().iter().find(|row| row["type"] == name).unwrap();
        row["retained_bytes"].as_u64().unwrap()
    };
    assert!(retained("KnownHeap$Holder") > of_jvm["KnownHeap$Node"].1);

    let folder = folder();
    let file = folder.path().join("heap.hprof");
    let summary = json(["heap", &pid, "--format", "json", "-o", file.to_str().unwrap()]);
    assert_eq!((&summary["kind"], &summary["format"]), (&"jvm".into(), &"hprof".into()));
    assert_eq!(fs::metadata(&file).unwrap().len(), summary["bytes"].as_u64().unwrap());
    let read = json(["report", file.to_str().unwrap(), "--format", "json"]);
    assert_equal(&read, &of_jvm, options);
    let snapshot = folder.path().join("a.heapsnapshot");
    json(["heap", &pid, "--format", "json", "-o", snapshot.to_str().unwrap()]);
    let text = fs::read_to_string(&snapshot).unwrap();
    let snapshot: Value = serde_json::from_str(&text).unwrap();
    assert!(snapshot["snapshot"]["node_count"].as_u64().unwrap() > 1000);
    let table = runtap(["heap", &pid, "--quick"]);
    let table = table.expect_code(0).text();
    assert!(table.contains("KnownHeap$Node") && table.contains("Roots: unknown"), "{table}");
    let path = runtap(["heap", &pid, "--report", "--path", "KnownHeap$Holder"]);
    let path = path.expect_code(0).text();
    assert!(path.contains("java.lang.Class (KnownHeap)"), "{path}");
    assert_eq!(leftovers(), [""; 0]);
}

fn each_version() -> Result<(), Skip> {
    let compiler = Jdk::with_compiler()?;
    let folder = folder();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../base/heap/tests/java/KnownHeap.java");
    compiler.compile([&source], folder.path());
    for jdk in Jdk::all()? {
        for options in [&["-Xmx64m"][..], &["-Xmx64m", "-XX:+UseSerialGC", "-XX:-UsePerfData"]] {
            heap_of(&jdk, folder.path(), options);
        }
    }
    Ok(())
}

#[test]
fn the_heap_of_a_java_program_is_what_its_machine_counts() {
    if let Err(skip) = each_version() {
        skip.report();
    }
}

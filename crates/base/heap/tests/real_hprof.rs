//! Heap dumps of real JVMs, compared with the JVM's own histogram.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use runtap_heap::hprof::{HeapDump, HprofReader};
use runtap_heap::{Dominators, RootKind, path_to_root, type_rows};
use runtap_testkit::{Jdk, Program, Skip, run};

/// Runs `jcmd PID COMMAND`.
fn jcmd(jdk: &Jdk, pid: u32, command: &[&str]) -> String {
    let mut jcmd = Command::new(jdk.home().join("bin/jcmd"));
    jcmd.arg(pid.to_string()).args(command);
    String::from_utf8(run(jcmd).expect_code(0).stdout.clone()).unwrap()
}

/// Parses lines such as `   1:   12345   987654  [B (java.base@17)`: number and bytes by class.
fn histogram(text: &str) -> BTreeMap<String, (u64, u64)> {
    let row = |line: &str| {
        let mut words = line.split_whitespace();
        words.next()?.strip_suffix(':')?;
        let (count, bytes) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        Some((words.next()?.to_owned(), (count, bytes)))
    };
    text.lines().filter_map(row).collect()
}

fn read(path: &Path) -> HeapDump {
    let mut reader = HprofReader::new();
    std::fs::read(path).unwrap().chunks(1 << 16).for_each(|piece| reader.feed(piece).unwrap());
    reader.finish()
}

fn compared(compiler: &Jdk, jdk: &Jdk, options: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/java/KnownHeap.java");
    compiler.compile([&source], folder.path());
    let mut java = jdk.java();
    java.args(options).arg("-cp").arg(folder.path()).arg("KnownHeap");
    java.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut program = Program::start(java);
    program.wait_for("ready");
    let file = folder.path().join("heap.hprof");
    jcmd(jdk, program.own_pid(), &["GC.heap_dump", file.to_str().unwrap()]);
    let expected = histogram(&jcmd(jdk, program.own_pid(), &["GC.class_histogram"]));

    let HeapDump { graph, texts } = read(&file);
    assert_eq!(graph.incomplete(), None);
    let dominators = Dominators::new(&graph);
    let rows: BTreeMap<&str, (u64, u64, u64)> = type_rows(&graph, &dominators)
        .iter()
        .map(|row| {
            (&*graph.types()[row.type_id as usize].name, (row.count, row.bytes, row.retained_bytes.unwrap()))
        })
        .collect();
    for name in ["KnownHeap$Node", "KnownHeap$Wide", "KnownHeap$Holder", "[LKnownHeap$Node;"] {
        let of_jvm = expected[name];
        let ours = match name.strip_prefix("[L") {
            Some(element) => rows[&*format!("{}[]", element.trim_end_matches(';'))],
            None => rows[name],
        };
        assert_eq!((ours.0, ours.1), of_jvm, "{name} with {options:?}");
    }
    // The two requests themselves leave objects behind, of few classes.
    let near = |name: &str, of_jvm: &str| {
        let (ours, (count, bytes)) = (rows[name], expected[of_jvm]);
        assert!(ours.0.abs_diff(count) <= count / 20 + 20, "{name}: {ours:?}, {count} with {options:?}");
        assert!(ours.1.abs_diff(bytes) <= bytes / 20 + 2000, "{name}: {ours:?}, {bytes} with {options:?}");
    };
    for (name, of_jvm) in [
        ("byte[]", "[B"),
        ("int[]", "[I"),
        ("java.lang.String", "java.lang.String"),
        ("java.lang.Object[]", "[Ljava.lang.Object;"),
        ("java.util.HashMap$Node", "java.util.HashMap$Node"),
    ] {
        near(name, of_jvm);
    }
    assert_eq!((rows["KnownHeap$Node"].0, rows["KnownHeap$Wide"].0), (900, 100));

    // The holder alone keeps the nodes alive, which are not referenced from anywhere else.
    let holder = rows["KnownHeap$Holder"];
    let inside = rows["KnownHeap$Node"].1 + rows["KnownHeap$Wide"].1 + rows["KnownHeap$Node[]"].1;
    assert!(holder.2 > holder.1 + inside, "{holder:?} retains {inside}");
    let is_holder = |object| graph.type_name(object).is_some_and(|it| it.name == "KnownHeap$Holder");
    let path = path_to_root(&graph, is_holder).unwrap();
    assert!(path.objects.iter().any(|it| graph.represented_class(*it) == Some("KnownHeap")), "{path:?}");
    assert!(!matches!(path.root.kind, RootKind::Unknown), "{path:?}");
    for (text, copies) in [("a repeated text", 50), ("zwölf × 中", 50)] {
        let found =
            texts.texts.iter().find(|it| it.text == text).unwrap_or_else(|| panic!("{text} in {texts:?}"));
        assert!(found.copies >= copies, "{found:?}");
    }
    assert!(graph.weak_references() > 0);
}

fn of_all() -> Result<(), Skip> {
    let compiler = Jdk::with_compiler()?;
    for jdk in Jdk::all()? {
        for options in
            [&["-Xmx64m"][..], &["-Xmx64m", "-XX:-UseCompressedOops"], &["-Xmx64m", "-XX:+UseSerialGC"]]
        {
            compared(&compiler, &jdk, options);
        }
    }
    Ok(())
}

#[test]
fn real_heaps_agree_with_the_histogram_of_the_jvm() {
    if let Err(skip) = of_all() {
        skip.report();
    }
}

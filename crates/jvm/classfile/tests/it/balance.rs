//! A rewritten program behaves as the original, and its entries match its ends.

use std::collections::BTreeMap;
use std::fs;
use std::process::Output;

use runtap_classfile::ClassFile;
use runtap_classfile::rewrite::{Probe, Probes, rewrite};
use runtap_testkit::{Jdk, Skip, require};

use crate::jdk;

const PROBES: Probes<'_> = Probes {
    class: "Recorder",
    entry: Some(Probe { name: "entry", line: false }),
    exit: Some(Probe { name: "exit", line: true }),
    throwing: Some(Probe { name: "throwing", line: true }),
    unwinding: Some(Probe { name: "unwinding", line: false }),
    constructing: None,
};

/// Runs the program with the classes of a folder in front of the class path.
fn run(jdk: &Jdk, folder: &str) -> Result<Output, Skip> {
    let path = format!("{folder}:{}", jdk::programs()?.display());
    Ok(jdk.java().args(["-Xverify:all", "-Xss512k", "-cp", &path, "Balance"]).output().unwrap())
}

#[test]
fn every_entry_has_one_end() {
    let programs = require!(jdk::programs());
    let folder = tempfile::tempdir().unwrap();
    let mut names = BTreeMap::new();
    for entry in fs::read_dir(programs).unwrap().map(Result::unwrap) {
        let file = entry.file_name().into_string().unwrap();
        if !file.starts_with("Balance") {
            continue;
        }
        let bytes = fs::read(entry.path()).unwrap();
        let class = ClassFile::parse(&bytes).unwrap();
        let result = rewrite(&class, &PROBES, |method| {
            let id = 1000 * i32::try_from(names.len()).unwrap();
            // The method that runs while the report is made has no end yet.
            (method.name != "main").then(|| {
                names.insert(id, format!("{}.{}{}", class.name().unwrap(), method.name, method.descriptor));
                id
            })
        });
        let result = result.unwrap();
        let abstracts = class.methods().iter().filter(|method| method.access.is_abstract()).count();
        assert_eq!(result.unchanged.len(), abstracts, "{:?}", result.unchanged);
        fs::write(folder.path().join(file), result.bytes.unwrap_or(bytes)).unwrap();
    }
    for jdk in require!(Jdk::all()) {
        let plain = require!(run(&jdk, "."));
        let traced = require!(run(&jdk, folder.path().to_str().unwrap()));
        let (plain, traced_out) =
            (String::from_utf8_lossy(&plain.stdout), String::from_utf8_lossy(&traced.stdout));
        let said = || {
            format!(
                "JDK {}:\n{plain}\n{traced_out}\n{}",
                jdk.major(),
                String::from_utf8_lossy(&traced.stderr)
            )
        };
        assert!(traced.status.success(), "{}", said());
        let (mut before, mut after) = (plain.lines(), traced_out.lines());
        for _ in 0..2 {
            assert_eq!(before.next().unwrap(), after.next().unwrap(), "{}", said());
        }
        assert_eq!(after.next(), Some("wrong null"), "{}", said());
        let mut counts = BTreeMap::new();
        let (mut lines, mut silent) = (None, Vec::new());
        for line in after {
            match line.split(' ').collect::<Vec<_>>().as_slice() {
                ["method", id, numbers @ ..] => {
                    let numbers: Vec<u64> = numbers.iter().map(|number| number.parse().unwrap()).collect();
                    counts.insert(names[&id.parse().unwrap()].as_str(), numbers);
                }
                ["silent", id, times] => silent.push((names[&id.parse().unwrap()].as_str(), *times)),
                _ => lines = line.strip_prefix("lines ").map(str::to_owned),
            }
        }
        // Entries, exits, throws, unwindings, as in the source.
        let expected: [(&str, [u64; 4]); 11] = [
            ("Balance.<clinit>()V", [1, 1, 0, 0]),
            ("Balance.loop(I)I", [2, 2, 0, 0]),
            // The innermost call throws; each of the six callers throws again after its finally.
            ("Balance.nested(I)Ljava/lang/String;", [6, 0, 7, 6]),
            ("Balance.implicit(Ljava/lang/Object;)I", [2, 2, 0, 0]),
            // Thrown again after the monitor is released.
            ("Balance.locked(Ljava/lang/Object;JD)J", [2, 1, 2, 1]),
            ("Balance.choose(ILjava/lang/String;)Ljava/lang/String;", [5, 4, 1, 1]),
            ("Balance.sneaky(Ljava/lang/Throwable;)V", [1, 0, 1, 1]),
            ("Balance$Base.<init>(I)V", [8, 6, 2, 2]),
            // Exceptions of the constructors that they call end one call of each without an event.
            ("Balance$Base.<init>(Ljava/lang/String;)V", [4, 3, 0, 0]),
            ("Balance$Derived.<init>(ZLjava/lang/Object;)V", [4, 3, 0, 0]),
            ("Balance$Shape.text()Ljava/lang/String;", [1, 1, 0, 0]),
        ];
        for (name, expected) in expected {
            assert_eq!(counts.get(name), Some(&expected.to_vec()), "{name}: {}", said());
        }
        silent.sort_unstable();
        let expected =
            ["Balance$Base.<init>(Ljava/lang/String;)V", "Balance$Derived.<init>(ZLjava/lang/Object;)V"];
        assert_eq!(silent, expected.map(|name| (name, "1")), "{}", said());
        let lines = lines.unwrap();
        assert!(lines.contains("17, ") && !lines.contains("-1"), "{lines}");
    }
}

/// A handler over code with monitors must not prevent compilation by `HotSpot`, whose compilers reject a method in which one
/// handler is reached with different monitors held.
#[test]
fn methods_with_monitors_are_still_compiled() {
    let programs = require!(jdk::programs());
    let folder = tempfile::tempdir().unwrap();
    let bytes = fs::read(programs.join("Hot.class")).unwrap();
    let class = ClassFile::parse(&bytes).unwrap();
    let probes = Probes { class: "Ticks", throwing: None, ..PROBES };
    let result = rewrite(&class, &probes, |method| (method.name != "main").then_some(1)).unwrap();
    assert_eq!((result.changed.len(), result.unchanged.len()), (3, 0));
    fs::write(folder.path().join("Hot.class"), result.bytes.unwrap()).unwrap();
    for jdk in require!(Jdk::all()) {
        let path = format!("{}:{}", folder.path().display(), programs.display());
        let flags = ["-Xverify:all", "-Xbatch", "-XX:+PrintCompilation", "-cp", &path, "Hot"];
        let ran = jdk.java().args(flags).output().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        let out = String::from_utf8_lossy(&ran.stdout);
        // `  123   45 %  b  4       Hot::block @ 5 (86 bytes)`: the compiler's level precedes the name.
        let level = |method: &str| {
            let lines =
                out.lines().filter(|line| line.contains(method) && !line.contains("made not entrant"));
            lines
                .filter_map(|line| line.split(method).next()?.split_whitespace().last()?.parse::<u8>().ok())
                .max()
        };
        assert_eq!(
            (level("Hot::block"), level("Hot::method")),
            (Some(4), Some(4)),
            "JDK {}:\n{out}",
            jdk.major()
        );
        assert!(!out.lines().any(|line| line.contains("COMPILE SKIPPED")), "JDK {}:\n{out}", jdk.major());
    }
}

//! A program that reports which of its lines run, and the coverage computed from that.
//!
//! The expected hits of each line are in comments of `tests/java/Shop.java`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{fs, process::Command};

use runtap_bytefrog_proto::Dialect;
use runtap_jvm::coverage::{
    ClassFate, Coverage, Inventory, NeverCalled, NeverOptions, Observed, Options, Patterns,
};
use runtap_testkit::{Jdk, Skip, require, run};

use crate::trace::Trace;

/// Returns the folder of the Java sources.
pub(crate) fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/java")
}

/// The compiled program.
pub(crate) struct Program {
    folder: tempfile::TempDir,
    /// The program's reports: `in`, `line` or `out`, method, descriptor, line.
    said: Vec<[String; 4]>,
}

impl Program {
    pub(crate) fn run() -> Result<Self, Skip> {
        let jdk = Jdk::with_compiler()?;
        let folder = tempfile::tempdir().unwrap();
        jdk.compile(["Shop.java", "Truth.java"].map(|name| sources().join(name)), folder.path());
        let mut java = jdk.java();
        java.arg("-cp").arg(folder.path()).arg("demo.Shop");
        let finished = run(java);
        finished.expect_code(0);
        let said = finished.text().lines().map(|line| {
            let words: Vec<String> = line.split('\t').map(str::to_owned).collect();
            words.try_into().expect("four words")
        });
        Ok(Self { said: said.collect(), folder })
    }

    pub(crate) fn inventory(&self) -> Inventory {
        let mut inventory = Inventory::default();
        for entry in fs::read_dir(self.folder.path().join("demo")).unwrap() {
            let path = entry.unwrap().path();
            inventory.add_class(&path.to_string_lossy(), &fs::read(&path).unwrap());
        }
        assert_eq!(inventory.unread, []);
        inventory
    }

    /// Returns the observations that an agent of this version would report for the run.
    pub(crate) fn observed(&self, dialect: Dialect) -> Observed {
        let mut trace = Trace::new(dialect);
        let mut stack: Vec<BTreeSet<(u32, u32)>> = Vec::new();
        for [what, method, descriptor, line] in &self.said {
            let signature = format!("{method};1;{descriptor}");
            match what.as_str() {
                "in" => {
                    trace.enter(&signature);
                    stack.push(BTreeSet::new());
                }
                "line" => {
                    let line = line.parse().unwrap();
                    stack.last_mut().unwrap().insert((line, line));
                }
                "out" => trace.leave(&signature, &stack.pop().unwrap()),
                _ => panic!("{what}"),
            }
        }
        assert!(stack.is_empty() && !self.said.is_empty());
        let mut observed = Observed::of(&trace.report());
        for class in ["demo/Shop", "demo/Shop$Name", "demo/Shop$Util"] {
            observed.class(class, ClassFate::Traced);
        }
        observed
    }

    pub(crate) fn coverage(&self, dialect: Dialect) -> Coverage {
        let patterns = Patterns::new(&[], &["demo/Truth$"]).unwrap();
        Coverage::of(
            &self.observed(dialect),
            Some(&self.inventory()),
            &Options { patterns, ..Options::default() },
        )
    }
}

/// Returns the expected hits from the comments of `Shop.java`, for each line with code.
fn expected() -> BTreeMap<u32, u64> {
    let text = fs::read_to_string(sources().join("Shop.java")).unwrap();
    let mut expected = BTreeMap::new();
    for (number, line) in (1..).zip(text.lines()) {
        let Some((_, comment)) = line.rsplit_once("// ") else { continue };
        let hits = comment.strip_prefix("ran ").map_or(0, |hits| hits.parse().unwrap());
        assert!(hits > 0 || comment == "missed", "{comment}");
        expected.insert(number, hits);
    }
    assert!(expected.len() > 30);
    expected
}

#[test]
fn coverage_is_what_the_program_did() {
    let program = require!(Program::run());
    for dialect in [Dialect::V3, Dialect::V4, Dialect::F1] {
        let coverage = program.coverage(dialect);
        let lines = coverage.packages["demo"].sources()["Shop.java"].lines();
        if dialect == Dialect::F1 {
            // A line is reported once, so the number of its runs is unknown.
            let ran = |lines: &BTreeMap<u32, u64>| {
                lines.iter().map(|(n, hits)| (*n, *hits > 0)).collect::<Vec<_>>()
            };
            assert_eq!(ran(&lines), ran(&expected()));
        } else {
            assert_eq!(lines, expected());
        }
        assert_eq!(coverage.packages["demo"].sources().len(), 1);
        let notes = &coverage.notes;
        assert_eq!((notes.foreign_classes, notes.foreign_methods, notes.foreign_lines), (0, 0, 0));
        assert_eq!((notes.blind_methods, notes.assumed_sources, notes.excluded_classes), (0, 0, 1));
    }
}

#[test]
fn methods_are_those_of_the_source() {
    let program = require!(Program::run());
    let coverage = program.coverage(Dialect::V1);
    assert!(!coverage.has_lines);
    let classes = &coverage.packages["demo"].classes;
    let found: Vec<String> = classes
        .iter()
        .flat_map(|(name, class)| class.methods.iter().map(move |m| format!("{name}.{} {}", m.name, m.calls)))
        .collect();
    let expected = [
        "demo/Shop.<init> 2",
        "demo/Shop.sell 3",
        "demo/Shop.restock 0",
        "demo/Shop.twice 1",
        "demo/Shop.lambda$twice$0 2",
        "demo/Shop.never 0",
        "demo/Shop.lambda$never$1 0",
        "demo/Shop.main 1",
        "demo/Shop$Greeter.greet 0",
        "demo/Shop$Kind.<clinit> 0",
        "demo/Shop$Name.<init> 2",
        "demo/Shop$Name.compareTo 1",
        "demo/Shop$Util.half 1",
        "demo/Unused.<init> 0",
        "demo/Unused.get 0",
    ];
    // The order of lambdas on one line with their method is that of their names.
    let sorted = |mut rows: Vec<String>| {
        rows.sort();
        rows
    };
    assert_eq!(sorted(found), sorted(expected.map(str::to_owned).to_vec()));
}

#[test]
fn the_rest_was_never_called() {
    let program = require!(Program::run());
    let inventory = program.inventory();
    let patterns = Patterns::new(&[], &["demo/Truth$"]).unwrap();
    let options = NeverOptions { patterns, compiler_methods: false };
    let observed = program.observed(Dialect::V4);
    let never = NeverCalled::of(&observed, &inventory, &options);
    let rows: Vec<String> = never
        .classes
        .iter()
        .map(|class| {
            let methods: Vec<&str> = class.methods.iter().map(|method| &*method.name).collect();
            format!("{} {:?} {}", class.name, class.state, methods.join(" "))
        })
        .collect();
    let expected = [
        "demo/Shop Called restock never lambda$never$1",
        "demo/Shop$Greeter NotLoaded greet",
        "demo/Shop$Kind NotLoaded <clinit>",
        "demo/Unused NotLoaded <init> get",
    ];
    assert_eq!(rows, expected);
    let total = never.total();
    assert_eq!((total.classes, total.all_classes, total.methods, total.all_methods), (3, 6, 7, 15));
    // aload_0, dup, getfield, bipush, iadd, putfield, return.
    assert_eq!(never.classes[0].methods[0].code, 1 + 1 + 3 + 2 + 1 + 3 + 1);
    assert_eq!(never.caveats, []);
}

/// In records, methods that the compiler adds are not counted, and methods written by hand are.
#[test]
fn of_records_and_enums_only_what_is_written_counts() {
    let jdk = require!(Jdk::with_compiler());
    if jdk.major() < 17 {
        return Skip::because("the JDK has no records").report();
    }
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("R.java");
    let text = "
        import java.lang.annotation.*;
        record R(int x, String name) { public String name() { return name + x; } int twice() { return x * 2; } }
        record S(int x) { public String toString() { return \"S\" + x; } }
        enum E { A { int n() { return 1; } }, B; private final int k; E() { k = 3; } int n() { return k; } }
        @interface MyGenerated { }
        class G { @MyGenerated int made() { return 1; } int written() { return 2; } }
        @MyGenerated class H { int made() { return 1; } }";
    fs::write(&source, text).unwrap();
    let mut javac = Command::new(jdk.home().join("bin/javac"));
    javac.args(["-g", "-d"]).arg(folder.path()).arg(&source);
    run(javac).expect_code(0);
    let mut inventory = Inventory::default();
    for entry in fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "class") {
            inventory.add_class(&path.to_string_lossy(), &fs::read(&path).unwrap());
        }
    }
    let coverage = Coverage::of(&Observed::default(), Some(&inventory), &Options::default());
    let found: BTreeSet<String> = coverage.packages[""]
        .classes
        .iter()
        .flat_map(|(name, class)| class.methods.iter().map(move |method| format!("{name}.{}", method.name)))
        .collect();
    let expected = [
        "E$1.<init>",
        "E$1.n",
        "E.<clinit>",
        "E.<init>",
        "E.n",
        "G.<init>",
        "G.made",
        "G.written",
        "H.<init>",
        "H.made",
        "R.<init>",
        "R.name",
        "R.twice",
        "S.<init>",
        "S.toString",
    ];
    // The default retention of an annotation is the class file.
    let expected: BTreeSet<String> = expected
        .into_iter()
        .filter(|name| !name.starts_with("H.") && *name != "G.made")
        .map(str::to_owned)
        .collect();
    assert_eq!(found, expected);
}

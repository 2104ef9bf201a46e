//! All classes of the JDKs, and those of a large library, are loaded and linked with the agent in a JVM that verifies all
//! classes: a class that can be linked without the agent can be linked with it, and none is lost. A test run covers a tenth;
//! `cargo xtask sweep jvm-programs` covers all.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use runtap_bytefrog::hq::{AgentId, Event};
use runtap_bytefrog_proto::f1::{ALREADY_RUNNING, strip_loaded_before};
use runtap_bytefrog_proto::{ClassOutcome, Configuration, Extension, JavaString, RecordMode, WhenSlow};
use runtap_testkit::{Finished, Jdk, Running, Skip, require};

use crate::common::{Listening, library, programs};
use crate::oracle::{LONG, jars};

/// Classes that are never traced, with their nested classes; `filter.rs` has the reasons.
const NEVER: &[&str] = &[
    "java/lang/Object",
    "java/lang/Thread",
    "java/lang/VirtualThread",
    "jdk/internal/misc/Unsafe",
    "sun/misc/Unsafe",
];

/// Classes that the JVM does not allow to be changed; since JDK 21.
const FIXED: &[&str] = &["jdk/internal/vm/Continuation"];

fn never(name: &str) -> bool {
    NEVER.iter().any(|one| {
        name.strip_prefix(one)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('$') || rest.starts_with('_'))
    })
}

fn modules(jdk: &Jdk, options: &[String], words: &[&str], jars: &[&str]) -> Result<Command, Skip> {
    let mut java = jdk.java();
    let path = std::iter::once(programs()?.to_str().unwrap()).chain(jars.iter().copied());
    java.args(options).args(["-Xverify:all", "-XX:-UsePerfData", "--add-modules=ALL-SYSTEM", "-cp"]);
    java.arg(std::env::join_paths(path).unwrap()).args(words);
    Ok(java)
}

/// A part of all classes: its number, and the number of parts.
type Part = (usize, usize);

/// Lists the classes of a part, from all modules or from jars.
fn walk(jdk: &Jdk, folder: &Path, (part, parts): Part, jars: &[&str]) -> Result<String, Skip> {
    let list = folder.join("list").to_str().unwrap().to_owned();
    let (step, offset) = (parts.to_string(), part.to_string());
    let mut words = vec!["demo.Modules", "walk", &list, &step, &offset];
    words.extend(jars);
    ended(modules(jdk, &[], &words, jars)?);
    Ok(list)
}

fn ended(java: Command) -> Finished {
    let finished = Running::start(java).wait_within(LONG);
    finished.expect_code(0);
    finished
}

/// Returns a configuration that records all classes, of boot loaders and others.
fn everything(record: RecordMode) -> Configuration {
    Configuration {
        inclusions: vec![JavaString::from(".*")],
        extension: Extension { record, when_slow: WhenSlow::Drop, ..Extension::default() },
        ..Configuration::default()
    }
}

fn agent(port: u16) -> String {
    format!("-agentpath:{}=host=127.0.0.1,port={port},boot=yes", library().display())
}

/// Returns the names of classes with an outcome.
fn told(hq: &Listening, outcome: ClassOutcome) -> BTreeSet<String> {
    let heard = hq.heard.lock().unwrap();
    let names = heard.iter().filter_map(|(agent, event)| match event {
        Event::Class { outcome: is, name } if *agent == Some(AgentId(0)) && *is == outcome => {
            // Some classes that the JVM itself needs are loaded before they can be traced.
            Some(strip_loaded_before(&name.to_string()).0.into_owned())
        }
        _ => None,
    });
    names.collect()
}

/// Links each class of a part without and with the agent.
#[expect(clippy::print_stdout, reason = "how much was tried is what the sweep is read for")]
fn link(jdk: &Jdk, record: RecordMode, part: Part, jars: &[&str], at_least: usize) -> Result<(), Skip> {
    let folder = tempfile::tempdir().unwrap();
    let (without, with) = (folder.path().join("without"), folder.path().join("with"));
    let list = walk(jdk, folder.path(), part, jars)?;
    let command = |options: &[String], file: &Path| {
        modules(jdk, options, &["demo.Modules", "link", &list, file.to_str().unwrap()], jars)
    };
    let plain = ended(command(&[], &without)?);
    let hq = Listening::with(everything(record));
    let traced = ended(command(&[agent(hq.hq.address().port())], &with)?);
    let who = format!("JDK {}, {record:?}", jdk.major());
    assert_eq!(traced.stdout, plain.stdout, "{who}: {traced}");
    // The JVM lists incubating modules in no fixed order.
    let said = |finished: &Finished| {
        let mut words: Vec<String> = finished.stderr.split([' ', ',', '\n']).map(str::to_owned).collect();
        words.sort();
        words
    };
    assert_eq!(said(&traced), said(&plain), "{who}");
    let results = fs::read_to_string(&with).unwrap();
    assert!(results == fs::read_to_string(&without).unwrap(), "{who}: {traced}");
    let report = hq.report();
    assert_eq!((report.findings, report.counters.orphans), (Vec::new(), 0), "{who}");
    let failed = told(&hq, ClassOutcome::Failed);
    let fixed = |told: &&String| {
        FIXED.iter().any(|name| **told == format!("{name} (the JVM does not allow changing it)"))
    };
    // Threads of the JVM itself run forever: their classes are changed, and the earlier calls of those methods are unknown.
    let runs = |told: &&String| {
        let reasons = told.split_once(" (").map_or("", |(_, reasons)| reasons.trim_end_matches(')'));
        !reasons.is_empty() && reasons.split("; ").all(|reason| reason.ends_with(ALREADY_RUNNING))
    };
    let broken: Vec<&String> = failed.iter().filter(|told| !fixed(told) && !runs(told)).collect();
    assert_eq!(broken, Vec::<&String>::new(), "{who}");
    let (transformed, ignored) = (told(&hq, ClassOutcome::Transformed), told(&hq, ClassOutcome::Ignored));
    let wrongly: Vec<&String> = ignored.iter().filter(|name| !never(name)).collect();
    assert_eq!(wrongly, Vec::<&String>::new(), "{who}: ignored");
    let linked: Vec<&str> = results.lines().filter_map(|line| line.strip_prefix("linked ")).collect();
    let lost: Vec<&&str> = linked
        .iter()
        .filter(|name| !transformed.contains(**name) && !never(name) && !FIXED.contains(name))
        .collect();
    assert_eq!(lost, Vec::<&&str>::new(), "{who}: nothing was said of them");
    println!(
        "| {who} | {} linked | {} transformed | {}",
        linked.len(),
        transformed.len(),
        plain.text().trim()
    );
    assert!(linked.len() >= at_least, "{who}: {plain}");
    Ok(())
}

#[test]
fn a_tenth_of_all_modules() {
    for (n, jdk) in require!(Jdk::all()).iter().enumerate() {
        let record = [RecordMode::Full, RecordMode::Counts, RecordMode::Coverage, RecordMode::Full][n % 4];
        require!(link(jdk, record, (jdk.major() as usize % 10, 10), &[], 1500));
    }
}

#[test]
#[ignore = "takes minutes"]
fn all_classes_of_all_modules_and_of_a_big_library() {
    let library = require!(jars(&["eclipse-jdt-core"]));
    let library: Vec<&str> = library.iter().map(|path| path.to_str().unwrap()).collect();
    for jdk in require!(Jdk::all()) {
        require!(link(&jdk, RecordMode::Full, (0, 1), &[], 15_000));
        // Other classes need libraries that are missing, and can't be linked without the agent either.
        require!(link(&jdk, RecordMode::Full, (0, 1), &library, 1500));
    }
}

/// A Java agent sees the bytes of classes before and after this agent: classes that are not traced stay unchanged.
#[test]
fn what_is_not_traced_is_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let watch = require!(crate::real_others::java_agent(folder.path(), "demo.Watch"));
    let file = folder.path().join("linked");
    let none = Configuration { exclusions: vec![JavaString::from(".*")], ..Configuration::default() };
    let some = Configuration { inclusions: vec![JavaString::from("^demo/Counts")], ..none.clone() };
    for jdk in require!(Jdk::all()) {
        let list = require!(walk(&jdk, folder.path(), (3, 40), &[]));
        for (configuration, changed) in [
            (&none, "[]"),
            (
                &some,
                "[demo/Counts, demo/Counts$1, demo/Counts$Base, demo/Counts$Derived, demo/Counts$Node, demo/Counts$Shape]",
            ),
        ] {
            let hq = Listening::with(configuration.clone());
            let options = [agent(hq.hq.address().port()), watch.clone()];
            let main = ["demo.Watch", "link", &list, file.to_str().unwrap()];
            let finished = ended(require!(modules(&jdk, &options, &main, &[])));
            let said = |what: &str| finished.text().lines().find_map(|line| line.strip_prefix(what)).unwrap();
            assert_eq!(said("changed "), changed, "JDK {}: {finished}", jdk.major());
            assert!(said("same ").parse::<u32>().unwrap() > 500, "JDK {}: {finished}", jdk.major());
        }
    }
}

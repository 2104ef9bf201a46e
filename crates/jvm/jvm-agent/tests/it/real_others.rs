//! Other tools that change classes, and classes that are unloaded: Java agents that redefine and retransform traced classes,
//! before and after this agent, and class loaders that are collected.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use runtap_bytefrog::hq::AgentId;
use runtap_bytefrog_proto::{Command as HqCommand, RecordMode};
use runtap_testkit::{HARD_LIMIT, Jdk, JvmCounter, Skip, eventually, require, run};

use crate::common::{Listening, demo, library, programs};
use crate::oracle::{Load, words};

/// Returns the option that loads a class of the programs as a Java agent. The jar contains only a manifest; the class
/// is on the class path.
pub(crate) fn java_agent(folder: &Path, class: &str) -> Result<String, Skip> {
    let (manifest, jar) = (folder.join(format!("{class}.manifest")), folder.join(format!("{class}.jar")));
    let text = format!("Premain-Class: {class}\nCan-Retransform-Classes: true\nCan-Redefine-Classes: true\n");
    fs::write(&manifest, text).unwrap();
    let mut tool = Command::new(Jdk::with_compiler()?.home().join("bin/jar"));
    tool.arg("cfm").arg(&jar).arg(&manifest);
    run(tool).expect_code(0);
    Ok(format!("-javaagent:{}", jar.display()))
}

/// A program that executes commands.
struct Told {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Told {
    fn start(mut java: Command) -> Self {
        let mut child = java.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, input, output }
    }

    fn ask(&mut self, command: &str) -> String {
        writeln!(self.input, "{command}").unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn end(self) {
        let Self { mut child, input, .. } = self;
        drop(input);
        assert!(child.wait().unwrap().success());
    }
}

fn entries(hq: &Listening, method: &str) -> (u64, u64, u64) {
    let report = hq.hq.report(AgentId(0)).unwrap();
    let found = report.methods.iter().find(|one| one.signature.starts_with(method));
    found.map_or((0, 0, 0), |one| (one.entries, one.exits, one.bubbles))
}

fn redefined(jdk: &Jdk, options: &[&String]) -> Result<Told, Skip> {
    let mut java = jdk.java();
    java.args(options).arg("-Xverify:all").arg("-cp").arg(programs()?).arg("demo.Redefined");
    Ok(Told::start(java))
}

/// The commands for the program, and the number of rounds called by then.
const STEPS: &[(&str, u64)] = &[
    ("call", 1),
    ("retransform other", 1),
    ("call", 2),
    ("retransform", 2),
    ("call", 3),
    ("redefine third", 3),
    ("call", 4),
    ("retransform sixth", 4),
    ("call", 5),
    ("retransform", 5),
    ("call", 6),
];

/// The program's output equals that without this agent. It depends on the JVM: JDK 11 and 17 retransform an earlier
/// transformed class from its first bytes, even if it was redefined since; 21 does not.
#[test]
fn another_agent_redefines_and_retransforms() {
    let folder = tempfile::tempdir().unwrap();
    let other = require!(java_agent(folder.path(), "demo.Redefined"));
    for jdk in require!(Jdk::all()) {
        let mut program = require!(redefined(&jdk, &[&other]));
        let answers: Vec<String> = STEPS.iter().map(|(command, _)| program.ask(command)).collect();
        let after = program.ask("call");
        program.end();
        assert_eq!(
            (&*answers[0], &*answers[2], &*answers[6]),
            ("first first 10", "other other 20", "third third 40")
        );
        for before in [true, false] {
            let hq = Listening::with(demo());
            let port = hq.hq.address().port();
            let ours = format!("-agentpath:{}=host=127.0.0.1,port={port}", library().display());
            let order = if before { [&other, &ours] } else { [&ours, &other] };
            let mut program = require!(redefined(&jdk, &order));
            let (say, fail) = ("demo/Redefined$Body.say;", "demo/Redefined$Body.fail;");
            let seen = |rounds: u64| {
                // Each round calls itself ten times, and fails once.
                eventually("it is told", || {
                    (entries(&hq, say) == (10 * rounds, 10 * rounds, 0)).then_some(())
                });
                eventually("it is told", || (entries(&hq, fail) == (rounds, 0, rounds)).then_some(()));
            };
            for ((command, rounds), answer) in STEPS.iter().zip(&answers) {
                assert_eq!(&program.ask(command), answer, "JDK {} {before}: {command}", jdk.major());
                seen(*rounds);
            }
            // The class is restored to the version that the other agent has made.
            hq.hq.command(AgentId(0), HqCommand::Stop).unwrap();
            let report = hq.report();
            assert_eq!((report.findings, report.counters.orphans), (Vec::new(), 0), "JDK {}", jdk.major());
            assert_eq!(program.ask("call"), after, "JDK {} {before}: stopped", jdk.major());
            assert_eq!(program.ask("redefine fifth"), "redefined");
            assert_eq!(program.ask("call"), "fifth fifth 80", "JDK {} {before}", jdk.major());
            seen(6);
            program.end();
        }
    }
}

/// When the trace ends, a class is restored to the version that another agent has made; on JDK 11 and 17, to its
/// first version, because of the JVM defect described above, which affects every agent that retransforms classes.
#[test]
fn what_was_redefined_and_the_end_of_the_trace() {
    let folder = tempfile::tempdir().unwrap();
    let other = require!(java_agent(folder.path(), "demo.Redefined"));
    for jdk in require!(Jdk::all()) {
        let hq = Listening::with(demo());
        let port = hq.hq.address().port();
        let ours = format!("-agentpath:{}=host=127.0.0.1,port={port}", library().display());
        let mut program = require!(redefined(&jdk, &[&ours, &other]));
        assert_eq!(program.ask("call"), "first first 10");
        assert_eq!(program.ask("redefine third"), "redefined");
        assert_eq!(program.ask("call"), "third third 20", "JDK {}", jdk.major());
        hq.hq.command(AgentId(0), HqCommand::Stop).unwrap();
        hq.report();
        let kept = if jdk.major() >= 21 { "third third 30" } else { "first first 30" };
        assert_eq!(program.ask("call"), kept, "JDK {}", jdk.major());
        program.end();
    }
}

/// Three hundred classes of one name, in two variants, by loaders that see only `java.*`: the calls of each method are kept
/// apart, and no method needs a second id.
#[test]
fn classes_are_unloaded() {
    let folder = tempfile::tempdir().unwrap();
    let counter = require!(JvmCounter::build(folder.path()));
    let work = folder.path().join("work");
    for jdk in require!(Jdk::all()) {
        let load = Load {
            name: "demo.Plugs",
            class_path: vec![require!(programs()).to_owned()],
            options: Vec::new(),
            main: "demo.Plugs",
            arguments: words("300 20"),
            files: Vec::new(),
            packages: &["demo/"],
            limit: HARD_LIMIT,
        };
        let plain = load.plain(&jdk, &work);
        assert_eq!(plain.finished.text(), "alive 0\n", "JDK {}", jdk.major());
        for record in [RecordMode::Full, RecordMode::Counts] {
            let opinions = load.judged(&jdk, &work, &counter, &plain, record);
            let (compared, wrong) = opinions.differences();
            assert!(wrong.is_empty(), "JDK {} {record:?}: {wrong:#?}", jdk.major());
            for variant in ["workA", "workB"] {
                let (calls, thrown) = opinions.calls("demo/Plugs$Plug", variant);
                assert_eq!((calls, thrown), (150 * 40, 150 * 20), "JDK {} {record:?}", jdk.major());
            }
            // A plug has a constructor and two methods; half of them have another name for one of these.
            assert_eq!(opinions.signatures("demo/Plugs$Plug."), 4, "JDK {} {record:?}", jdk.major());
            assert!(compared.methods > 8, "{compared:?}");
        }
    }
}

//! Line coverage beside JaCoCo's: the Eclipse compiler as Debian packages it, under our agent and under theirs.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use runtap_testkit::{Jdk, Skip, require, run};

use crate::common::{command, folder};

/// Debian's JaCoCo, in jars of their own.
const JACOCO: [&str; 6] =
    ["org.jacoco.agent.rt", "org.jacoco.core", "asm", "asm-tree", "asm-commons", "asm-analysis"];
const SUBJECT: &str = "eclipse-jdt-core";
const MAIN: &str = "org.eclipse.jdt.internal.compiler.batch.Main";
/// JaCoCo 0.8.6 can't read the classes of later ones.
const NEWEST: u32 = 17;

const SOURCE: &str = "import java.util.*;
class Shape<T> {
    List<T> all = new ArrayList<>();
    int part(int of) { try { return all.size() / of; } catch (ArithmeticException e) { return 0; } finally { all = null; } }
    enum Kind { ONE, TWO { int size() { return 2; } }; int size() { return 1; } }
    public static void main(String... words) {
        Runnable told = () -> System.out.println(words.length);
        for (Kind kind : Kind.values()) switch (kind) { case ONE: told.run(); break; default: continue; }
        String text = \"a\" + words.length + Kind.TWO.size();
        if (text.isEmpty()) throw new IllegalStateException(text);
    }
}
";

/// Whether a line ran, by its file and number.
type Lines = BTreeMap<(String, u32), bool>;

fn jar(name: &str) -> Result<PathBuf, Skip> {
    let path = Path::new("/usr/share/java").join(format!("{name}.jar"));
    if path.is_file() { Ok(path) } else { Err(Skip::because(format!("{} is not here", path.display()))) }
}

fn jdk() -> Result<Jdk, Skip> {
    let usable = |jdk: &Jdk| jdk.major() <= NEWEST && jdk.home().join("bin/javac").is_file();
    let none = || Skip::because(format!("there is no JDK up to {NEWEST} with a compiler (javac)"));
    Jdk::all()?.into_iter().rfind(usable).ok_or_else(none)
}

/// The arguments of a Java machine that compiles the source.
fn compiler(subject: &Path, folder: &Path) -> Vec<String> {
    let words = ["-proc:none", "-source", "11", "-target", "11", "-g", "-d"].map(str::to_owned);
    let start = ["-cp".to_owned(), subject.display().to_string(), MAIN.to_owned()];
    let paths = ["out", "Shape.java"].map(|name| folder.join(name).display().to_string());
    start.into_iter().chain(words).chain(paths).collect()
}

fn jacoco(jdk: &Jdk, subject: &Path, folder: &Path) -> Result<Lines, Skip> {
    let jars = JACOCO.iter().map(|name| jar(name)).collect::<Result<Vec<_>, _>>()?;
    let joined = |by: &str| jars.iter().map(|jar| jar.display().to_string()).collect::<Vec<_>>().join(by);
    // Debian's package has no agent, only its classes.
    // A line of a manifest has 72 bytes; those that go on begin with a blank.
    let premain = "Premain-Class: org.jacoco.agent.rt.internal.PreMain";
    let attributes = format!("{premain}\nClass-Path: {}\n", joined(" \n  "));
    let manifest = folder.join("manifest");
    fs::write(&manifest, attributes).unwrap();
    let mut pack = Command::new(jdk.home().join("bin/jar"));
    pack.current_dir(folder).args(["cfm", "agent.jar", "manifest"]);
    run(pack).expect_code(0);
    let mut java = jdk.java();
    java.arg(format!(
        "-javaagent:{0}/agent.jar=destfile={0}/jacoco.exec,includes=org.eclipse.*",
        folder.display()
    ));
    java.args(compiler(subject, folder));
    run(java).expect_code(0);
    let source = folder.join("Told.java");
    fs::write(&source, include_str!("java/Told.java")).unwrap();
    let mut javac = Command::new(jdk.home().join("bin/javac"));
    javac.arg("-cp").arg(joined(":")).arg("-d").arg(folder).arg(source);
    run(javac).expect_code(0);
    let mut java = jdk.java();
    java.arg("-cp").arg(format!("{}:{}", joined(":"), folder.display())).arg("Told");
    java.arg(folder.join("jacoco.exec")).arg(subject);
    let told = run(java);
    let line = |line: &str| {
        let mut words = line.split(' ');
        let mut word = || words.next().unwrap_or_default();
        ((word().to_owned(), word().parse().unwrap()), word() == "1")
    };
    Ok(told.expect_code(0).text().lines().map(line).collect())
}

fn ours(jdk: &Jdk, subject: &Path, folder: &Path) -> Lines {
    let mut traced = command(["jvm", "run", "--mode", "coverage", "--include", "^org/eclipse/", "--record"]);
    traced.arg(folder.join("run.dir")).arg("--").arg(jdk.home().join("bin/java"));
    traced.args(compiler(subject, folder));
    run(traced).expect_code(0);
    let mut report = command(["jvm", "report", "--coverage", "lcov=-"]);
    report.arg(folder.join("run.dir")).arg("--classes").arg(subject);
    let mut lines = Lines::new();
    let mut file = "";
    let written = run(report);
    for line in written.expect_code(0).text().lines() {
        if let Some(name) = line.strip_prefix("SF:") {
            file = name;
        } else if let Some((number, visits)) = line.strip_prefix("DA:").and_then(|rest| rest.split_once(','))
        {
            lines.insert((file.to_owned(), number.parse().unwrap()), visits != "0");
        }
    }
    lines
}

#[test]
fn lines_are_told_as_jacoco_tells_them() {
    let jdk = require!(jdk());
    let subject = require!(jar(SUBJECT));
    let folder = folder();
    let folder = folder.path();
    fs::write(folder.join("Shape.java"), SOURCE).unwrap();
    let theirs = require!(jacoco(&jdk, &subject, folder));
    let ours = ours(&jdk, &subject, folder);
    assert!(theirs.len() > 200_000, "{} lines", theirs.len());
    let ran = theirs.values().filter(|ran| **ran).count();
    assert!(ran > 10_000, "{ran} lines ran");
    let unlike = |theirs_ran: bool| -> Vec<_> {
        let like = |place| ours.get(place).is_some_and(|ran| *ran == theirs_ran);
        theirs
            .iter()
            .filter(|(place, ran)| **ran == theirs_ran && !like(place))
            .map(|(place, _)| place)
            .collect()
    };
    // A line that ran for them did for us.
    assert_eq!(unlike(true), Vec::<&(String, u32)>::new());
    // JaCoCo misses lines that an exception left before the end of their block; runtap counts a line from its first
    // instruction.
    let left = unlike(false);
    assert!(left.iter().all(|place| ours.contains_key(*place)), "lines that are not known here: {left:?}");
    assert!(left.len() <= ran / 1_000, "{} of {ran}: {left:?}", left.len());
    // They leave out instructions, and so lines that have no others; the ends of `try` with resources, most of them.
    let more = ours.keys().filter(|place| !theirs.contains_key(place)).count();
    assert!(more <= theirs.len() / 400, "{more} lines that only we know");
}

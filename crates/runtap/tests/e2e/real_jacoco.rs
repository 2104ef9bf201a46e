//! Line coverage compared with JaCoCo: third-party programs, under runtap's agent and under JaCoCo's. Each test run
//! uses the Eclipse compiler as packaged by Debian; `cargo xtask sweep coverage` also uses javac and Lucene.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use runtap_testkit::{Jdk, Skip, require, run};

use crate::common::{command, folder};

/// Debian's JaCoCo, which consists of several jars.
const JACOCO: [&str; 6] =
    ["org.jacoco.agent.rt", "org.jacoco.core", "asm", "asm-tree", "asm-commons", "asm-analysis"];
/// JaCoCo 0.8.6 can't read class files of later versions.
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

/// A program whose lines are compared.
struct TestedProgram {
    /// The compared classes: a jar, or a folder of classes.
    classes: PathBuf,
    /// The package folder of its classes, as in their names.
    package: &'static str,
    /// The arguments of a JVM that runs it.
    arguments: Vec<String>,
    /// Minimum numbers of known lines, and of lines that ran.
    lines: (usize, usize),
    /// Maximum number of lines that only runtap knows.
    more: usize,
}

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

fn ecj(folder: &Path) -> Result<TestedProgram, Skip> {
    let classes = jar("eclipse-jdt-core")?;
    let main = "org.eclipse.jdt.internal.compiler.batch.Main";
    let start = ["-cp", classes.to_str().unwrap(), main, "-proc:none", "-source", "11", "-target", "11"];
    let arguments = compiling(&start, folder);
    Ok(TestedProgram { classes, package: "org/eclipse/", arguments, lines: (200_000, 10_000), more: 600 })
}

/// Returns the JDK's own compiler, as its module is before it becomes part of an image.
fn javac(jdk: &Jdk, folder: &Path) -> Result<TestedProgram, Skip> {
    let module = jdk.home().join("jmods/jdk.compiler.jmod");
    if !module.is_file() {
        return Err(Skip::because(format!("{} is not here", module.display())));
    }
    let taken = folder.join("module");
    let mut extract = Command::new(jdk.home().join("bin/jmod"));
    extract.arg("extract").arg("--dir").arg(&taken).arg(module);
    run(extract).expect_code(0);
    // A separate class path: JaCoCo's agent is on that of the system, and would be instrumented.
    let start =
        ["-m", "jdk.compiler/com.sun.tools.javac.Main", "-proc:none", "-cp", folder.to_str().unwrap()];
    let arguments = compiling(&start, folder);
    let package = "com/sun/tools/javac/";
    let classes = taken.join("classes").join(package);
    Ok(TestedProgram { classes, package, arguments, lines: (30_000, 8_000), more: 660 })
}

fn compiling(start: &[&str], folder: &Path) -> Vec<String> {
    fs::write(folder.join("Shape.java"), SOURCE).unwrap();
    let paths = ["out", "Shape.java"].map(|name| folder.join(name).display().to_string());
    let start = start.iter().copied().chain(["-g", "-d"]).map(str::to_owned);
    start.chain(paths).collect()
}

/// Indexes, merges, deletes and searches.
fn lucene(jdk: &Jdk, folder: &Path) -> Result<TestedProgram, Skip> {
    // Without the jar's classes for later versions of Java, which have equal names and which JaCoCo rejects.
    let unpacked = folder.join("lucene");
    fs::create_dir(&unpacked).unwrap();
    let mut unpack = Command::new(jdk.home().join("bin/jar"));
    unpack.current_dir(&unpacked).arg("xf").arg(jar("lucene-core-8.7.0")?);
    run(unpack).expect_code(0);
    let source = folder.join("Search.java");
    fs::write(&source, include_str!("java/Search.java")).unwrap();
    let mut javac = Command::new(jdk.home().join("bin/javac"));
    javac.arg("-cp").arg(&unpacked).arg("-d").arg(folder).arg(source);
    run(javac).expect_code(0);
    let path = format!("{}:{}", unpacked.display(), folder.display());
    // Without a seed, the ids of the index are random.
    let arguments = ["-Dtests.seed=1", "-cp", &path, "Search"].map(str::to_owned).into();
    let classes = unpacked.join("org");
    Ok(TestedProgram { classes, package: "org/apache/lucene/", arguments, lines: (60_000, 8_000), more: 340 })
}

fn jacoco(jdk: &Jdk, subject: &TestedProgram, folder: &Path) -> Result<Lines, Skip> {
    let jars = JACOCO.iter().map(|name| jar(name)).collect::<Result<Vec<_>, _>>()?;
    let joined = |by: &str| jars.iter().map(|jar| jar.display().to_string()).collect::<Vec<_>>().join(by);
    // Debian's package has no agent, only its classes. A line of a manifest has 72 bytes; continuation lines begin with
    // a space.
    let premain = "Premain-Class: org.jacoco.agent.rt.internal.PreMain";
    let attributes = format!("{premain}\nClass-Path: {}\n", joined(" \n  "));
    let manifest = folder.join("manifest");
    fs::write(&manifest, attributes).unwrap();
    let mut pack = Command::new(jdk.home().join("bin/jar"));
    pack.current_dir(folder).args(["cfm", "agent.jar", "manifest"]);
    run(pack).expect_code(0);
    let mut java = jdk.java();
    let included = subject.package.replace('/', ".");
    java.arg(format!(
        "-javaagent:{0}/agent.jar=destfile={0}/jacoco.exec,includes={included}*",
        folder.display()
    ));
    java.args(&subject.arguments);
    run(java).expect_code(0);
    let source = folder.join("Told.java");
    fs::write(&source, include_str!("java/Told.java")).unwrap();
    let mut javac = Command::new(jdk.home().join("bin/javac"));
    javac.arg("-cp").arg(joined(":")).arg("-d").arg(folder).arg(source);
    run(javac).expect_code(0);
    let mut java = jdk.java();
    java.arg("-cp").arg(format!("{}:{}", joined(":"), folder.display())).arg("Told");
    java.arg(folder.join("jacoco.exec")).arg(&subject.classes);
    let told = run(java);
    let line = |line: &str| {
        let mut words = line.split(' ');
        let mut word = || words.next().unwrap_or_default();
        ((word().to_owned(), word().parse().unwrap()), word() == "1")
    };
    Ok(told.expect_code(0).text().lines().map(line).collect())
}

fn ours(jdk: &Jdk, subject: &TestedProgram, folder: &Path) -> Lines {
    // Both runs start without a folder for classes.
    let _ = fs::remove_dir_all(folder.join("out"));
    let included = format!("^{}", subject.package);
    let mut traced = command(["jvm", "run", "--mode", "coverage", "--include", &included, "--record"]);
    traced.arg(folder.join("run.dir")).arg("--").arg(jdk.home().join("bin/java"));
    traced.args(&subject.arguments);
    run(traced).expect_code(0);
    let mut report = command(["jvm", "report", "--coverage", "lcov=-"]);
    report.arg(folder.join("run.dir")).arg("--classes").arg(&subject.classes);
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

fn compare(subject: &TestedProgram, theirs: &Lines, ours: &Lines) {
    let ran = theirs.values().filter(|ran| **ran).count();
    assert!(theirs.len() > subject.lines.0 && ran > subject.lines.1, "{} lines, {ran} ran", theirs.len());
    let unlike = |theirs_ran: bool| -> Vec<_> {
        let like = |place| ours.get(place).is_some_and(|ran| *ran == theirs_ran);
        theirs
            .iter()
            .filter(|(place, ran)| **ran == theirs_ran && !like(place))
            .map(|(place, _)| place)
            .collect()
    };
    // Every line that ran for JaCoCo ran for runtap.
    assert_eq!(unlike(true), Vec::<&(String, u32)>::new());
    // JaCoCo misses lines that an exception left before the end of their block; runtap counts a line from its first
    // instruction.
    let left = unlike(false);
    assert!(left.iter().all(|place| ours.contains_key(*place)), "lines that are not known here: {left:?}");
    assert!(left.len() <= ran / 1_000, "{} of {ran}: {left:?}", left.len());
    // JaCoCo filters out instructions, and so lines that have no others, most of them ends of `try` with resources. It
    // also omits sealed classes of javac.
    let more = ours.keys().filter(|place| !theirs.contains_key(place)).count();
    assert!(more <= subject.more, "{more} lines that only runtap has");
    show(&format!(
        "{}: {} lines, {ran} of them ran; {} only for runtap; {more} that only runtap has",
        subject.package,
        theirs.len(),
        left.len()
    ));
}

#[expect(clippy::print_stdout, reason = "the figures of the table in docs/jvm-coverage.md")]
fn show(text: &str) {
    println!("{text}");
}

fn told_alike(subject: impl FnOnce(&Jdk, &Path) -> Result<TestedProgram, Skip>) -> Result<(), Skip> {
    let jdk = jdk()?;
    let folder = folder();
    let folder = folder.path();
    let subject = subject(&jdk, folder)?;
    let theirs = jacoco(&jdk, &subject, folder)?;
    compare(&subject, &theirs, &ours(&jdk, &subject, folder));
    Ok(())
}

#[test]
fn line_coverage_agrees_with_jacoco() {
    require!(told_alike(|_, folder| ecj(folder)));
}

#[test]
#[ignore = "takes a minute: `cargo xtask sweep coverage`"]
fn line_coverage_of_javac_agrees_with_jacoco() {
    require!(told_alike(javac));
}

#[test]
#[ignore = "takes a minute: `cargo xtask sweep coverage`"]
fn line_coverage_of_lucene_agrees_with_jacoco() {
    require!(told_alike(lucene));
}

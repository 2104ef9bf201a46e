//! `runtap jvm report` with coverage files and lists of what was never called, from recordings of the original agents.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;

use runtap_testkit::{Finished, Jdk, Skip, installed, require, run, shared_data};

/// A class that the recordings call by this name, and a class that they never call.
const SOURCE: &str = "package demo;
public class Counts {
    static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
    static void dead() { System.out.println(\"never\"); }
    public static void main(String[] arguments) { fib(3); }
}
class Cold { int x() { return 1; } int y() { return 2; } }
";

#[track_caller]
fn report(folder: &Path, arguments: impl IntoIterator<Item: AsRef<OsStr>>) -> Finished {
    let mut command = Command::new(env!("CARGO_BIN_EXE_runtap"));
    command.current_dir(folder).args(["jvm", "report"]).args(arguments);
    run(command)
}

/// A folder with copies of the recordings and the program in `app.jar` and `classes`.
fn folder() -> Result<tempfile::TempDir, Skip> {
    let jdk = Jdk::with_compiler()?;
    let folder = tempfile::tempdir().unwrap();
    for scenario in ["v1_basic", "v4_basic"] {
        let to = folder.path().join(scenario);
        fs::create_dir(&to).unwrap();
        for stream in ["ctl.a2h", "data0.a2h"] {
            for kind in ["bin", "chunks.tsv"] {
                let name = format!("{scenario}.{stream}.{kind}");
                fs::write(to.join(&name), shared_data(format!("bytefrog/{name}"))?).unwrap();
            }
        }
    }
    let source = folder.path().join("src/demo/Counts.java");
    fs::create_dir_all(source.parent().unwrap()).unwrap();
    fs::write(&source, SOURCE).unwrap();
    jdk.compile([&source], &folder.path().join("classes"));
    let mut jar = Command::new(jdk.home().join("bin/jar"));
    jar.current_dir(folder.path()).args(["cf", "app.jar", "-C", "classes", "demo"]);
    run(jar).expect_code(0);
    Ok(folder)
}

#[test]
fn dead_code_as_text_and_json() {
    let folder = require!(folder());
    let text = report(folder.path(), ["v1_basic", "--never-called", "app.jar"]);
    let text = text.expect_code(0).text();
    assert!(
        text.starts_with("never called: 5 of 7 methods, 23 of 52 bytes of code, 1 of 2 classes as a whole\n"),
        "{text}"
    );
    assert!(text.contains("demo.Counts.dead():4") && text.contains("demo.Cold\n"), "{text}");
    assert!(!text.contains("demo.Counts.fib"), "{text}");
    let json = report(folder.path(), ["v1_basic", "--never-called", "classes", "--format", "json"]);
    let json = json.expect_code(0).json();
    assert_eq!(
        (&json["schema"], &json["coverage"]),
        (&"runtap.jvm.coverage/1".into(), &serde_json::Value::Null)
    );
    let never = &json["never_called"];
    assert_eq!(never["total"]["never_called_methods"], 5);
    let states: Vec<_> =
        never["classes"].as_array().unwrap().iter().map(|class| (&class["class"], &class["state"])).collect();
    assert!(states.contains(&(&"demo/Cold".into(), &"not_loaded".into())), "{states:?}");
    assert!(never["caveats"][0].as_str().unwrap().contains("other versions"), "{never}");
    // Nothing of the only class that is left.
    let none = report(folder.path(), ["v1_basic", "--never-called", "app.jar", "--exclude", ".*"]);
    assert!(none.expect_code(0).text().starts_with("never called: 0 of 0 methods"), "{none}");
    // As in 'jvm run': included alone, and nothing else.
    let one = report(folder.path(), ["v1_basic", "--never-called", "app.jar", "--include", "^demo/Cold"]);
    assert!(one.expect_code(0).text().contains("1 of 1 class as a whole"), "{one}");
}

#[test]
fn coverage_files_beside_the_recording_and_where_they_are_wanted() {
    let folder = require!(folder());
    let written = report(
        folder.path(),
        [
            "v4_basic",
            "--coverage",
            "lcov",
            "--coverage",
            "jacoco=out.xml",
            "--classes",
            "app.jar",
            "--sources",
            "src",
        ],
    );
    let text = written.expect_code(0).text();
    assert!(text.starts_with("1 of 2 classes, 2 of 7 methods and "), "{text}");
    written.says("classes called and in none of the jars").says("another version");
    let tracefile = fs::read_to_string(folder.path().join("v4_basic.info")).unwrap();
    assert!(tracefile.contains("SF:src/demo/Counts.java\n"), "{tracefile}");
    assert!(
        tracefile.contains("FNDA:1973,Counts.fib(I)I\n") && tracefile.contains("FNDA:0,Counts.dead()V\n")
    );
    assert!(fs::read_to_string(folder.path().join("out.xml")).unwrap().contains("<class name=\"demo/Cold\""));
    // Two runs, of which one has told of no lines: calls are added up.
    let both = report(
        folder.path(),
        ["v4_basic", "--or", "v1_basic", "--coverage", "lcov=-", "--classes", "classes"],
    );
    assert!(both.expect_code(0).text().contains("FNDA:3946,Counts.fib(I)I\n"), "{both}");
    // Version 1 has no lines, and says so.
    let v1 = report(folder.path(), ["v1_basic", "--coverage", "cobertura=v1.xml", "--format", "json"]);
    let json = v1.expect_code(0).says("no lines").json();
    assert_eq!(
        (&json["coverage"]["lines"], &json["coverage"]["methods"]["missed"]),
        (&serde_json::Value::Null, &0.into())
    );
    assert_eq!(json["coverage"]["files"][0]["format"], "cobertura");
}

/// The JVMs of a test run are agents of one recording: what they have called is added up, and they are read one by one.
#[test]
fn agents_of_a_recording_are_one_report() {
    const AGENTS: u64 = 100;
    let folder = require!(folder());
    let many = folder.path().join("many");
    fs::create_dir(&many).unwrap();
    for number in 0..AGENTS {
        for stream in ["ctl.a2h", "data0.a2h"] {
            for kind in ["bin", "chunks.tsv"] {
                let from = folder.path().join("v4_basic").join(format!("v4_basic.{stream}.{kind}"));
                fs::copy(from, many.join(format!("agent{number}.{stream}.{kind}"))).unwrap();
            }
        }
    }
    let rows = |arguments: &[&str]| report(folder.path(), arguments).expect_code(0).json();
    let one = rows(&["v4_basic", "methods", "--format", "json"]);
    let all = rows(&["many", "methods", "--merge-agents", "--format", "json"]);
    assert_eq!(
        (all["schema"].as_str(), all["agents"].as_array().unwrap().len()),
        (Some("runtap.jvm.methods/1"), 1)
    );
    let methods = |document: &serde_json::Value| document["agents"][0]["methods"].as_array().unwrap().clone();
    let (one, all) = (methods(&one), methods(&all));
    assert_eq!(one.len(), all.len());
    for method in &one {
        let sum = all.iter().find(|other| other["signature"] == method["signature"]).unwrap();
        for number in ["entries", "exits", "exception_exits", "total_ns", "self_ns", "without_end"] {
            let times = method[number].as_u64().map(|number| number * AGENTS);
            assert_eq!(sum[number].as_u64(), times, "{number} of {method}");
        }
    }
    let whole = rows(&["many", "--merge-agents", "--format", "json"]);
    assert_eq!(
        (&whole["agents"][0]["agents_count"], &whole["agents"][1]),
        (&AGENTS.into(), &serde_json::Value::Null)
    );
    let text = report(folder.path(), ["many", "--merge-agents"]);
    assert!(text.expect_code(0).text().starts_with("100 agents together\n"), "{text}");
    // Coverage and lists of what was never called have all agents anyway.
    let lcov = report(folder.path(), ["many", "--coverage", "lcov=-", "--classes", "classes"]);
    assert!(lcov.expect_code(0).text().contains("FNDA:197300,Counts.fib(I)I\n"), "{lcov}");
    report(folder.path(), ["many", "tree", "--merge-agents"])
        .expect_code(2)
        .says("--merge-agents applies only to");
}

/// Directories of sources by their absolute paths, of which one does not exist: the files that are found have absolute paths.
#[test]
fn sources_are_found_by_absolute_paths() {
    let folder = require!(folder());
    let source = folder.path().join("src");
    let elsewhere = tempfile::tempdir().unwrap();
    let recording = folder.path().join("v4_basic");
    let mut command = Command::new(env!("CARGO_BIN_EXE_runtap"));
    command.current_dir(elsewhere.path()).args(["jvm", "report"]).arg(&recording);
    command
        .args(["--coverage", "lcov=out.info", "--coverage", "cobertura=out.xml", "--sources"])
        .arg("/there/is/none");
    command.arg("--sources").arg(&source).arg("--classes").arg(folder.path().join("classes"));
    run(command).expect_code(0);
    let lcov = fs::read_to_string(elsewhere.path().join("out.info")).unwrap();
    assert!(lcov.contains(&format!("SF:{}/demo/Counts.java\n", source.display())), "{lcov}");
    let cobertura = fs::read_to_string(elsewhere.path().join("out.xml")).unwrap();
    assert!(cobertura.contains(&format!("<source>{}</source>", source.display())), "{cobertura}");
    assert!(cobertura.contains("filename=\"demo/Counts.java\""), "{cobertura}");
}

/// Other tools read the counts of the agent from files that are made from a recording of an original agent.
#[test]
fn other_readers_find_the_counts_of_the_agent() {
    let folder = tempfile::tempdir().unwrap();
    require!(shared_data("bytefrog/v4_basic.json"));
    let recording = runtap_testkit::shared_dir().expect("it was read").join("data/bytefrog/v4_basic");
    let recording = recording.to_str().unwrap();
    let files = ["--coverage", "lcov=v4.info", "--coverage", "cobertura=v4.xml"];
    let written = report(folder.path(), [&[recording][..], &files].concat());
    let text = written.expect_code(0).text();
    assert!(text.starts_with("4 of 4 classes, 20 of 20 methods and 30 of 30 lines ran\n"), "{text}");
    let mut lcov = require!(installed("lcov"));
    lcov.current_dir(folder.path()).args(["--summary", "v4.info"]);
    let said = run(lcov);
    let text = format!("{}{}", said.expect_code(0).text(), said.stderr);
    assert!(text.contains("(30 of 30 lines)") && text.contains("(20 of 20 functions)"), "{text}");
    assert!(!text.contains("WARNING"), "{text}");
    let mut pycobertura = require!(installed("pycobertura"));
    pycobertura.current_dir(folder.path()).args(["show", "--format", "json", "v4.xml"]);
    let shown = run(pycobertura).expect_code(0).json();
    assert_eq!((&shown["total"]["Stmts"], &shown["total"]["Miss"]), (&30.into(), &0.into()), "{shown}");
    let files: Vec<_> =
        shown["files"].as_array().unwrap().iter().map(|file| (&file["Filename"], &file["Stmts"])).collect();
    assert_eq!(
        files,
        [(&"demo/Counts.java".into(), &28.into()), (&"demo/Worker.java".into(), &2.into())],
        "{shown}"
    );
}

#[test]
fn mistakes_are_reported_before_a_file_is_written() {
    let folder = require!(folder());
    let wrong: [(&[&str], &str); 6] = [
        (&["v1_basic", "--coverage", "emma"], "not a coverage format; valid values: lcov, jacoco, cobertura"),
        (
            &["v1_basic", "--coverage", "lcov=a", "--coverage", "jacoco=a"],
            "two coverage files would have the same path",
        ),
        (&["v1_basic", "--coverage", "lcov", "--exclude", "(?=a)"], "invalid pattern"),
        (&["v1_basic", "--coverage", "lcov", "--classes", "nothing.jar"], "can't read nothing.jar"),
        (&["v1_basic", "--never-called", "src"], "src has no classes"),
        (&["v1_basic", "tree", "--never-called", "app.jar"], "cannot be used with"),
    ];
    for (arguments, why) in wrong {
        report(folder.path(), arguments).expect_code(2).says(why);
    }
    let mut names: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["app.jar", "classes", "src", "v1_basic", "v4_basic"]);
}

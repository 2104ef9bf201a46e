//! Programs in multi-release jars, under JVMs of several releases.

use std::fs;
use std::path::Path;
use std::process::Command;

use runtap_testkit::{Jdk, Skip, require, run};
use serde_json::Value;

use crate::common::{command, folder};

const MAIN: &str =
    "package shop; public class Main { public static void main(String[] words) { Price.of(3); } }";
const PRICE: &str =
    "package shop; class Price { static int of(int n) { return n; } static int old() { return 1; } }";
/// The replacement of the class from Java 17 on.
const NEWER: &str = "package shop;

class Price { static int of(int n) { return n + 1; } static int young() { return 2; } }";

/// Returns the methods of `shop.Price` that were never called, and the caveats.
fn never_called(jar: &Path, recordings: &[&Path]) -> (Vec<String>, Vec<String>) {
    let [first, others @ ..] = recordings else { panic!("no recording") };
    let mut report =
        command(["jvm", "report", "--format", "json", "--include", "^shop/Price", "--never-called"]);
    report.arg(jar).arg(first);
    for other in others {
        report.arg("--or").arg(other);
    }
    let never = run(report).expect_code(0).json()["never_called"].clone();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let methods =
        never["classes"].as_array().unwrap().iter().flat_map(|class| class["methods"].as_array().unwrap());
    let names = methods.map(|method| text(&method["name"])).filter(|name| name != "<init>");
    (names.collect(), never["caveats"].as_array().unwrap().iter().map(text).collect())
}

#[test]
fn the_classes_of_a_multi_release_jar_are_those_that_the_jvm_had() {
    require!(multi_release());
}

fn multi_release() -> Result<(), Skip> {
    let compiler = Jdk::with_compiler()?;
    let folder = folder();
    let compile = |into: &str, sources: &[(&str, &str)]| {
        let from = folder.path().join(format!("{into}-sources"));
        fs::create_dir(&from).unwrap();
        let paths = sources.iter().map(|(name, source)| {
            let path = from.join(name);
            fs::write(&path, source).unwrap();
            path
        });
        compiler.compile(paths.collect::<Vec<_>>(), &folder.path().join(into));
    };
    compile("base", &[("Main.java", MAIN), ("Price.java", PRICE)]);
    compile("newer", &[("Price.java", NEWER)]);
    let jar = folder.path().join("shop.jar");
    let mut pack = Command::new(compiler.home().join("bin/jar"));
    pack.current_dir(folder.path()).arg("--create").arg("--file").arg(&jar);
    pack.args(["-C", "base", ".", "--release", "17", "-C", "newer", "."]);
    run(pack).expect_code(0);
    let mut recordings = Vec::new();
    for jdk in Jdk::all()? {
        let recording = folder.path().join(format!("jdk{}", jdk.major()));
        let mut traced = command(["jvm", "run", "--include", "^shop/", "--mode", "coverage", "--record"]);
        traced.arg(&recording).arg("--").arg(jdk.java().get_program());
        traced.arg("-cp").arg(&jar).arg("shop.Main");
        run(traced).expect_code(0);
        let (methods, caveats) = never_called(&jar, &[&recording]);
        let expected = if jdk.major() < 17 { "old" } else { "young" };
        assert_eq!((methods, caveats), (vec![expected.to_owned()], Vec::new()), "JDK {}", jdk.major());
        recordings.push((jdk.major(), recording));
    }
    // The other class differs from the common one.
    let of = |wanted: fn(u32) -> bool| recordings.iter().find(|(major, _)| wanted(*major));
    if let (Some((_, older)), Some((_, newer))) = (of(|major| major < 17), of(|major| major >= 17)) {
        let (methods, caveats) = never_called(&jar, &[older, newer]);
        assert_eq!(methods, ["young"]);
        let [caveat] = &caveats[..] else { panic!("{caveats:?}") };
        assert!(
            caveat.starts_with("1 classes of multi-release JAR files differ between releases of Java"),
            "{caveat}"
        );
    }
    Ok(())
}

const SHIFTED: &str = "package shop; public class Main {

 public static void main(String[] words) { sold(); }
 static void sold() {
  int left = 1;
  left--;
 }
}";
const GIVEN: &str = "package shop; public class Main {
 public static void main(String[] words) {
  bought();
 }
 static void bought() {
  int more = 1;
 }
}";

#[test]
fn lines_are_not_those_of_another_version_of_the_class() {
    require!(other_version());
}

fn other_version() -> Result<(), Skip> {
    let compiler = Jdk::with_compiler()?;
    let folder = folder();
    for (into, source) in [("ran", SHIFTED), ("given", GIVEN)] {
        let path = folder.path().join(format!("{into}-sources/Main.java"));
        fs::create_dir(path.parent().unwrap()).unwrap();
        fs::write(&path, source).unwrap();
        compiler.compile([&path], &folder.path().join(into));
    }
    let mut traced = command(["jvm", "run", "--include", "^shop/", "--mode", "coverage", "--record", "r"]);
    traced.current_dir(folder.path()).arg("--").arg(compiler.java().get_program());
    traced.args(["-cp", "ran", "shop.Main"]);
    run(traced).expect_code(0);
    let report = |classes: &str| {
        let mut report = command(["jvm", "report", "r", "--coverage", "lcov=c.info", "--classes", classes]);
        report.current_dir(folder.path());
        let said = run(report);
        let text = said.expect_code(0).text().to_owned();
        (text, said.stderr, fs::read_to_string(folder.path().join("c.info")).unwrap())
    };
    let (text, notes, file) = report("ran");
    assert!(text.starts_with("1 of 1 class, 2 of 3 methods and 4 of 5 lines ran\n"), "{text}");
    assert!(!notes.contains("another version") && file.contains("DA:6,1\n"), "{notes}{file}");
    let (text, notes, file) = report("given");
    assert!(text.starts_with("1 of 1 class, 1 of 3 methods ran; nothing is known of lines\n"), "{text}");
    assert!(notes.contains("1 class of which another version ran"), "{notes}");
    assert!(!notes.contains("have told of no lines") && !file.contains("\nDA:"), "{notes}{file}");
    Ok(())
}

//! Rewritten classes are linked and used by real virtual machines that verify all classes.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Output;

use runtap_classfile::assemble::{ClassBuilder, CodeBuilder};
use runtap_classfile::code::Opcode;
use runtap_classfile::jar;
use runtap_classfile::rewrite::{Lines, Probe, Probes, Reason, rewrite, rewrite_lines};
use runtap_classfile::{AccessFlags, ClassFile, Version};
use runtap_testkit::{Jdk, Skip, require};

use crate::jdk::{Found, Programs as _};

/// The probes, which belong to a class in the tested module, in a package that is exported to all.
const PROBES: Probes<'_> = Probes {
    class: "java/lang/RuntapProbe",
    entry: Some(Probe { name: "entry", line: false }),
    exit: Some(Probe { name: "exit", line: true }),
    throwing: Some(Probe { name: "throwing", line: true }),
    unwinding: Some(Probe { name: "unwinding", line: false }),
    constructing: None,
};

/// The probes of coverage, without lines: a part of [`PROBES`].
const ENTRIES: Probes<'_> = Probes { exit: None, throwing: None, unwinding: None, ..PROBES };

/// Returns a class whose methods count their calls.
fn counting_probes() -> Vec<u8> {
    let (name, public_static) = (PROBES.class, AccessFlags::PUBLIC | AccessFlags::STATIC);
    let mut class =
        ClassBuilder::new(Version { major: 52, minor: 0 }, AccessFlags::PUBLIC, name, "java/lang/Object");
    let methods = [
        ("entry", "(I)V"),
        ("line", "(I)V"),
        ("exit", "(II)V"),
        ("throwing", "(Ljava/lang/Throwable;II)V"),
        ("unwinding", "(Ljava/lang/Throwable;I)V"),
    ];
    for (method, descriptor) in methods {
        class.field(public_static, method, "J");
        let field = class.constants().field(name, method, "J");
        let mut code = CodeBuilder::new(4, 3);
        code.constant(Opcode::GETSTATIC, field).op(Opcode::LCONST_1).op(Opcode::LADD);
        code.constant(Opcode::PUTSTATIC, field).op(Opcode::RETURN);
        class.method(public_static, method, descriptor, Some(&code)).unwrap();
    }
    class.finish().unwrap()
}

/// The results for a set of classes.
#[derive(Debug, Default)]
struct Tally {
    methods: usize,
    reasons: Vec<(String, Reason)>,
}

/// Writes the rewritten classes to a folder for each module, and the list of their names.
fn write_all<'f>(
    classes: impl Iterator<Item = &'f Found>,
    folder: &Path,
    with_lines: bool,
) -> (Tally, Vec<String>) {
    let (mut tally, mut names) = (Tally::default(), Vec::new());
    for found in classes {
        let class = ClassFile::parse(&found.bytes).unwrap();
        assert_eq!(rewrite(&class, &PROBES, |_| None).unwrap().bytes, None);
        // Ids of each encoded length: one, two and three bytes of code, and constants.
        let id = |number: usize| Some([3, 100, 30_000, 70_000 + number as i32][number % 4]);
        let result = if with_lines {
            let mut of_line = |_, line: u16| id(usize::from(line));
            let lines = Lines { name: "line", id: &mut of_line };
            rewrite_lines(&class, &ENTRIES, lines, |method| id(method.number))
        } else {
            rewrite(&class, &PROBES, |method| id(method.number))
        };
        let result = result.unwrap();
        let without_lines = result.without_lines.into_iter();
        tally.reasons.extend(
            without_lines.map(|method| (format!("lines of {} {}", found.path, method.number), method.reason)),
        );
        tally.methods += result.changed.len();
        let reasons = result
            .unchanged
            .into_iter()
            .filter(|unchanged| !matches!(unchanged.reason, Reason::NoCode | Reason::EmptyFinalizer));
        tally.reasons.extend(
            reasons.map(|unchanged| (format!("{} {}", found.path, unchanged.number), unchanged.reason)),
        );
        let Some(bytes) = result.bytes else { continue };
        let rewritten = ClassFile::parse(&bytes).unwrap_or_else(|error| panic!("{}: {error}", found.path));
        assert_eq!(rewritten.encode().as_ref(), Ok(&bytes), "{}", found.path);
        let path = folder.join(&found.path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
        names.push(found.path.clone());
    }
    (tally, names)
}

/// Returns the output of `Link`, after checking that all classes were linked.
fn linked(jdk: &Jdk, ran: &Output, classes: usize) -> String {
    let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "JDK {}: {}\n{out}\n{err}", jdk.major(), ran.status);
    let wrong: Vec<&str> = out.lines().filter(|line| !line.starts_with("linked ")).collect();
    assert!(wrong.is_empty(), "JDK {}: {} of {classes}:\n{}", jdk.major(), wrong.len(), wrong.join("\n"));
    out.into_owned()
}

#[expect(clippy::print_stdout, reason = "how much was tried is what the sweep is read for")]
/// Runs a virtual machine with the rewritten classes in place of its own, and links them.
fn link<'f>(
    jdk: &Jdk,
    classes: impl Iterator<Item = &'f Found>,
    at_least: usize,
    with_lines: bool,
) -> Result<(), Skip> {
    let folder = tempfile::tempdir().unwrap();
    let (tally, names) = write_all(classes, folder.path(), with_lines);
    let mut modules: Vec<&str> = names.iter().map(|name| name.split_once('/').unwrap().0).collect();
    modules.sort_unstable();
    modules.dedup();
    let probe = folder.path().join("java.base").join(PROBES.class).with_extension("class");
    fs::create_dir_all(probe.parent().unwrap()).unwrap();
    fs::write(probe, counting_probes()).unwrap();
    let list = folder.path().join("list");
    fs::write(&list, names.join("\n")).unwrap();

    let mut options: Vec<String> = vec!["-Xverify:all".into(), "-XX:-CreateCoredumpOnCrash".into()];
    for module in
        modules.iter().copied().chain(["java.base"].into_iter().filter(|_| !modules.contains(&"java.base")))
    {
        options.push(format!("--patch-module={module}={}", folder.path().join(module).display()));
    }
    options.push(format!("--add-modules={}", modules.join(",")));
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let ran = jdk.program("Link", &options, &[list.to_str().unwrap()])?;
    let out = linked(jdk, &ran, names.len());
    println!("JDK {}: {} classes, {} methods, {}", jdk.major(), names.len(), tally.methods, out.trim());
    assert!(tally.reasons.is_empty(), "{:#?}", tally.reasons);
    assert!(names.len() >= at_least, "{}", names.len());
    Ok(())
}

#[test]
fn a_tenth_of_java_base_is_accepted_and_used() {
    for (n, jdk) in require!(Jdk::all()).iter().enumerate() {
        let classes = require!(jdk.classes(&["java.base"]));
        require!(link(jdk, classes.iter().skip(n).step_by(10), 400, false));
    }
}

#[test]
fn a_tenth_of_java_base_with_probes_of_lines() {
    for (n, jdk) in require!(Jdk::all()).iter().enumerate() {
        let classes = require!(jdk.classes(&["java.base"]));
        require!(link(jdk, classes.iter().skip(n + 4).step_by(10), 400, true));
    }
}

#[test]
#[ignore = "takes minutes"]
fn all_classes_of_all_jdks_are_accepted_and_used() {
    for jdk in require!(Jdk::all()) {
        let classes = require!(jdk.classes(&[]));
        require!(link(&jdk, classes.iter(), 10_000, false));
    }
}

/// Libraries of the machine (Debian's `lib*-java`): other compilers, older versions, shrunk and shaded code.
#[test]
#[ignore = "takes minutes"]
fn all_classes_of_the_machines_jars_are_accepted() {
    let Ok(folder) = fs::read_dir("/usr/share/java") else {
        return Skip::because("there are no jars in /usr/share/java").report();
    };
    let mut files: Vec<_> = folder.filter_map(|entry| entry.unwrap().path().canonicalize().ok()).collect();
    files.sort();
    files.dedup();
    let mut classes: BTreeMap<String, Found> = BTreeMap::new();
    let mut unread = Vec::new();
    for bytes in files.iter().filter_map(|file| fs::read(file).ok()) {
        let found =
            jar::for_each_class(&bytes, &jar::Options { release: 11, ..Default::default() }, |_, bytes| {
                let class = ClassFile::parse(bytes)?;
                let path = format!("-/{}.class", class.name()?);
                // Module and package descriptors are not classes, and the programs of the tests have no package.
                if path.contains("-info") {
                    return Ok(());
                }
                assert!(class.encode().is_ok_and(|written| written == bytes), "{path}");
                classes.entry(path.clone()).or_insert_with(|| Found { path, bytes: bytes.to_vec() });
                Ok(())
            });
        // Not all files there are jars.
        unread.extend(found.into_iter().flatten());
    }
    assert!(unread.is_empty(), "{unread:#?}");
    for jdk in require!(Jdk::all()) {
        let folder = tempfile::tempdir().unwrap();
        let (tally, names) = write_all(classes.values(), folder.path(), false);
        let list = folder.path().join("list");
        fs::write(&list, names.join("\n")).unwrap();
        let probes = folder.path().join("probes");
        let file = probes.join(PROBES.class).with_extension("class");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, counting_probes()).unwrap();
        // All jars follow on the class path, for the classes that were not rewritten.
        let path: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
        let path = format!("-Xbootclasspath/a:{}:{}", folder.path().join("-").display(), path.join(":"));
        let patch = format!("--patch-module=java.base={}", probes.display());
        let ran = require!(jdk.program("Link", &["-Xverify:all", &path, &patch], &[list.to_str().unwrap()]));
        let out = linked(&jdk, &ran, names.len());
        println!(
            "JDK {}: {} classes, {} methods, {}",
            jdk.major(),
            names.len(),
            tally.methods,
            out.lines().last().unwrap()
        );
        assert!(tally.reasons.is_empty(), "{:#?}", tally.reasons);
    }
}

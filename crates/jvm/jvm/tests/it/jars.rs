//! Inventories of jars.

use std::fs;
use std::process::Command;

use runtap_classfile::assemble::{ClassBuilder, CodeBuilder};
use runtap_classfile::code::Opcode;
use runtap_classfile::jar::Options;
use runtap_classfile::{AccessFlags, Version};
use runtap_jvm::coverage::{Coverage, Format, Inventory, Observed, Options as CoverageOptions, WriteOptions};
use runtap_testkit::{Jdk, require, run};

fn class(name: &str, line: u16) -> Vec<u8> {
    class_of(name, line, None)
}

fn class_of(name: &str, line: u16, source: Option<&str>) -> Vec<u8> {
    let version = Version { major: 52, minor: 0 };
    let mut class = ClassBuilder::new(version, AccessFlags::PUBLIC, name, "java/lang/Object");
    let mut code = CodeBuilder::new(1, 1);
    code.line(line).op(Opcode::RETURN);
    class.method(AccessFlags::PUBLIC, "run", "()V", Some(&code)).unwrap();
    class.method(AccessFlags::PUBLIC | AccessFlags::ABSTRACT, "shape", "()V", None).unwrap();
    if let Some(source) = source {
        class.source_file(source);
    }
    class.finish().unwrap()
}

#[test]
fn the_first_class_of_a_name_stays() {
    let mut inventory = Inventory::default();
    inventory.add_class("first/a/A.class", &class("a/A", 7));
    inventory.add_class("second/a/A.class", &class("a/A", 9));
    inventory.add_class("a/Broken.class", &class("a/B", 1)[..40]);
    assert_eq!((inventory.classes.len(), inventory.duplicates), (1, 1));
    let found = &inventory.classes["a/A"];
    assert_eq!(found.path, "first/a/A.class");
    assert_eq!(found.methods.len(), 1, "abstract ones have no code");
    assert_eq!((found.methods[0].first_line(), found.methods[0].code), (Some(7), 1));
    assert_eq!(inventory.unread.len(), 1);
    assert_eq!(inventory.unread[0].path, "a/Broken.class");
}

#[test]
fn jars_are_read_with_their_label() {
    let jdk = require!(Jdk::with_compiler());
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("a")).unwrap();
    fs::write(folder.path().join("a/A.class"), class("a/A", 7)).unwrap();
    fs::write(folder.path().join("a/B.class"), b"no class").unwrap();
    let mut jar = Command::new(jdk.home().join("bin/jar"));
    jar.current_dir(folder.path()).args(["cf", "x.jar", "a"]);
    run(jar).expect_code(0);
    let mut inventory = Inventory::default();
    let bytes = fs::read(folder.path().join("x.jar")).unwrap();
    inventory.add_jar("x.jar", &bytes, &Options::default()).unwrap();
    assert_eq!(inventory.classes["a/A"].path, "x.jar!/a/A.class");
    assert_eq!(inventory.unread[0].path, "x.jar!/a/B.class");
    assert!(inventory.add_jar("y.jar", b"no jar", &Options::default()).is_err());
}

/// The source and the name in a class file are passed to readers that publish them.
#[test]
fn class_files_name_no_file_outside_of_the_sources() {
    let mut inventory = Inventory::default();
    for (name, source) in [
        ("a/Root", "/etc/passwd"),
        ("a/Up", "../../../etc/shadow"),
        ("a/Back", "..\\..\\etc\\group"),
        ("a/Dots", ".."),
        ("a/Drive", "C:hosts"),
        ("a/Slash", "etc/"),
        ("../../etc/Class", "X.java"),
        ("/etc/Absolute", "Y.java"),
    ] {
        inventory.add_class(name, &class_of(name, 3, Some(source)));
    }
    let sources = |name: &str| inventory.classes[name].source_file.clone();
    assert_eq!(sources("a/Root").as_deref(), Some("passwd"));
    assert_eq!(sources("a/Up").as_deref(), Some("shadow"));
    assert_eq!(sources("a/Back").as_deref(), Some("group"));
    for none in ["a/Dots", "a/Drive", "a/Slash"] {
        assert_eq!(sources(none), None, "{none}");
    }
    let options = CoverageOptions { entry_lines: true, ..CoverageOptions::default() };
    let coverage = Coverage::of(&Observed::default(), Some(&inventory), &options);
    let roots = ["src".to_owned()];
    for format in Format::ALL {
        let mut bytes = Vec::new();
        format
            .write(&coverage, &mut bytes, &WriteOptions { roots: &roots, ..WriteOptions::default() })
            .unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let paths: Vec<&str> = match format {
            Format::Lcov => text.lines().filter_map(|line| line.strip_prefix("SF:")).collect(),
            Format::Jacoco => ["<package name=\"", "<sourcefile name=\"", "sourcefilename=\""]
                .iter()
                .flat_map(|before| text.split(before).skip(1))
                .filter_map(|rest| rest.split('"').next())
                .collect(),
            _ => text.split("filename=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect(),
        };
        assert!(paths.len() >= 8, "{text}");
        for path in paths {
            let leads_out = path.starts_with('/') || path.split(['/', '\\']).any(|part| part == "..");
            assert!(!leads_out, "{}: {path}", format.name());
        }
    }
}

/// A class that only newer releases of Java load is not counted as loaded in all runs.
#[test]
fn releases_of_runs_decide_about_multi_release_jars() {
    let jdk = require!(Jdk::with_compiler());
    let folder = tempfile::tempdir().unwrap();
    for (path, line) in [("base/a/A.class", 1), ("base/a/B.class", 1), ("newer/a/B.class", 4)] {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let name = path.file_stem().unwrap().to_str().unwrap();
        fs::write(&path, class(&format!("a/{name}"), line)).unwrap();
    }
    let mut jar = Command::new(jdk.home().join("bin/jar"));
    jar.current_dir(folder.path()).args(["--create", "--file", "x.jar", "-C", "base", "."]);
    jar.args(["--release", "17", "-C", "newer", "."]);
    run(jar).expect_code(0);
    let bytes = fs::read(folder.path().join("x.jar")).unwrap();
    for (versions, line, uncertain) in [
        (&[Some("11.0.21+9")][..], 1, 0),
        (&[Some("17.0.13+11"), Some("21+35")], 4, 0),
        (&[Some("17.0.13+11"), Some("25.392-b08")], 4, 1),
        (&[Some("11.0.21+9"), None], 1, 0),
        (&[Some("17.0.13+11"), None], 4, 1),
        (&[None], 4, 1),
    ] {
        let mut observed = Observed::default();
        for version in versions {
            let mut run = Observed::default();
            run.releases.add(*version);
            observed.add(run);
        }
        let mut inventory = Inventory::default();
        let options = Options { release: observed.releases.newest(), ..Options::default() };
        inventory.add_jar("x.jar", &bytes, &options).unwrap();
        let method = &inventory.classes["a/B"].methods[0];
        assert_eq!((method.first_line(), observed.releases.uncertain(&inventory)), (Some(line), uncertain));
        let notes = Coverage::of(&observed, Some(&inventory), &CoverageOptions::default()).notes;
        assert_eq!(notes.uncertain_classes, uncertain);
    }
}

//! Inventories of jars.

use std::fs;
use std::process::Command;

use runtap_classfile::assemble::{ClassBuilder, CodeBuilder};
use runtap_classfile::code::Opcode;
use runtap_classfile::jar::Options;
use runtap_classfile::{AccessFlags, Version};
use runtap_coverage::Inventory;
use runtap_testkit::{Jdk, require, run};

fn class(name: &str, line: u16) -> Vec<u8> {
    let version = Version { major: 52, minor: 0 };
    let mut class = ClassBuilder::new(version, AccessFlags::PUBLIC, name, "java/lang/Object");
    let mut code = CodeBuilder::new(1, 1);
    code.line(line).op(Opcode::RETURN);
    class.method(AccessFlags::PUBLIC, "run", "()V", Some(&code)).unwrap();
    class.method(AccessFlags::PUBLIC | AccessFlags::ABSTRACT, "shape", "()V", None).unwrap();
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

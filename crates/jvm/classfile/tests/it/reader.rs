//! The reader on the classes of real JDKs.

use runtap_classfile::ClassFile;
use runtap_classfile::attribute::Attribute;
use runtap_testkit::{Jdk, require};

use crate::jdk::{Found, Programs as _};

/// Checks that the class written from the parsed parts equals the original.
fn comes_back(found: &Found) {
    let class = ClassFile::parse(&found.bytes).unwrap_or_else(|error| panic!("{}: {error}", found.path));
    let written = class.encode().unwrap_or_else(|error| panic!("{}: {error}", found.path));
    assert!(written == found.bytes, "{} is another class when it is written", found.path);
    let (_, name) = found.path.split_once('/').unwrap();
    assert_eq!(class.name().unwrap(), name.strip_suffix(".class").unwrap());
}

/// Attributes of classes that are not in the specification but in the JDK.
const OTHERS: [&str; 6] =
    ["ModuleHashes", "ModuleResolution", "ModuleTarget", "SourceDebugExtension", "Scala", "ScalaSig"];

fn none_is_unknown(found: &Found) {
    let class = ClassFile::parse(&found.bytes).unwrap();
    let pool = class.pool();
    let members = class.methods().iter().chain(class.fields()).map(|member| member.attributes);
    for raw in members.chain([*class.attributes()]).flat_map(|attributes| attributes.iter()) {
        if let Attribute::Unknown(_) = raw.parse(pool).unwrap() {
            let name = raw.name(pool).unwrap().to_string();
            assert!(OTHERS.contains(&name.as_str()), "{name} in {}", found.path);
        }
    }
}

#[test]
fn a_quarter_of_the_classes_of_all_jdks_comes_back() {
    for (n, jdk) in require!(Jdk::all()).iter().enumerate() {
        let classes = require!(jdk.classes(&["java.base"]));
        assert!(classes.len() > 5000, "{}", classes.len());
        // A different quarter for each JDK, because most classes are in all of them.
        let quarter = classes.iter().skip(n % 4).step_by(4);
        quarter.clone().for_each(comes_back);
        quarter.for_each(none_is_unknown);
    }
}

#[test]
#[ignore = "takes minutes"]
fn all_classes_of_all_jdks_come_back() {
    for jdk in require!(Jdk::all()) {
        let classes = require!(jdk.classes(&[]));
        classes.iter().for_each(comes_back);
        classes.iter().for_each(none_is_unknown);
        println!("JDK {}: {} classes", jdk.major(), classes.len());
    }
}

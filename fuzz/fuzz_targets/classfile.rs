//! Any bytes as a class file and as a jar: no panic; encoding the parts of a class yields the class; a rewritten class
//! is valid, and an unchanged class is identical; a jar yields no more than its limits.
#![no_main]

use runtap_classfile::ClassFile;
use runtap_classfile::jar::{self, Limits, ListedClass, Options};
use runtap_classfile::rewrite::{Constructing, Probe, Probes, rewrite};

const PROBE: Option<Probe<'_>> = Some(Probe { name: "probe", line: true });

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let limits = Limits { entry: 1 << 16, total: 1 << 18, ratio: 100, depth: 2, classes: 64 };
    if let Ok(listing) = jar::list(input, &Options { release: 11, limits }) {
        assert!(listing.classes.len() <= 64);
    }
    let Ok(class) = ClassFile::parse(input) else { return };
    let _ = (class.name(), class.super_name(), ListedClass::read("", input));
    if let Ok(written) = class.encode() {
        assert!(written == input, "another class");
    }
    let constructing = Some(Constructing { called: "called", constructed: "constructed" });
    let probes =
        Probes { class: "P", entry: PROBE, exit: PROBE, throwing: PROBE, unwinding: PROBE, constructing };
    if let Ok(untouched) = rewrite(&class, &probes, |_| None) {
        assert!(untouched.bytes.is_none() && untouched.unchanged.is_empty());
    }
    let Ok(result) = rewrite(&class, &probes, |method| i32::try_from(method.number * 20_000).ok()) else {
        return;
    };
    let Some(bytes) = result.bytes else { return };
    let rewritten = ClassFile::parse(&bytes).expect("a class");
    for changed in result.changed {
        let code =
            rewritten.methods()[changed.number].code(rewritten.pool()).expect("readable").expect("there");
        assert_eq!(code.bytes.len(), changed.after);
        assert!(code.instructions().all(|found| found.is_ok()));
    }
});

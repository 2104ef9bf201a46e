//! Properties that hold for any bytes.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use runtap_classfile::ClassFile;
use runtap_classfile::jar::{self, Limits, Options};
use runtap_testkit::require;

use crate::golden::class_with_lines;
use crate::jdk;

/// Returns compiled classes: those of the programs of these tests.
pub(crate) fn real_classes() -> Result<Vec<Vec<u8>>, runtap_testkit::Skip> {
    let files = std::fs::read_dir(jdk::programs()?).unwrap().map(|entry| entry.unwrap().path());
    Ok(files.filter(|path| path.is_file()).map(|path| std::fs::read(path).unwrap()).collect())
}

/// Calls every query on a class, and checks that a class that can be written equals its input.
fn examine(bytes: &[u8]) {
    let Ok(class) = ClassFile::parse(bytes) else { return };
    let _ = (class.name(), class.super_name(), class.source_file(), class.interfaces().count());
    let _ = format!("{:?}", class.pool());
    let _ = jar::ListedClass::read("", bytes);
    if let Ok(written) = class.encode() {
        assert!(written == bytes);
    }
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(bytes in vec(any::<u8>(), 0..200)) {
        examine(&bytes);
        examine(&[b"\xca\xfe\xba\xbe\0\0\0\x41".as_slice(), &bytes].concat());
        let _ = jar::list(&bytes, &Options::default());
    }

    #[test]
    fn changed_bytes_are_an_error_or_another_class(changes in vec((any::<Index>(), any::<u8>()), 1..6)) {
        let mut bytes = class_with_lines("a/B");
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        examine(&bytes);
    }
}

#[test]
fn changed_classes_of_a_compiler_are_an_error_or_another_class() {
    let classes = require!(real_classes());
    assert!(!classes.is_empty());
    let strategy = (any::<Index>(), vec((any::<Index>(), any::<u8>()), 1..6), any::<Index>());
    let config = ProptestConfig::with_cases(2000);
    proptest!(config, |((which, changes, end) in strategy)| {
        let mut bytes = classes[which.index(classes.len())].clone();
        let end = end.index(bytes.len());
        let error = ClassFile::parse(&bytes[..end]).unwrap_err();
        prop_assert!(error.is_incomplete() && error.offset <= end as u64, "{}", error);
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        examine(&bytes);
    });
}

/// Arrays of arrays of … in an annotation, and records in records: bounded by depth, not by the stack of a thread.
#[test]
fn depth_is_bounded() {
    let mut class = b"\xca\xfe\xba\xbe\0\0\0\x41\0\x03\x01\0\x11AnnotationDefault\x01\0\x06Record".to_vec();
    class.extend([0; 12]);
    let with = |name: u8, data: &[u8]| {
        let mut class = class.clone();
        class.extend([0, 1, 0, name]);
        class.extend((data.len() as u32).to_be_bytes());
        class.extend(data);
        class
    };
    let arrays = b"[\0\x01".repeat(100_000);
    let bytes = with(1, &[arrays.as_slice(), b"[\0\0"].concat());
    let error = ClassFile::parse(&bytes).unwrap().encode().unwrap_err();
    assert!(error.to_string().contains("too deep"), "{error}");

    let mut record = b"\0\0".to_vec();
    for _ in 0..2000 {
        let length = (record.len() as u32).to_be_bytes();
        record = [b"\0\x01\0\0\0\0\0\x01\0\x02".as_slice(), &length, &record].concat();
    }
    let bytes = with(2, &record);
    let error = ClassFile::parse(&bytes).unwrap().encode().unwrap_err();
    assert!(error.to_string().contains("too deep"), "{error}");
    let _ = jar::list(
        &bytes,
        &Options { release: 0, limits: Limits { entry: 1, total: 1, ratio: 1, depth: 0, classes: 0 } },
    );
}

//! Jars made by `jar`, made by hand, and invalid ones.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::DeflateEncoder;
use runtap_classfile::assemble::{ClassBuilder, CodeBuilder};
use runtap_classfile::code::Opcode;
use runtap_classfile::jar::{self, Limits, Listing, Options, Reason};
use runtap_classfile::{AccessFlags, Version};

/// Returns the class `a/B` with one method and two lines.
fn class(name: &str) -> Vec<u8> {
    crate::golden::class_with_lines(name)
}

/// Returns a class whose methods all have one name.
fn class_with_methods(name: &str, count: usize) -> Vec<u8> {
    let version = Version { major: 52, minor: 0 };
    let mut class = ClassBuilder::new(version, AccessFlags::PUBLIC, "a/B", "java/lang/Object");
    let mut code = CodeBuilder::new(1, 256);
    code.op(Opcode::RETURN);
    for number in 0..count {
        let descriptor = format!("({})V", "I".repeat(number));
        class.method(AccessFlags::PUBLIC | AccessFlags::STATIC, name, &descriptor, Some(&code)).unwrap();
    }
    class.finish().unwrap()
}

/// Returns a zip file with these entries; every second one is deflated.
fn zip(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let (mut file, mut directory) = (Vec::new(), Vec::new());
    for (n, (path, content)) in entries.iter().enumerate() {
        let mut packed = content.to_vec();
        if n % 2 == 1 {
            let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(content).unwrap();
            packed = encoder.finish().unwrap();
        }
        let mut header = Vec::new();
        for half in [20, 0, if n % 2 == 1 { 8 } else { 0 }, 0, 0] {
            header.extend(u16::to_le_bytes(half));
        }
        for whole in [rawzip::crc32(content), packed.len() as u32, content.len() as u32] {
            header.extend(whole.to_le_bytes());
        }
        header.extend((path.len() as u16).to_le_bytes());
        header.extend([0, 0]);
        let offset = file.len() as u32;
        file.extend([b"PK\x03\x04", header.as_slice(), path.as_bytes(), &packed].concat());
        directory.extend([b"PK\x01\x02\x14\0".as_slice(), &header, &[0; 10], &offset.to_le_bytes()].concat());
        directory.extend(path.as_bytes());
    }
    let (start, length, count) = (file.len() as u32, directory.len() as u32, entries.len() as u16);
    file.extend(directory);
    file.extend([b"PK\x05\x06\0\0\0\0".as_slice(), &count.to_le_bytes(), &count.to_le_bytes()].concat());
    file.extend([length.to_le_bytes().as_slice(), &start.to_le_bytes(), &[0, 0]].concat());
    file
}

fn names(listing: &Listing) -> Vec<(&str, &str)> {
    listing.classes.iter().map(|class| (class.path.as_str(), class.name.as_str())).collect()
}

#[test]
fn methods_source_and_lines() {
    let jar =
        zip(&[("a/B.class", &class("a/B")), ("a/B.txt", b"no class"), ("a/C$D.class", &class("a/C$D"))]);
    let listing = jar::list(&jar, &Options::default()).unwrap();
    assert_eq!(names(&listing), [("a/B.class", "a/B"), ("a/C$D.class", "a/C$D")]);
    assert_eq!(listing.unread, []);
    let class = &listing.classes[0];
    assert_eq!(class.source_path().as_deref(), Some("a/B.java"));
    assert_eq!(class.super_name.as_deref(), Some("java/lang/Object"));
    let method = &class.methods[0];
    assert_eq!((method.name.as_str(), method.descriptor.as_str()), ("run", "()V"));
    assert_eq!((method.code_length, method.instructions), (Some(3), 3));
    let lines: Vec<_> = method.lines.iter().map(|line| (line.number, line.instructions)).collect();
    assert_eq!(lines, [(7, 1), (9, 2)]);
}

#[test]
fn of_a_multi_release_jar_the_classes_of_one_release() {
    let (old, new) = (class("a/B"), class("a/B"));
    let entries = [
        ("META-INF/versions/11/a/B.class", new.as_slice()),
        ("META-INF/MANIFEST.MF", b"Manifest-Version: 1.0\r\nMulti-Release: true\r\n"),
        ("a/B.class", &old),
        ("META-INF/versions/17/a/B.class", &new),
        ("META-INF/versions/17/a/New.class", &class("a/New")),
        ("META-INF/versions/17/a/", b""),
        ("META-INF/versions/17/a/text.properties", b"a=b"),
    ];
    let of = |release, entries: &[(&str, &[u8])]| {
        let listing = jar::list(&zip(entries), &Options { release, ..Options::default() }).unwrap();
        assert_eq!(listing.unread, []);
        listing.classes.into_iter().map(|class| class.path).collect::<Vec<_>>()
    };
    assert_eq!(of(8, &entries), ["a/B.class"]);
    assert_eq!(of(11, &entries), ["META-INF/versions/11/a/B.class"]);
    assert_eq!(of(25, &entries), ["META-INF/versions/17/a/B.class", "META-INF/versions/17/a/New.class"]);
    let mut entries = entries;
    entries[1].1 = b"Manifest-Version: 1.0\r\n";
    assert_eq!(of(25, &entries), ["a/B.class"], "not without the manifest's word");
}

#[test]
fn jars_in_jars() {
    let inner = zip(&[("x/Y.class", &class("x/Y"))]);
    let other = zip(&[("x/Z.class", &class("x/Z"))]);
    let boot = zip(&[
        ("BOOT-INF/classes/a/B.class", &class("a/B")),
        ("BOOT-INF/lib/packed.jar", &inner),
        ("BOOT-INF/lib/stored.jar", &other),
        ("BOOT-INF/lib/broken.jar", b"not a zip file"),
        (
            "org/springframework/boot/loader/Launcher.class",
            &class("org/springframework/boot/loader/Launcher"),
        ),
    ]);
    let listing = jar::list(&boot, &Options::default()).unwrap();
    let launcher = "org/springframework/boot/loader/Launcher";
    let expected = [
        ("BOOT-INF/classes/a/B.class", "a/B"),
        ("BOOT-INF/lib/packed.jar!/x/Y.class", "x/Y"),
        ("BOOT-INF/lib/stored.jar!/x/Z.class", "x/Z"),
        ("org/springframework/boot/loader/Launcher.class", launcher),
    ];
    assert_eq!(names(&listing), expected);
    assert_eq!(listing.unread.len(), 1);
    assert_eq!(listing.unread[0].path, "BOOT-INF/lib/broken.jar");
    assert!(matches!(listing.unread[0].reason, Reason::Archive(_)), "{:?}", listing.unread);
}

#[test]
fn no_more_is_unpacked_than_allowed() {
    let bomb = vec![0; 1 << 20];
    let jar = zip(&[("a/B.class", &class("a/B")), ("a/Bomb.class", &bomb), ("a/C.class", &class("a/C"))]);
    let limits = Limits { entry: 4096, ..Limits::default() };
    let listing = jar::list(&jar, &Options { limits, ..Options::default() }).unwrap();
    assert_eq!(names(&listing), [("a/B.class", "a/B"), ("a/C.class", "a/C")]);
    assert_eq!(listing.unread[0].reason, Reason::Limit { what: "bytes", limit: 4096 });

    let limits = Limits { total: 4096, ..Limits::default() };
    let listing = jar::list(&jar, &Options { limits, ..Options::default() }).unwrap();
    assert_eq!(names(&listing), [("a/B.class", "a/B")]);
    assert_eq!(listing.unread.len(), 1, "nothing is read behind the limit, and that is said once");
    assert_eq!(listing.unread[0].reason, Reason::Limit { what: "bytes in total", limit: 4096 });

    let nested = zip(&[("1.jar", &zip(&[("2.jar", &zip(&[("a/B.class", &class("a/B"))]))]))]);
    let limits = Limits { depth: 1, ..Limits::default() };
    let listing = jar::list(&nested, &Options { limits, ..Options::default() }).unwrap();
    assert_eq!((listing.classes.len(), listing.unread[0].path.as_str()), (0, "1.jar!/2.jar"));
    let listing = jar::list(&nested, &Options::default()).unwrap();
    assert_eq!(names(&listing), [("1.jar!/2.jar!/a/B.class", "a/B")]);
}

#[test]
fn damage_is_told_and_the_rest_is_listed() {
    let jar = zip(&[
        ("a/B.class", &class("a/B")),
        ("a/C.class", &class("a/C")),
        ("a/No.class", b"\xca\xfe\xba\xbe\0"),
    ]);
    let mut flipped = jar.clone();
    // In the content of the first entry, which is stored.
    flipped[60] ^= 1;
    let listing = jar::list(&flipped, &Options::default()).unwrap();
    assert_eq!(names(&listing), [("a/C.class", "a/C")]);
    let reasons: Vec<_> =
        listing.unread.iter().map(|unread| (unread.path.as_str(), unread.reason.to_string())).collect();
    assert!(matches!(listing.unread[0].reason, Reason::Damaged(_)), "{reasons:?}");
    assert_eq!(reasons[1].0, "a/No.class");
    assert!(reasons[1].1.starts_with("minor_version at offset 4"), "{reasons:?}");
    for n in 0..jar.len() {
        // The directory is at the end.
        assert!(jar::list(&jar[..n], &Options::default()).is_err());
    }
}

/// `jmod` files contain the classes of a JDK module, all of which are listed.
#[test]
fn a_module_of_the_jdk() {
    let jdk = runtap_testkit::require!(runtap_testkit::Jdk::with_compiler());
    let file = jdk.home().join("jmods/java.logging.jmod");
    let Ok(bytes) = std::fs::read(&file) else {
        return runtap_testkit::Skip::because("the JDK has no jmods").report();
    };
    let listing = jar::list(&bytes, &Options::default()).unwrap();
    assert_eq!(listing.unread, []);
    let logger = listing.classes.iter().find(|class| class.name == "java/util/logging/Logger").unwrap();
    assert_eq!(logger.source_path().as_deref(), Some("java/util/logging/Logger.java"));
    let info = logger
        .methods
        .iter()
        .find(|method| method.name == "info" && method.descriptor == "(Ljava/lang/String;)V");
    assert!(!info.unwrap().lines.is_empty());
}

/// The path of each entry includes the paths of its outer archives: three long names and many entries would take gigabytes.
#[test]
fn paths_of_nested_archives_are_bounded_in_total() {
    let names: Vec<String> = (0..2000).map(|number| format!("{number:x}.class")).collect();
    let entries: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), b"".as_slice())).collect();
    let mut jar = zip(&entries);
    for _ in 0..3 {
        // The second entry is deflated.
        jar = zip(&[("README", b""), (&format!("{}.jar", "a".repeat(64_990)), &jar)]);
    }
    let listing = jar::list(&jar, &Options::default()).unwrap();
    let paths: usize = listing.unread.iter().map(|unread| unread.path.len()).sum();
    let limit = (64 << 20) + 100 * jar.len() as u64;
    assert!(listing.unread.len() < names.len() && paths as u64 <= limit + (256 << 10), "{paths}");
    let last = &listing.unread.last().unwrap().reason;
    assert_eq!(*last, Reason::Limit { what: "bytes in total", limit });
}

/// Entries may share their content, and each of them is unpacked.
#[test]
fn what_is_unpacked_is_bounded_by_the_size_of_the_archive() {
    let bomb = vec![0; 24 << 20];
    let jar = zip(&[("README", b""), ("000.class", &bomb)]);
    let place = |mark: &[u8]| jar.windows(4).rposition(|bytes| bytes == mark).unwrap();
    let (entry, end) = (place(b"PK\x01\x02"), place(b"PK\x05\x06"));
    // More directory entries for one content, with names of their own.
    let mut shared = jar[..end].to_vec();
    for number in 1..=900 {
        shared.extend(&jar[entry..entry + 46]);
        shared.extend(format!("{number:03}.class").bytes());
    }
    let directory = jar.windows(4).position(|bytes| bytes == b"PK\x01\x02").unwrap();
    let length = u32::try_from(shared.len() - directory).unwrap();
    let mut ending = jar[end..].to_vec();
    ending[8..10].copy_from_slice(&902u16.to_le_bytes());
    ending[10..12].copy_from_slice(&902u16.to_le_bytes());
    ending[12..16].copy_from_slice(&length.to_le_bytes());
    shared.extend(ending);
    let listing = jar::list(&shared, &Options::default()).unwrap();
    let limit = (64 << 20) + 100 * shared.len() as u64;
    assert_eq!(listing.unread.last().unwrap().reason, Reason::Limit { what: "bytes in total", limit });
    assert!(listing.unread.len() < 10, "{}", listing.unread.len());
}

/// A name of 64 KiB that all methods share.
#[test]
fn names_of_methods_are_bounded_by_the_size_of_the_class() {
    let bytes = class_with_methods(&"a".repeat(65_000), 200);
    let listing = jar::list(&zip(&[("a/B.class", &bytes)]), &Options::default()).unwrap();
    let limit = (64 << 10) + 16 * bytes.len() as u64;
    assert_eq!(listing.unread[0].reason, Reason::Limit { what: "bytes of method names", limit });
    // Many methods commonly share a name.
    let bytes = class_with_methods("access", 200);
    assert_eq!(jar::list(&zip(&[("a/B.class", &bytes)]), &Options::default()).unwrap().unread, []);
}

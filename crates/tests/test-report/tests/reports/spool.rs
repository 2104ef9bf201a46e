//! Results in a file give the same reports as results in memory.

use std::io::{self, Cursor, Read, Seek, SeekFrom, Write};

use crate::{run, written};
use runtap_test_report::{Artifact, Facts, Format, Location, Module, Source, Spool, TestResult, Trait};

fn spooled<F: Read + Write + Seek>(source: &impl Source, file: F) -> Spool<F> {
    let mut spool = Spool::new(source.run().clone(), file);
    for module in source.modules() {
        spool.add_module(module.clone());
    }
    // As they arrive from modules that run side by side.
    let most = (0..source.modules().len()).map(|module| source.count(module)).max().unwrap();
    for index in 0..most {
        for module in 0..source.modules().len() {
            if index < source.count(module) {
                spool.push(module, &source.result(module, index).unwrap()).unwrap();
            }
        }
    }
    spool
}

#[test]
fn reports_are_the_same() {
    let memory = run::sample();
    let spool = spooled(&memory, Cursor::new(Vec::new()));
    for format in Format::ALL {
        assert_eq!(written(format, &spool), written(format, &memory), "{}", format.name());
    }
}

#[test]
fn results_can_be_added_after_some_were_read() {
    let memory = run::sample();
    let mut spool = spooled(&memory, Cursor::new(Vec::new()));
    let first = spool.result(0, 0).unwrap().into_owned();
    spool.push(2, &first).unwrap();
    spool.push(2, &memory.result(0, 1).unwrap()).unwrap();
    assert_eq!(*spool.result(2, 0).unwrap(), first);
    assert_eq!(spool.result(2, 1).unwrap(), memory.result(0, 1).unwrap());
    assert_eq!(spool.result(0, 8).unwrap(), memory.result(0, 8).unwrap());
    assert_eq!(spool.totals(2).unwrap().total(), 2);
    assert_eq!(spool.push(3, &first).unwrap_err().to_string(), "there is no module 3");
    spool.run_mut().exit_code = 3;
    spool.module_mut(2).unwrap().error = None;
    assert!(!written(Format::Junit, &spool).contains("test application"));
}

/// A file whose disk is full once, after `room` bytes.
struct Full {
    file: Cursor<Vec<u8>>,
    room: usize,
}

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.room == 0 {
            self.room = usize::MAX;
            return Err(io::ErrorKind::StorageFull.into());
        }
        let taken = self.file.write(&bytes[..bytes.len().min(self.room)])?;
        self.room -= taken;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for Full {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read(buffer)
    }
}

impl Seek for Full {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

#[test]
fn a_write_that_fails_loses_no_other_result() {
    let memory = run::sample();
    let mut spool = Spool::new(memory.run().clone(), Full { file: Cursor::new(Vec::new()), room: 100_000 });
    spool.add_module(memory.modules()[0].clone());
    let mut large = memory.result(0, 0).unwrap().into_owned();
    large.last.stdout = "o".repeat(90_000);
    spool.push(0, &large).unwrap();
    assert_eq!(spool.push(0, &large).unwrap_err().kind(), io::ErrorKind::StorageFull);
    spool.push(0, &memory.result(0, 1).unwrap()).unwrap();
    assert_eq!(spool.count(0), 2);
    assert_eq!(*spool.result(0, 0).unwrap(), large);
    assert_eq!(spool.result(0, 1).unwrap(), memory.result(0, 1).unwrap());
}

/// Two modules with a test `u1` each, the second one with two results of it.
fn doubled() -> Spool<Cursor<Vec<u8>>> {
    let mut spool = Spool::new(run::sample().run().clone(), Cursor::new(Vec::new()));
    let result =
        |name: &str| TestResult { uid: "u1".to_owned(), name: name.to_owned(), ..TestResult::default() };
    spool.add_module(Module::new("/bin/a.dll"));
    spool.add_module(Module::new("/bin/b.dll"));
    spool.push(0, &result("one")).unwrap();
    spool.push(1, &result("one")).unwrap();
    spool.push(1, &result("two")).unwrap();
    spool
}

#[test]
fn what_is_listed_of_a_test_is_in_its_results() {
    let mut spool = doubled();
    let facts = Facts {
        namespace: Some("Shop".to_owned()),
        type_name: Some("Cart".to_owned()),
        method: Some("Adds".to_owned()),
        location: Some(Location { file: "/src/Cart.cs".to_owned(), line: Some(3) }),
        traits: vec![Trait { key: "slow".to_owned(), value: String::new() }],
    };
    // Between results as well.
    spool.know(1, "u1", &facts).unwrap();
    let last = TestResult { uid: "u1".to_owned(), name: "three".to_owned(), ..TestResult::default() };
    spool.push(1, &last).unwrap();
    assert_eq!(spool.result(0, 0).unwrap().class(), None, "that is another module's test");
    for (index, name) in ["one", "two", "three"].into_iter().enumerate() {
        let result = spool.result(1, index).unwrap();
        assert_eq!((result.name.as_str(), result.class().as_deref()), (name, Some("Shop.Cart")));
        assert_eq!(
            (&result.method, &result.location, &result.traits),
            (&facts.method, &facts.location, &facts.traits)
        );
    }
    assert_eq!(spool.totals(1).unwrap().total(), 3);
    let junit = written(Format::Junit, &spool);
    assert!(junit.contains("<testcase name=\"two\" classname=\"Shop.Cart\""), "{junit}");
    assert!(written(Format::Trx, &spool).contains("className=\"Shop.Cart\" name=\"Adds\""));
    assert!(written(Format::Ctrf, &spool).contains("\"suite\":[\"b\",\"Shop.Cart\"]"));
}

#[test]
fn files_of_a_test_are_with_its_result_and_others_with_the_module() {
    let mut spool = doubled();
    let file = |path: &str| Artifact { path: path.to_owned(), ..Artifact::default() };
    spool.attach(1, "u1", Some("two"), file("/out/of-two.png"));
    spool.attach(1, "u1", Some(""), file("/out/of-both.png"));
    spool.attach(1, "u1", Some("four"), file("/out/of-none.png"));
    spool.attach(0, "u9", None, file("/out/of-nobody.png"));
    spool.settle().unwrap();
    let paths = |artifacts: &[Artifact]| artifacts.iter().map(|it| it.path.clone()).collect::<Vec<_>>();
    assert_eq!(paths(&spool.result(1, 1).unwrap().artifacts), ["/out/of-both.png", "/out/of-two.png"]);
    assert_eq!(paths(&spool.result(1, 0).unwrap().artifacts), ["/out/of-both.png"]);
    assert_eq!(paths(&spool.modules()[1].artifacts), ["/out/of-none.png"]);
    assert_eq!(paths(&spool.modules()[0].artifacts), ["/out/of-nobody.png"]);
    let junit = written(Format::Junit, &spool);
    assert!(junit.contains("[[ATTACHMENT|/out/of-two.png]]\n</system-out>"), "{junit}");
    assert!(written(Format::Trx, &spool).contains("<ResultFile path=\"/out/of-two.png\"/>"));
}

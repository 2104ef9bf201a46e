//! A pattern for classes, then signatures of called methods, separated by NUL: no panic, a signature is printed as it
//! was sent, there are no more methods than texts, and every file can be read and contains every method.
#![no_main]

use quick_xml::{Reader, events::Event};
use runtap_bytefrog::{Limits, Model};
use runtap_bytefrog_proto::{Dialect, Exit, JavaStr, Location, Message, Stamp};
use runtap_jvm::coverage::{Coverage, Format, Observed, Options, Patterns, Signature, WriteOptions};

fn written(format: Format, coverage: &Coverage) -> String {
    let mut bytes = Vec::new();
    format.write(coverage, &mut bytes, &WriteOptions::default()).expect("a Vec takes all");
    String::from_utf8(bytes).expect("UTF-8")
}

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let mut texts = input.split(|byte| *byte == 0);
    let pattern = String::from_utf8_lossy(texts.next().unwrap_or_default());
    let patterns = Patterns::new(&[], &[pattern]).unwrap_or_default();
    let mut model = Model::new(Dialect::V4, &Limits::default(), u64::MAX);
    let mut sequence = 0;
    let mut at = || {
        sequence += 1;
        Stamp { time: sequence, sequence: sequence - 1, thread: 0 }
    };
    let mut count = 0;
    for (method, text) in (0..).zip(texts) {
        count += 1;
        let lossy = String::from_utf8_lossy(text);
        match Signature::parse(&lossy) {
            Ok(signature) => assert_eq!(signature.to_string(), lossy),
            Err(error) => assert!(lossy.get(error.offset..).is_some(), "{error}"),
        }
        model.take(&Message::MapMethod { method, signature: JavaStr::from_bytes(text) });
        let (start_line, end_line) = (method % 7, method % 11);
        let place = Location { location: method, method, start_line, end_line, start_char: 0, end_char: 0 };
        model.take(&Message::MapLocation(place));
        model.take(&Message::Entry { at: at(), method });
        model.take(&Message::Visit { at: at(), method, location: method });
        model.take(&Message::Exit { at: at(), method, exit: Exit::Thrown(0) });
    }
    model.finish();
    let observed = Observed::of(&model.report());
    assert!(observed.methods.len() + observed.unparsed.len() <= count);
    let coverage =
        Coverage::of(&observed, None, &Options { patterns, entry_lines: true, ..Options::default() });
    let methods = coverage.totals().methods.total();
    assert!(methods <= observed.methods.len() as u64);
    for format in [Format::Jacoco, Format::Cobertura] {
        let xml = written(format, &coverage);
        let mut reader = Reader::from_str(&xml);
        let mut found = 0;
        loop {
            match reader.read_event().expect("well formed") {
                Event::Start(start) => found += u64::from(start.name().as_ref() == b"method"),
                Event::Eof => break,
                _ => {}
            }
        }
        assert_eq!(found, methods);
    }
    let tracefile = written(Format::Lcov, &coverage);
    let calls = tracefile.lines().filter(|line| line.starts_with("FNDA:")).count() as u64;
    assert_eq!(calls + coverage.methods_without_line(), methods);
});

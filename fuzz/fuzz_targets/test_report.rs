//! Any texts, separated by NUL, as the messages of a test: each report stays readable, and no text escapes its context.
#![no_main]

use std::time::SystemTime;

use quick_xml::{Reader, events::Event};
use runtap_test_report::{Attempt, Exception, Format, Memory, Module, Run, TestOutcome, TestResult, github};

fn run(texts: &[&str]) -> Memory {
    let mut texts = texts.iter().map(|text| (*text).to_owned());
    let mut next = || texts.next().unwrap_or_default();
    let run = Run {
        started: SystemTime::UNIX_EPOCH,
        duration_ns: 0,
        command: vec![next()],
        runner: next(),
        version: next(),
        exit_code: 2,
        interrupted: Some(next()),
        error: Some(next()),
        machine: next(),
    };
    let exceptions = vec![Exception { message: next(), type_name: next(), stack: next() }];
    let attempt = Attempt { state: TestOutcome::Failed, exceptions, stdout: next(), ..Attempt::default() };
    let (uid, name, type_name) = (next(), next(), Some(next()));
    let earlier = vec![attempt.clone()];
    let result = TestResult { uid, name, type_name, earlier, last: attempt, ..TestResult::default() };
    let module = Module { error: Some(next()), stderr: next(), ..Module::new(next()) };
    Memory::new(run, [(module, vec![result])])
}

fn written(format: Format, run: &Memory) -> String {
    let mut bytes = Vec::new();
    format.write(run, &mut bytes).expect("a Vec takes all");
    String::from_utf8(bytes).expect("UTF-8")
}

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let text = String::from_utf8_lossy(input);
    let run = run(&text.split('\0').collect::<Vec<_>>());
    for format in [Format::Junit, Format::Trx] {
        let xml = written(format, &run);
        let mut reader = Reader::from_str(&xml);
        while reader.read_event().expect("well formed") != Event::Eof {}
    }
    serde_json::from_str::<serde::de::IgnoredAny>(&written(Format::Ctrf, &run)).expect("JSON");
    // Head, index, one chunk of details, and the script.
    assert_eq!(written(Format::Html, &run).matches("</script").count(), 4);
    let mut lines = Vec::new();
    github::annotations(&run, &mut lines, &github::Options::new("/")).expect("a Vec takes all");
    assert_eq!(lines.iter().filter(|byte| **byte == b'\n').count(), 2, "the module and its test");
});

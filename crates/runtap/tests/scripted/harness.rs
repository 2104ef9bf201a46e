//! A harness that is compatible with `cargo test` and nextest: lists tests, runs selected ones, several at a time.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

/// Number of parallel tests, which mostly wait.
const MAX_PARALLEL: usize = 4;

/// A test: its name and its function.
pub(crate) struct Test {
    name: String,
    run: Box<dyn Fn() + Send + Sync>,
}

impl Test {
    pub(crate) fn new(name: impl Into<String>, run: impl Fn() + Send + Sync + 'static) -> Self {
        Self { name: name.into(), run: Box::new(run) }
    }
}

/// The supported options of libtest.
#[derive(Default)]
struct Options {
    list: bool,
    ignored: bool,
    exact: bool,
    skip: Vec<String>,
    wanted: Vec<String>,
}

impl Options {
    fn read() -> Self {
        let mut this = Self::default();
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--list" => this.list = true,
                "--ignored" => this.ignored = true,
                "--exact" => this.exact = true,
                "--skip" => this.skip.extend(arguments.next()),
                "--format" | "--test-threads" | "--color" | "--logfile" | "-Z" => drop(arguments.next()),
                option if option.starts_with('-') => {}
                _ => this.wanted.push(argument),
            }
        }
        this
    }

    fn selects(&self, name: &str) -> bool {
        let matches = |text: &String| if self.exact { name == text } else { name.contains(text.as_str()) };
        (self.wanted.is_empty() || self.wanted.iter().any(matches)) && !self.skip.iter().any(matches)
    }
}

#[expect(clippy::print_stdout, reason = "a harness talks on its standard output")]
pub(crate) fn run(mut tests: Vec<Test>) -> ExitCode {
    let options = Options::read();
    tests.retain(|test| options.selects(&test.name));
    if options.ignored {
        // No test is ignored.
        tests.clear();
    }
    if options.list {
        for test in &tests {
            println!("{}: test", test.name);
        }
        return ExitCode::SUCCESS;
    }
    println!("\nrunning {} tests", tests.len());
    let count = tests.len();
    let (waiting, failed) = (Mutex::new(tests), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..MAX_PARALLEL.min(count) {
            scope.spawn(|| {
                loop {
                    let Some(test) = waiting.lock().unwrap().pop() else { return };
                    let started = Instant::now();
                    let ended = catch_unwind(AssertUnwindSafe(|| (test.run)()));
                    let verdict = if ended.is_ok() { "ok" } else { "FAILED" };
                    println!("test {} ... {verdict} ({} ms)", test.name, started.elapsed().as_millis());
                    if ended.is_err() {
                        failed.lock().unwrap().push(test.name);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    let (verdict, code) = if failed.is_empty() { ("ok", 0) } else { ("FAILED", 101) };
    for name in &failed {
        println!("    {name}");
    }
    println!("\ntest result: {verdict}. {} passed; {} failed", count - failed.len(), failed.len());
    ExitCode::from(code)
}

//! Capture of the message and location of a panicking test.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::{Arc, Once};

use crate::Failure;

/// A caught panic.
#[derive(Debug, Clone)]
pub struct Panicked {
    /// The message.
    pub message: String,
    /// The file and line of the panic.
    pub location: Option<(String, u32)>,
    /// Not resolved yet, because resolving names takes longer than most tests.
    backtrace: Option<Arc<Backtrace>>,
}

/// A stack frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The name of the function.
    pub function: String,
    /// The file and line, if known.
    pub location: Option<(String, u32)>,
}

impl Panicked {
    /// Returns the stack from the panic to the test. Empty unless `RUST_BACKTRACE` enables it.
    pub fn stack(&self) -> Vec<Frame> {
        self.backtrace.as_ref().map(|backtrace| frames(&backtrace.to_string())).unwrap_or_default()
    }

    /// Converts to a failure of the test with this name.
    pub fn failure(self, test: &str) -> Failure {
        let stack = self.stack();
        let failure = Failure::new(self.message).type_name("panic");
        match self.location {
            Some((file, line)) if stack.is_empty() => failure.frame(test, &file, line),
            _ if stack.is_empty() => failure,
            _ => failure.stack(format_stack(&stack)),
        }
    }
}

/// Formats a stack in .NET's form, from which servers extract locations.
fn format_stack(stack: &[Frame]) -> String {
    let lines = stack.iter().map(|frame| match &frame.location {
        Some((file, line)) => format!("   at {} in {file}:line {line}", frame.function),
        None => format!("   at {}", frame.function),
    });
    lines.collect::<Vec<_>>().join("\n")
}

thread_local! {
    static IS_CATCHING: Cell<bool> = const { Cell::new(false) };
    static LAST: RefCell<Option<Panicked>> = const { RefCell::new(None) };
}

/// Runs `body` and returns its value, or the panic. The panic is not printed. Panics of threads that `body` starts are
/// not caught.
///
/// # Errors
/// Returns the panic if `body` panicked.
pub fn catch<T>(body: impl FnOnce() -> T) -> Result<T, Panicked> {
    install();
    let outer = IS_CATCHING.replace(true);
    let result = panic::catch_unwind(AssertUnwindSafe(body));
    IS_CATCHING.set(outer);
    result.map_err(|payload| {
        let capture = LAST.take();
        capture.unwrap_or_else(|| Panicked {
            // The panic was resumed, so no hook has run.
            message: text(&*payload),
            location: None,
            backtrace: None,
        })
    })
}

fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if IS_CATCHING.get() {
                LAST.set(Some(capture(info)));
            } else {
                before(info);
            }
        }));
    });
}

fn capture(info: &PanicHookInfo<'_>) -> Panicked {
    let location = info.location().map(|location| (location.file().to_owned(), location.line()));
    let backtrace = Backtrace::capture();
    let backtrace = (backtrace.status() == BacktraceStatus::Captured).then(|| Arc::new(backtrace));
    Panicked { message: text(info.payload()), location, backtrace }
}

fn text(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a panic without a message").to_owned()
}

/// The functions between a panic and its cause.
const RAISING: &[&str] = &[
    "std::panicking::panic",
    "std::panicking::begin_panic",
    "core::panicking::",
    "rust_begin_unwind",
    "core::result::unwrap_failed",
    "core::option::unwrap_failed",
    "core::option::expect_failed",
];

/// The functions between a test and its runner.
const CATCHING: &[&str] =
    &["core::panic::unwind_safe::", "catch_unwind", "crate::panics::", "__rust_begin_short_backtrace"];

/// Parses the standard library's text of a backtrace, and returns the frames of the test.
fn frames(text: &str) -> Vec<Frame> {
    let mut frames: Vec<Frame> = Vec::new();
    for line in text.lines() {
        let line = line.trim_start();
        if let Some(location) = line.strip_prefix("at ") {
            let mut parts = location.rsplitn(3, ':');
            let (_column, line) = (parts.next(), parts.next().and_then(|line| line.parse().ok()));
            if let (Some(frame), Some(line), Some(file)) = (frames.last_mut(), line, parts.next()) {
                frame.location = Some((file.to_owned(), line));
            }
        } else if let Some((number, function)) = line.split_once(": ")
            && number.bytes().all(|c| c.is_ascii_digit())
        {
            frames.push(Frame { function: function.to_owned(), location: None });
        }
    }
    let is_of = |frame: &Frame, names: &[&str]| names.iter().any(|name| frame.function.contains(name));
    if let Some(from) = frames.iter().rposition(|frame| is_of(frame, RAISING)) {
        frames.drain(..=from);
    }
    if let Some(to) = frames.iter().position(|frame| is_of(frame, CATCHING)) {
        frames.truncate(to);
    }
    frames
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_has_a_message_and_a_location() {
        let line = line!() + 1;
        let panicked = catch(|| panic!("number {}", 7)).unwrap_err();
        assert_eq!(panicked.message, "number 7");
        assert_eq!(panicked.location, Some((file!().to_owned(), line)));
        assert_eq!(catch(|| 7).unwrap(), 7);
        let resumed = catch(|| panic::resume_unwind(Box::new("again"))).unwrap_err();
        assert_eq!((resumed.message.as_str(), resumed.location), ("again", None));
        let odd = catch(|| panic::panic_any(7)).unwrap_err();
        assert_eq!(odd.message, "a panic without a message");
        let location = Some(("src/a.rs".to_owned(), 7));
        let failure = Panicked { message: "m".into(), location, backtrace: None }.failure("a test");
        assert_eq!(failure, Failure::new("m").type_name("panic").frame("a test", "src/a.rs", 7));
    }

    #[test]
    fn the_stack_has_only_frames_of_the_test() {
        let text = "   0: std::panicking::panic_with_hook\n             at /rustc/x/library/std/src/panicking.rs:833:13\n   \
                    1: __rustc::rust_begin_unwind\n   2: core::panicking::panic_fmt\n             at /rustc/x/core/src/panicking.rs:80:14\n   \
                    3: shop::helper\n             at ./src/lib.rs:12:5\n   4: shop::test\n   \
                    5: crate::panics::catch\n   6: std::panicking::catch_unwind\n   7: main\n";
        let location = Some(("./src/lib.rs".to_owned(), 12));
        let expected = [
            Frame { function: "shop::helper".into(), location },
            Frame { function: "shop::test".into(), location: None },
        ];
        assert_eq!(frames(text), expected);
        assert_eq!(format_stack(&expected), "   at shop::helper in ./src/lib.rs:line 12\n   at shop::test");
    }
}

//! A test that panics: its message and place, kept from standard error.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::{Arc, Once};

use crate::Failure;

/// A panic that was caught.
#[derive(Debug, Clone)]
pub struct Panicked {
    /// What it said.
    pub message: String,
    /// File and line of the panic.
    pub place: Option<(String, u32)>,
    /// Without names yet: to find them takes longer than most tests.
    backtrace: Option<Arc<Backtrace>>,
}

/// A function on the stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Its name.
    pub function: String,
    /// File and line.
    pub place: Option<(String, u32)>,
}

impl Panicked {
    /// Its stack, from the panic to the test; empty unless `RUST_BACKTRACE` asks for one.
    pub fn stack(&self) -> Vec<Frame> {
        self.backtrace.as_ref().map(|backtrace| frames(&backtrace.to_string())).unwrap_or_default()
    }

    /// As a failure of the test with this name.
    pub fn failure(self, test: &str) -> Failure {
        let stack = self.stack();
        let failure = Failure::new(self.message).type_name("panic");
        match self.place {
            Some((file, line)) if stack.is_empty() => failure.frame(test, &file, line),
            _ if stack.is_empty() => failure,
            _ => failure.stack(shown(&stack)),
        }
    }
}

/// In .NET's form, which servers know places by.
fn shown(stack: &[Frame]) -> String {
    let lines = stack.iter().map(|frame| match &frame.place {
        Some((file, line)) => format!("   at {} in {file}:line {line}", frame.function),
        None => format!("   at {}", frame.function),
    });
    lines.collect::<Vec<_>>().join("\n")
}

thread_local! {
    static IS_CATCHING: Cell<bool> = const { Cell::new(false) };
    static LAST: RefCell<Option<Panicked>> = const { RefCell::new(None) };
}

/// Runs `body` and gives its value, or what it panicked with. Nothing is printed then. Panics of threads that `body` starts
/// are theirs.
///
/// # Errors
/// It has panicked.
pub fn catch<T>(body: impl FnOnce() -> T) -> Result<T, Panicked> {
    install();
    let outer = IS_CATCHING.replace(true);
    let result = panic::catch_unwind(AssertUnwindSafe(body));
    IS_CATCHING.set(outer);
    result.map_err(|payload| {
        let seen = LAST.take();
        seen.unwrap_or_else(|| Panicked {
            // It was resumed, not raised: no hook has seen it.
            message: text(&*payload),
            place: None,
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
                LAST.set(Some(seen(info)));
            } else {
                before(info);
            }
        }));
    });
}

fn seen(info: &PanicHookInfo<'_>) -> Panicked {
    let place = info.location().map(|location| (location.file().to_owned(), location.line()));
    let backtrace = Backtrace::capture();
    let backtrace = (backtrace.status() == BacktraceStatus::Captured).then(|| Arc::new(backtrace));
    Panicked { message: text(info.payload()), place, backtrace }
}

fn text(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a panic without a message").to_owned()
}

/// What is between a panic and its cause.
const RAISING: &[&str] = &[
    "std::panicking::panic",
    "std::panicking::begin_panic",
    "core::panicking::",
    "rust_begin_unwind",
    "core::result::unwrap_failed",
    "core::option::unwrap_failed",
    "core::option::expect_failed",
];

/// What is between a test and whoever runs it.
const CATCHING: &[&str] =
    &["core::panic::unwind_safe::", "catch_unwind", "crate::panics::", "__rust_begin_short_backtrace"];

/// The frames of the standard library's text that are the test's.
fn frames(text: &str) -> Vec<Frame> {
    let mut frames: Vec<Frame> = Vec::new();
    for line in text.lines() {
        let line = line.trim_start();
        if let Some(place) = line.strip_prefix("at ") {
            let mut parts = place.rsplitn(3, ':');
            let (_column, line) = (parts.next(), parts.next().and_then(|line| line.parse().ok()));
            if let (Some(frame), Some(line), Some(file)) = (frames.last_mut(), line, parts.next()) {
                frame.place = Some((file.to_owned(), line));
            }
        } else if let Some((number, function)) = line.split_once(": ")
            && number.bytes().all(|c| c.is_ascii_digit())
        {
            frames.push(Frame { function: function.to_owned(), place: None });
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
    fn a_panic_has_a_message_and_a_place() {
        let line = line!() + 1;
        let panicked = catch(|| panic!("number {}", 7)).unwrap_err();
        assert_eq!(panicked.message, "number 7");
        assert_eq!(panicked.place, Some((file!().to_owned(), line)));
        assert_eq!(catch(|| 7).unwrap(), 7);
        let resumed = catch(|| panic::resume_unwind(Box::new("again"))).unwrap_err();
        assert_eq!((resumed.message.as_str(), resumed.place), ("again", None));
        let odd = catch(|| panic::panic_any(7)).unwrap_err();
        assert_eq!(odd.message, "a panic without a message");
        let place = Some(("src/a.rs".to_owned(), 7));
        let failure = Panicked { message: "m".into(), place, backtrace: None }.failure("a test");
        assert_eq!(failure, Failure::new("m").type_name("panic").frame("a test", "src/a.rs", 7));
    }

    #[test]
    fn the_stack_is_the_tests() {
        let text = "   0: std::panicking::panic_with_hook\n             at /rustc/x/library/std/src/panicking.rs:833:13\n   \
                    1: __rustc::rust_begin_unwind\n   2: core::panicking::panic_fmt\n             at /rustc/x/core/src/panicking.rs:80:14\n   \
                    3: shop::helper\n             at ./src/lib.rs:12:5\n   4: shop::test\n   \
                    5: crate::panics::catch\n   6: std::panicking::catch_unwind\n   7: main\n";
        let place = Some(("./src/lib.rs".to_owned(), 12));
        let expected = [
            Frame { function: "shop::helper".into(), place },
            Frame { function: "shop::test".into(), place: None },
        ];
        assert_eq!(frames(text), expected);
        assert_eq!(shown(&expected), "   at shop::helper in ./src/lib.rs:line 12\n   at shop::test");
    }
}

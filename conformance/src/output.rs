//! The only place that prints.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the only module that prints")]

use std::fmt::Display;

pub(crate) fn line(text: impl Display) {
    println!("{text}");
}

pub(crate) fn error(text: impl Display) {
    eprintln!("conformance: {text}");
}

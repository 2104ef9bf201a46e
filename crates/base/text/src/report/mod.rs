//! Reports as a summary and one or two tables.

mod events;
pub(crate) use self::events::full_name;
mod frames;
mod heap;
mod heap_diff;
mod heap_path;
pub use self::heap::{HeapDocument, HeapSource};
pub use self::heap_diff::HeapDiffDocument;
mod runtime;

use std::fmt::Display;

/// Placeholder for unknown values.
const UNKNOWN: &str = "-";

/// Formats a value that may be unknown.
fn known(value: Option<impl Display>) -> String {
    value.map_or_else(|| UNKNOWN.to_owned(), |value| value.to_string())
}

/// Formats a number with at most three decimals.
fn number(number: Option<f64>) -> String {
    known(number.map(|number| {
        let short = format!("{number:.3}");
        if short.contains('.') { short.trim_end_matches('0').trim_end_matches('.').to_owned() } else { short }
    }))
}

//! Reports as a sentence of totals and one or two tables.

mod events;
pub(crate) use self::events::full_name;
mod frames;
mod runtime;

use std::fmt::Display;

/// What stands where nothing is known.
const UNKNOWN: &str = "-";

/// A value, or that it is not known.
fn known(value: Option<impl Display>) -> String {
    value.map_or_else(|| UNKNOWN.to_owned(), |value| value.to_string())
}

/// A number with at most three decimals.
fn number(number: Option<f64>) -> String {
    known(number.map(|number| {
        let short = format!("{number:.3}");
        if short.contains('.') { short.trim_end_matches('0').trim_end_matches('.').to_owned() } else { short }
    }))
}

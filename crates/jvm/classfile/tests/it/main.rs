//! Tests of the library with real classes, and its properties for any input.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "what tests make is small enough for the fields of its format"
)]

mod balance;
mod far;
mod golden;
mod jars;
mod jdk;
mod laws;
mod reader;
mod rewriting;
mod shapes;
mod tables;
mod verify;

//! The screen of counters: all series with their values and a chart of each, in groups.

mod series;
mod state;
#[cfg(test)]
mod tests;
mod view;

pub use self::state::CounterScreen;

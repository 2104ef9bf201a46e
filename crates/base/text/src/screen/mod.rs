//! Full-screen terminal interfaces.
//!
//! - `list`, `prompt`, `counters`, `top`: the content of screens, independent of a terminal; `paint`: what they draw with.
//! - `input`, `terminal`: the two directions of the terminal.
//! - `shown`: a screen that is drawn while its data changes.

mod counters;
mod input;
mod list;
mod paint;
mod prompt;
mod shown;
mod terminal;
#[cfg(test)]
mod testing;
mod top;

pub use self::counters::CounterScreen;
pub use self::input::Key;
pub(crate) use self::input::listen;
pub(crate) use self::list::WHEEL_STEP;
pub use self::shown::{ShownScreen, View, close};
pub(crate) use self::terminal::{Screen, ScreenBackend};
pub use self::top::TopScreen;

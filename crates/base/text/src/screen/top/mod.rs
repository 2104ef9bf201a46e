//! The screen of the hottest methods and threads.

mod state;
#[cfg(test)]
mod tests;
mod view;

pub use self::state::TopScreen;

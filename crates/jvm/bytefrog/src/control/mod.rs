//! The control socket of a collector: one command per line from scripts, each answered with one line (docs/jvm.md).
//!
//! - [`ControlCommand`]: the commands.
//! - [`serve`], [`send`]: the two ends of the socket.

mod client;
mod command;
mod server;

pub use self::client::{SendError, send};
pub use self::command::{ClassFilter, ControlCommand, ControlError};
pub use self::server::serve;

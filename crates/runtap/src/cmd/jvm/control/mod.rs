//! The control socket of `jvm hq`: one command per line from scripts, answered with one line of JSON each (docs/jvm.md).
//!
//! - `order`: the commands.
//! - `answer`: their execution and the answers.
//! - `server`, `client`: the two ends of the socket.

mod answer;
mod client;
mod order;
mod server;

pub(super) use self::answer::execute;
pub(super) use self::client::send;
pub(super) use self::order::ControlCommand;
pub(super) use self::server::{Context, serve};

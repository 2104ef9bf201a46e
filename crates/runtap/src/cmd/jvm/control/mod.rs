//! The control socket of `jvm hq`: commands from scripts, a line each, answers as lines of JSON (docs/jvm.md).
//!
//! - `order`: what can be said. - `answer`: what is answered. - `server`, `client`: the two ends.

mod answer;
mod client;
mod order;
mod server;

pub(super) use self::answer::carry_out;
pub(super) use self::client::send;
pub(super) use self::order::Order;
pub(super) use self::server::{Context, serve};

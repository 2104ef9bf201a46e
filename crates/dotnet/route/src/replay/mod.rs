//! Replay of recordings: as the runtime, to tools that repeat the requests; as the client, to a live runtime.
//!
//! - [`Player`] is the runtime: the n-th request that equals a recorded one receives the bytes of the n-th reply, and the
//!   stream of its session. Data after a `StopTracing` in a stream is sent after the session was stopped again, and the reply
//!   to that after the stream; all other data at the recorded times, or immediately.
//! - [`ask`] is the client: each request is decoded, validated and encoded again before it is sent, so that no request can
//!   crash a runtime; the replies are compared field by field.
//!
//! Does not print, and sends a live runtime only what runtap's own client would send.

mod client;
mod data;
mod playing;
mod report;
mod runtime;
mod talk;

pub use self::client::{Asking, ask};
pub use self::playing::{Playing, ToolConnection};
pub use self::report::{Difference, Exchange, Report, Verdict};
pub use self::runtime::{Played, Player};
pub use self::talk::{Talk, TalkError};

//! Plays what was recorded: as the runtime, to tools that ask again; as the client, to a runtime that lives.
//!
//! - [`Player`] is the runtime: the n-th request that equals a recorded one gets the bytes of its n-th reply, and the stream
//!   of its session. What follows a `StopTracing` in a stream is sent after the session was stopped again, and the answer to
//!   that after the stream; everything else at the times that were recorded, or at once.
//! - [`ask`] is the client: each request is decoded, checked and encoded again before it is sent, so that nothing is sent
//!   which a runtime may die of; the replies are compared field by field.
//!
//! Refuses to print, and to send a live runtime anything that our own client would not.

mod client;
mod data;
mod playing;
mod report;
mod runtime;
mod talk;

pub use self::client::{Asking, ask};
pub use self::playing::{Heard, Playing};
pub use self::report::{Difference, Exchange, Report, Verdict};
pub use self::runtime::{Played, Player};
pub use self::talk::{Talk, TalkError};

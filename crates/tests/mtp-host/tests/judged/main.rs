//! What a host says, judged by the server's state machine: every message is decoded, every rule is checked.

mod help;
mod judge;
mod messages;
mod results;
mod runs;

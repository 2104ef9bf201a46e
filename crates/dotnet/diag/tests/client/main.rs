//! The client library with scripted peers on real Unix sockets.

mod blocking;
mod commands;
mod direct;
mod effects;
mod ports;
mod sessions;
mod support;
mod user_events;

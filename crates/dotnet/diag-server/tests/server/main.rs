//! The embeddable server on real sockets.

#![cfg(target_os = "linux")]

mod commands;
mod handlers;
mod hostile;
mod ports;
mod sessions;
mod target;

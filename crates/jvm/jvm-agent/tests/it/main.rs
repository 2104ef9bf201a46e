//! The agent in real JVMs, with runtap's HQ.

#![cfg(target_os = "linux")]

mod bench;
mod common;
mod constructors;
mod counts;
mod crowds;
mod faults;
mod gate;
mod headers;
mod library;
mod lines;
mod losses;
mod modes;
mod oracle;
mod parked;
mod real_defects;
mod real_modules;
mod real_others;
mod real_programs;
mod real_recorded;
mod sweep;
mod vanished;

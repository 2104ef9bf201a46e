//! Finding processes, and saying what stands in the way.

#![cfg(target_os = "linux")]

mod crowds;
mod decoys;
mod fake;
mod jvms;
mod reasons;
mod search;

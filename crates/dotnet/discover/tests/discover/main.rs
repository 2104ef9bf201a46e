//! Finding processes, and reporting why one can't be reached.

#![cfg(target_os = "linux")]

mod crowds;
mod decoys;
mod fake;
mod jvms;
mod reasons;
mod search;

//! A run of tests as its user asked for it, between the plan's values and the runner's processes:
//!
//! | module | owns |
//! | --- | --- |
//! | [`artifacts`] | copies of the files that applications leave |
//! | [`config`] | where `runtap.toml` is found, and whether it may be believed |
//! | [`plan`] | which tests of which modules become jobs, in which order, in how many processes |
//! | [`rules`] | what holds for single tests: overrides and quarantine |
//! | [`listing`] | what applications tell of tests that they have run |
//! | [`history`] | the files of earlier runs, and what a run adds to them |
//!
//! [`runtap_test::plan`] has the decisions without files and processes, [`run`](crate::run) the processes.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")
)]

pub mod artifacts;
mod begun;
pub mod config;
mod facts;
mod fingerprint;
pub mod history;
mod known;
pub mod listing;
mod own_file;
pub mod plan;
mod recorder;
pub mod rules;

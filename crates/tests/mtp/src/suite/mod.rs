//! A run of tests as the user specified it, between the configuration and the processes:
//!
//! | module | purpose |
//! | --- | --- |
//! | [`artifacts`] | copies of the files that applications leave |
//! | [`config`] | search for `runtap.toml`, and whether it can be trusted |
//! | [`dotnet_options`] | options of `dotnet test` that a run ignores or rejects |
//! | [`plan`] | selection of tests, and their assignment to jobs |
//! | [`rules`] | rules for single tests: overrides and quarantine |
//! | [`listing`] | properties that applications list for tests that they have run |
//! | [`history`] | the files of earlier runs |
//! | [`settings`] | the options of the command line merged over those of `runtap.toml` |
//! | [`report`] | collection of results, and the reports of the run |
//!
//! [`runtap_test::plan`] makes the decisions without files and processes, and [`run`](crate::run) runs the processes.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")
)]

pub mod artifacts;
pub mod config;
mod discovery;
pub mod dotnet_options;
mod facts;
mod fingerprint;
pub mod history;
pub mod listing;
mod own_file;
pub mod plan;
mod recorder;
pub mod report;
pub mod rules;
mod run_marks;
pub mod settings;

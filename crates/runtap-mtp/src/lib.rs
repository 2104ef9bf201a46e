//! Runs test applications of Microsoft.Testing.Platform, without an SDK.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")
)]

mod child;
mod command;
mod dotnet;
mod event;
mod find;
mod launch;
mod module;
mod output;
mod pipe;
mod run;
mod scratch;
mod stop;
mod tally;
mod tree;

pub use child::Exit;
pub use command::{ApplicationOptions, Mode};
pub use dotnet::{NoDotnet, find_dotnet};
pub use event::*;
pub use find::{FindError, find_modules};
pub use module::{Module, ModuleKind};
pub use output::Output;
pub use run::{Job, Outcome, RunSpec, Timeouts, code, run};
pub use stop::{Stop, StopLevel};
pub use tally::Totals;

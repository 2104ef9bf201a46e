//! Decides which tests run, where and in which order, for a runner of Microsoft.Testing.Platform applications.
//!
//! A *module* is a test application; a *test* is a test node of the application, with a uid that is unique in its
//! module. The parts can be used independently:
//!
//! | part | question |
//! | --- | --- |
//! | [`Filter`] | does a test match the expression that the user wrote? |
//! | [`Partition`] | does a test belong to this part of the tests? |
//! | [`History`] | how long did a test take, and how did it end, in earlier runs? |
//! | [`schedule()`] | in which order do modules start, and which are split into several processes? |
//! | [`Config`] | which options does `runtap.toml` set? |
//!
//! The module only handles texts, bytes and values: it starts no process, opens no file and reads no clock. Times are
//! arguments.
//!
//! ```
//! use runtap_test::plan::{Filter, Partition, Test, TestKey};
//!
//! let filter: Filter = "namespace = Shop.Orders and not category = Slow".parse()?;
//! let mut test = Test::new("a1", "Adds a line");
//! test.namespace = Some("Shop.Orders".into());
//! assert!(filter.matches(&test));
//!
//! let partition: Partition = "count:1/2".parse()?;
//! let keys = [TestKey::new("Shop.Tests", "a1"), TestKey::new("Shop.Tests", "a2"), TestKey::new("Shop.Tests", "a3")];
//! assert_eq!(partition.select(&keys), [0, 2]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::disallowed_methods)]
#![warn(clippy::cast_possible_truncation)]

mod config;
mod filter;
mod history;
mod partition;
mod schedule;
mod test;

pub use config::{Config, ConfigError, Flaky, Limit, Options, Override, PerTest, ProfileError, Report};
pub use filter::{Filter, FilterError, ModuleMatch, Unmet};
pub use history::{
    AddError, Finished, Flakiness, History, HistoryError, Limits, ModuleHistory, ModuleKey, ModuleRun,
    PastOutcome, Seen, TestHistory, add_run,
};
pub use partition::{Partition, PartitionError, TestKey};
pub use schedule::{Module, Process, ProcessTests, Schedule, ScheduleOptions, TestCost, schedule};
pub use test::Test;

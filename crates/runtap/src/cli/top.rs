//! The options of `runtap top`.

use std::time::Duration;

use clap::Args;
use runtap_model::View;

use super::choices::choice_of;
use super::{ResultFormat, Target};
use runtap_text::units::{parse_duration, parse_rows, parse_time_limit};

#[derive(Debug, Args)]
#[command(after_help = "\
On a terminal, a full-screen view with the methods, the threads, and the calls of a method; '?' shows its keys. \
Otherwise, a table after each interval.

Examples:
  runtap top 1234
  runtap top -n MyService --view thread-time     also of waiting threads
  runtap top 1234 --duration 10s --number 5 | cat
  runtap top 1234 --format json | jq '.methods[0]'")]
pub(crate) struct Top {
    #[command(flatten)]
    pub(crate) target: Target,
    /// Time between two updates
    #[arg(long, value_name = "TIME", default_value = "1", value_parser = parse_duration, help_heading = "Samples")]
    pub(crate) refresh_interval: Duration,
    /// Time that the shares refer to: the latest samples
    #[arg(long, value_name = "TIME", default_value = "5", value_parser = parse_duration, help_heading = "Samples")]
    pub(crate) window: Duration,
    /// Samples to count
    #[arg(long, value_name = "VIEW", default_value = "cpu", value_parser = choice_of::<View>(|view| view.is_sampled()),
        help_heading = "Samples")]
    pub(crate) view: View,
    /// Sort by total (inclusive) instead of self (exclusive)
    #[arg(long, help_heading = "Samples")]
    pub(crate) inclusive: bool,
    /// Stop after this time: 30s, 250ms, 1m30s, plain seconds, dd:hh:mm:ss
    #[arg(long, value_name = "TIME", value_parser = parse_time_limit, help_heading = "Samples")]
    pub(crate) duration: Option<Duration>,
    /// Maximum number of methods in a table or a line of JSON [default: 20 in a table, all in JSON]
    #[arg(long, value_name = "N", value_parser = parse_rows)]
    pub(crate) number: Option<usize>,
    #[command(flatten)]
    pub(crate) format: ResultFormat,
}

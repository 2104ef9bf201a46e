//! The finer points of a session, as clap sees them.

use clap::Args;
use runtap_diag::Buffering;

use super::choices::choice;
use crate::units::parse_hex;

/// What few people need.
#[derive(Debug, Args, Clone, Copy, Default)]
#[command(next_help_heading = "Recording")]
pub(crate) struct SessionDetails {
    /// Which rundown events to request at the end, as a keyword mask (hexadecimal; 0 for none). Needs .NET 9
    #[arg(long, value_name = "HEX", conflicts_with = "rundown", value_parser = parse_hex)]
    pub(crate) rundown_keyword: Option<u64>,
    /// Record no stacks. Needs .NET 9
    #[arg(long)]
    pub(crate) no_stackwalk: bool,
    /// What the target does when its buffer is full
    #[arg(long, visible_alias = "buffering", value_name = "MODE", ignore_case = true, default_value = "drop",
        value_parser = choice::<Buffering>())]
    pub(crate) buffering_mode: Buffering,
}

/// Recording into the kernel.
#[derive(Debug, Args, Clone, Default)]
#[command(next_help_heading = "Events")]
pub(crate) struct UserEvents {
    /// Have the target write its events into tracepoints of the kernel, for perf and eBPF, instead of a file:
    /// `[PROVIDER[:IDS]=]TRACEPOINT`, where {provider} and {pid} are replaced; repeat it. Needs .NET 10 and Linux with
    /// `user_events`
    #[arg(long, value_name = "SPEC", conflicts_with_all = ["output", "to", "view", "evented", "command", "several", "no_stackwalk",
        "stopping_event_provider", "stopping_event_name", "stopping_event_payload"])]
    pub(crate) user_events: Vec<String>,
}

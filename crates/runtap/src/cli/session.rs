//! Advanced options of a recording session.

use clap::Args;
use runtap_diag::Buffering;

use super::choices::choice;
use runtap_text::units::parse_hex;

/// The advanced options of a session.
#[derive(Debug, Args, Clone, Copy, Default)]
#[command(next_help_heading = "Recording")]
pub(crate) struct SessionDetails {
    /// Keyword mask of the rundown events to request at the end (hexadecimal; 0 for none). Requires .NET 9 or later
    #[arg(long, value_name = "HEX", conflicts_with = "rundown", value_parser = parse_hex)]
    pub(crate) rundown_keyword: Option<u64>,
    /// Do not record stacks. Requires .NET 9 or later
    #[arg(long)]
    pub(crate) no_stackwalk: bool,
    /// What the target does when its buffer is full
    #[arg(long, visible_alias = "buffering", value_name = "MODE", ignore_case = true, default_value = "drop",
        value_parser = choice::<Buffering>())]
    pub(crate) buffering_mode: Buffering,
}

/// The options for recording to tracepoints of the kernel.
#[derive(Debug, Args, Clone, Default)]
#[command(next_help_heading = "Events")]
pub(crate) struct UserEvents {
    /// Write events to a kernel tracepoint, for perf and eBPF, instead of a file: `[PROVIDER[:IDS]=]TRACEPOINT`, in which
    /// {provider} and {pid} are replaced; repeatable. Requires .NET 10 or later and Linux with `user_events`
    #[arg(long, value_name = "SPEC", conflicts_with_all = ["output", "to", "view", "evented", "command", "several", "no_stackwalk",
        "stopping_event_provider", "stopping_event_name", "stopping_event_payload"])]
    pub(crate) user_events: Vec<String>,
}

//! The finer points of a session, as clap sees them.

use clap::{Args, ValueEnum};

/// What the target does when its buffer is full.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum BufferingMode {
    /// Events are lost
    #[default]
    #[value(alias = "Drop")]
    Drop,
    /// Its threads block until there is room; nothing is lost. Needs .NET 11
    #[value(alias = "Block")]
    Block,
}

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
    #[arg(
        long,
        visible_alias = "buffering",
        value_name = "MODE",
        ignore_case = true,
        default_value = "drop"
    )]
    pub(crate) buffering_mode: BufferingMode,
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

fn parse_hex(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
    // `from_str_radix` would take a sign.
    let value = digits.bytes().all(|b| b.is_ascii_hexdigit()).then(|| u64::from_str_radix(digits, 16).ok());
    value.flatten().ok_or_else(|| format!("'{text}' is no hexadecimal number of at most 64 bits"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_are_hexadecimal() {
        assert_eq!(parse_hex("0x80020139"), Ok(0x8002_0139));
        assert_eq!(parse_hex("0"), Ok(0));
        assert_eq!(parse_hex("ffffffffffffffff"), Ok(u64::MAX));
        for text in ["", "0x", "+1", "x", "10000000000000000"] {
            assert!(parse_hex(text).is_err(), "{text}");
        }
    }
}

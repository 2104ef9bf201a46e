//! `runtap jvm`: traces of Java programs from agents that use the Bytefrog protocol, implemented by [`runtap_bytefrog`].

#[cfg_attr(not(target_os = "linux"), path = "no_agents.rs")]
mod agents;
mod control;
mod hq;
mod replay;
mod report;

#[cfg(target_os = "linux")]
pub(super) use self::agents::explain;
pub(super) use self::hq::{collect_from, has_live_view};
pub(super) use self::report::{classify_error, convert, diff, find_operand, report_kind};

use runtap_text::Output;

use crate::cli::{Jvm, JvmVerb};

pub(super) fn run(options: Jvm, output: Output) -> anyhow::Result<u8> {
    match options.verb {
        JvmVerb::Hq(options) => hq::run(*options, output),
        JvmVerb::Agents(verb) => agents::run(verb, output),
        JvmVerb::Report(options) => report::run(&options, output),
        JvmVerb::Replay(options) => replay::run(&options, output),
    }
}

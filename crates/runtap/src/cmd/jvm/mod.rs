//! `runtap jvm`: what Java programs call, from agents that speak Bytefrog. The work is [`runtap_bytefrog`]'s.

#[cfg_attr(not(target_os = "linux"), path = "no_agents.rs")]
mod agents;
mod broken;
mod control;
mod coverage;
mod document;
mod hq;
#[cfg_attr(not(unix), path = "no_live.rs")]
mod live;
mod patterns;
mod replay;
mod report;
mod text;

pub(super) use self::agents::instead_of_attaching;
pub(super) use self::hq::collect_from;
pub(super) use self::live::possible as live_view;

use crate::cli::{Jvm, JvmVerb};
use crate::output::Output;

pub(super) fn run(options: Jvm, output: Output) -> anyhow::Result<u8> {
    match options.verb {
        JvmVerb::Hq(options) => hq::run(&options, output),
        JvmVerb::Agents(verb) => agents::run(verb, output),
        JvmVerb::Report(options) => report::run(&options, output),
        JvmVerb::Replay(options) => replay::run(&options, output),
    }
}

//! `runtap jvm`: traces of Java programs from agents that use the Bytefrog protocol, implemented by [`runtap_bytefrog`].

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

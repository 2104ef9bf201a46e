//! `runtap jvm`: what Java programs call, from agents that speak Bytefrog. The work is [`runtap_bytefrog`]'s.

#[cfg_attr(not(target_os = "linux"), path = "no_agent.rs")]
mod agent;
#[cfg(target_os = "linux")]
mod attach;
mod broken;
#[cfg(target_os = "linux")]
mod carried;
mod control;
mod coverage;
#[cfg(target_os = "linux")]
mod detach;
mod document;
mod hq;
#[cfg(target_os = "linux")]
mod library;
mod live;
mod loader;
mod patterns;
#[cfg(target_os = "linux")]
mod program;
mod replay;
mod report;
#[cfg(target_os = "linux")]
mod run;
mod text;

pub(super) use self::hq::collect_from;
pub(super) use self::live::is_possible as has_live_view;

use crate::cli::{Jvm, JvmVerb};
use crate::output::Output;

pub(super) fn run(options: Jvm, output: Output) -> anyhow::Result<u8> {
    match options.verb {
        JvmVerb::Hq(options) => hq::run(&options, output),
        JvmVerb::Run(options) => agent::run(*options, output),
        JvmVerb::Attach(options) => agent::attach(&options, output),
        JvmVerb::Agent(options) => agent::write(&options, output),
        JvmVerb::Detach(options) => agent::detach(&options, output),
        JvmVerb::Report(options) => report::run(&options, output),
        JvmVerb::Replay(options) => replay::run(&options, output),
    }
}

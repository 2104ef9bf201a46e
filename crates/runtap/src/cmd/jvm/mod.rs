//! `runtap jvm`: what Java programs call, from agents that speak Bytefrog. The work is [`runtap_bytefrog`]'s.

mod attach;
mod broken;
mod carried;
mod control;
mod coverage;
mod detach;
mod document;
mod hq;
mod library;
mod live;
mod patterns;
mod program;
mod replay;
mod report;
mod run;
mod text;

pub(super) use self::hq::collect_from;
pub(super) use self::live::is_possible as has_live_view;

use crate::cli::{Jvm, JvmVerb};
use crate::output::Output;

pub(super) fn run(options: Jvm, output: Output) -> anyhow::Result<u8> {
    match options.verb {
        JvmVerb::Hq(options) => hq::run(&options, output),
        JvmVerb::Run(options) => super::block_on(run::run(*options, output)),
        JvmVerb::Attach(options) => super::on_processes(attach::run(&options, output), output),
        JvmVerb::Agent(options) => library::run(&options, output),
        JvmVerb::Detach(options) => super::at_once(detach::run(&options, output), output),
        JvmVerb::Report(options) => report::run(&options, output),
        JvmVerb::Replay(options) => replay::run(&options, output),
    }
}

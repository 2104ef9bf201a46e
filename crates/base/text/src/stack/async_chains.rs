//! The async methods that wait, as chains: their text, and their part of the document.

use std::io;

use runtap_model::thread_dump::{AsyncChain, AsyncChains, AsyncFrame, Awaited, AwaitedKind};
use serde::Serialize;

use super::Page;
use crate::Clean;
use crate::units::{Count, Things};

/// The number of frames of a chain that are printed at each of its ends. The document has all frames.
const SHOWN_FRAMES: usize = 100;

#[derive(Serialize)]
pub(super) struct AsyncRow<'a> {
    methods: u64,
    chains: Vec<ChainRow<'a>>,
    omitted: u64,
    incomplete_reason: Option<&'a str>,
}

#[derive(Serialize)]
struct ChainRow<'a> {
    count: u64,
    waits_for: AwaitedRow<'a>,
    blocks_thread: bool,
    frames: Vec<AsyncFrameRow<'a>>,
}

#[derive(Serialize)]
struct AwaitedRow<'a> {
    kind: &'static str,
    name: Option<&'a str>,
}

#[derive(Serialize)]
struct AsyncFrameRow<'a> {
    name: &'a str,
    module: Option<&'a str>,
    kind: &'static str,
}

pub(super) fn async_row(chains: &AsyncChains) -> AsyncRow<'_> {
    AsyncRow {
        methods: chains.methods,
        chains: chains.chains.iter().map(chain_row).collect(),
        omitted: chains.omitted,
        incomplete_reason: chains.incomplete.as_deref(),
    }
}

fn chain_row(chain: &AsyncChain) -> ChainRow<'_> {
    let Awaited { kind, name } = &chain.awaited;
    ChainRow {
        count: chain.count,
        waits_for: AwaitedRow { kind: kind.name(), name: name.as_deref() },
        blocks_thread: chain.blocks_thread,
        frames: chain.frames.iter().map(frame_row).collect(),
    }
}

fn frame_row(frame: &AsyncFrame) -> AsyncFrameRow<'_> {
    let kind = if frame.is_method { "method" } else { "combinator" };
    AsyncFrameRow { name: &frame.name, module: frame.module.as_deref(), kind }
}

/// Writes the chains below the threads.
pub(super) fn print(chains: &AsyncChains, page: &Page<'_>, out: &mut dyn io::Write) -> io::Result<()> {
    let count = Things(chains.count(), "chain");
    let title = match chains.methods {
        0 => "No pending async methods".to_owned(),
        1 => "1 pending async method".to_owned(),
        methods => format!("{} pending async methods, in {count}", Count(methods)),
    };
    writeln!(out, "{}", page.line(title))?;
    for chain in &chains.chains {
        writeln!(out)?;
        let heading = page.options.heading();
        let title = match chain.count {
            1 => "Async chain".to_owned(),
            count => format!("{} equal async chains", Count(count)),
        };
        writeln!(out, "{heading}{}{heading:#}", page.line(title))?;
        writeln!(out, "{}", page.line(format!("  {}", awaited_text(&chain.awaited))))?;
        if chain.blocks_thread {
            writeln!(out, "  blocks a thread until the last method completes")?;
        }
        print_frames(&chain.frames, page, out)?;
    }
    if chains.omitted > 0 {
        writeln!(out, "\n{} not shown", Things(chains.omitted, "more chain"))?;
    }
    Ok(())
}

fn print_frames(frames: &[AsyncFrame], page: &Page<'_>, out: &mut dyn io::Write) -> io::Result<()> {
    let hidden = frames.len().saturating_sub(2 * SHOWN_FRAMES);
    let (first, rest) = frames.split_at(frames.len().min(SHOWN_FRAMES));
    let line = |frame: &AsyncFrame| {
        let module = frame.module.as_deref().map(|module| format!("{}!", Clean(module))).unwrap_or_default();
        page.line(format!("    {module}{}", Clean(&frame.name)))
    };
    first.iter().try_for_each(|frame| writeln!(out, "{}", line(frame)))?;
    if hidden > 0 {
        writeln!(out, "    … {} …", Things(hidden as u64, "more method"))?;
    }
    rest.iter().skip(hidden).try_for_each(|frame| writeln!(out, "{}", line(frame)))
}

fn awaited_text(awaited: &Awaited) -> String {
    let text = match awaited.kind {
        AwaitedKind::Delay => "waits for Task.Delay",
        AwaitedKind::Timer => "waits for a PeriodicTimer",
        AwaitedKind::Semaphore => "waits for a SemaphoreSlim",
        AwaitedKind::CompletionSource => "waits for a TaskCompletionSource",
        AwaitedKind::Channel => "waits for a channel",
        AwaitedKind::Socket => "waits for a socket",
        AwaitedKind::Task => "waits for a task",
        AwaitedKind::Method => "waits for a method in another chain",
        AwaitedKind::Cycle => {
            return "waits for the last method of this chain, so it never completes".to_owned();
        }
        AwaitedKind::Object => "waits for an object",
        AwaitedKind::Unknown => {
            return "runs, is ready to run, or waits for something unknown".to_owned();
        }
    };
    // The types of delays and semaphores are always equal.
    let is_enough = matches!(awaited.kind, AwaitedKind::Delay | AwaitedKind::Timer | AwaitedKind::Semaphore);
    match awaited.name.as_deref().filter(|_| !is_enough) {
        Some(name) => format!("{text}: {}", Clean(name)),
        None => text.to_owned(),
    }
}

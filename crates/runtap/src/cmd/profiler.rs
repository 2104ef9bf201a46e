//! `runtap profiler attach|startup`: loads a profiler into a process.

use std::time::Duration;

use runtap_diag::{AttachProfiler, StartupProfiler, Timeouts, profiler};
use runtap_target::ResolvedTarget;
use runtap_text::Output;
use runtap_wire::Uuid;

use super::failure::explain;
use super::target::{DotnetVerb, choose_all, each};
use crate::cli::{self, Profiler, ProfilerLibrary};
use crate::exit::{self, usage};

/// Added to the profiler's time-out, which does not include loading the library.
const LOAD_TIME: Duration = Duration::from_secs(30);

pub(super) async fn run(options: Profiler, output: Output) -> anyhow::Result<u8> {
    match options {
        Profiler::Attach(options) => attach(&options, output).await,
        Profiler::Startup(options) => startup(&options, output).await,
    }
}

async fn attach(options: &cli::AttachProfiler, output: Output) -> anyhow::Result<u8> {
    let (class_id, path) = library(&options.library)?;
    let profiler = AttachProfiler {
        class_id,
        path,
        timeout_ms: u32::try_from(options.timeout.as_millis()).unwrap_or(u32::MAX),
        client_data: data(options.data.as_deref().unwrap_or_default())?,
    };
    let all = choose_all(&options.target, options.all.all, DotnetVerb::PROFILER, output).await?;
    let attach = async |chosen: ResolvedTarget, output: Output| {
        let mut timeouts = Timeouts::default();
        timeouts.load = options.timeout.saturating_add(LOAD_TIME);
        let client = chosen.client.with_timeouts(timeouts);
        client.attach_profiler(&profiler).await.map_err(explain)?;
        output.note(format_args!("{} is attached", profiler.path));
        Ok(exit::OK)
    };
    each(all, output, attach).await
}

async fn startup(options: &cli::StartupProfiler, output: Output) -> anyhow::Result<u8> {
    let (class_id, path) = library(&options.library)?;
    let profiler = StartupProfiler { class_id, path };
    let all = choose_all(&options.target, options.all.all, DotnetVerb::PROFILER, output).await?;
    let set = async |chosen: ResolvedTarget, output: Output| {
        chosen.client.startup_profiler(&profiler).await.map_err(explain)?;
        output.note(format_args!(
            "{} will be loaded when the program resumes ('runtap resume')",
            profiler.path
        ));
        Ok(exit::OK)
    };
    each(all, output, set).await
}

fn library(ProfilerLibrary { clsid, path }: &ProfilerLibrary) -> anyhow::Result<(Uuid, String)> {
    profiler::library(clsid, path).map_err(|error| usage(error.to_string()))
}

fn data(text: &str) -> anyhow::Result<Vec<u8>> {
    profiler::data(text).map_err(|error| usage(error.to_string()))
}

//! `runtap startup-hook`

use runtap_target::Subject;

use super::failure::explain;
use super::target::{choose_all, each, first_word, refuse_remote};
use crate::cli::StartupHook;
use crate::exit::{self, usage};
use crate::output::Output;

pub(super) async fn run(options: &StartupHook, output: Output) -> anyhow::Result<u8> {
    let (target, words) =
        first_word(&options.target, &options.words, "the absolute path of the assembly (/…)")?;
    let [path] = words else {
        return Err(usage("a process is named by an option already: give the path of one assembly"));
    };
    let all = choose_all(&target, options.all.all, output).await?;
    refuse_remote(
        &all,
        "the assembly lies on the target's machine, and a wrong one would end the program: it is checked there",
    )?;
    let apply = async |chosen: Subject, output: Output| {
        chosen.client.apply_startup_hook(path).await.map_err(explain)?;
        output.note(format_args!("the runtime has taken {path}"));
        Ok(exit::OK)
    };
    each(all, output, apply).await
}

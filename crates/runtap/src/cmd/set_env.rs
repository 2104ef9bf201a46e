//! `runtap set-env`: sets or removes environment variables of processes.

use runtap_diag::environment::Change;
use runtap_target::ResolvedTarget;
use runtap_text::Output;

use super::failure::explain;
use super::target::{DotnetVerb, choose_all, each, split_target};
use crate::cli::SetEnv;
use crate::exit::{self, usage};

pub(super) async fn run(options: &SetEnv, output: Output) -> anyhow::Result<u8> {
    let (target, words) = split_target(&options.target, &options.words, "NAME=VALUE")?;
    // Parse all words before the first change takes effect.
    let changes = words.iter().map(|word| Change::parse(word)).collect::<Result<Vec<_>, _>>();
    let changes = changes.map_err(|error| usage(error.to_string()))?;
    let all = choose_all(&target, options.all.all, DotnetVerb::SET_ENV, output).await?;
    each(all, output, async |chosen, output| set_variables(&chosen, &changes, output).await).await
}

async fn set_variables(
    chosen: &ResolvedTarget,
    changes: &[Change<'_>],
    output: Output,
) -> anyhow::Result<u8> {
    for Change { name, value } in changes {
        chosen.client.set_environment_variable(name, *value).await.map_err(explain)?;
        match value {
            Some(value) => output.detail(format_args!("{name} is set to '{value}'")),
            None => output.detail(format_args!("{name} is removed")),
        }
    }
    Ok(exit::OK)
}

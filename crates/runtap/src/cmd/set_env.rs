//! `runtap set-env`

use runtap_diag::environment::Change;
use runtap_target::ResolvedTarget;

use super::failure::explain;
use super::target::{choose_all, each, first_word};
use crate::cli::SetEnv;
use crate::exit::{self, usage};
use crate::output::Output;

pub(super) async fn run(options: &SetEnv, output: Output) -> anyhow::Result<u8> {
    let (target, words) = first_word(&options.target, &options.words, "NAME=VALUE")?;
    // A mistake in the last word is told before the first one has an effect.
    let changes = words.iter().map(|word| Change::parse(word)).collect::<Result<Vec<_>, _>>();
    let changes = changes.map_err(|error| usage(error.to_string()))?;
    let all = choose_all(&target, options.all.all, output).await?;
    each(all, output, async |chosen, output| set(&chosen, &changes, output).await).await
}

async fn set(chosen: &ResolvedTarget, changes: &[Change<'_>], output: Output) -> anyhow::Result<u8> {
    for Change { name, value } in changes {
        chosen.client.set_environment_variable(name, *value).await.map_err(explain)?;
        match value {
            Some(value) => output.detail(format_args!("{name} is set to '{value}'")),
            None => output.detail(format_args!("{name} is removed")),
        }
    }
    Ok(exit::OK)
}

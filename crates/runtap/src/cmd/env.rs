//! `runtap env`: prints the environment variables of processes.

use runtap_text::document::{EnvironmentDocument, Variable};

use super::failure::explain;
use super::target::choose_all;
use crate::cli::Processes;
use crate::output::Output;

pub(super) async fn run(options: &Processes, output: Output) -> anyhow::Result<u8> {
    let all = choose_all(&options.target, options.all.all, output).await?;
    let (several, output) = (all.len() > 1, output.for_results(all.len()));
    for chosen in &all {
        let entries = chosen.client.environment().await.map_err(explain)?;
        let variables = entries.iter().map(|entry| Variable {
            name: entry.name().to_owned(),
            value: entry.value().unwrap_or_default().to_owned(),
        });
        let pid = chosen.process.as_ref().map(|process| process.pid);
        let document = EnvironmentDocument::new(pid, variables.collect());
        if output.json() {
            output.document(&document)?;
        } else {
            // The heading is a comment, so that a shell can read the output.
            let heading = pid.filter(|_| several).map(|pid| format!("# process {pid}"));
            output.data(heading.into_iter().chain(document.lines()))?;
        }
    }
    Ok(crate::exit::OK)
}

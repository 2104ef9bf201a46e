//! `runtap env`: prints the environment variables of .NET processes, as their runtimes report them, and those with which Java
//! programs were started.

use runtap_target::ManagedTarget;
use runtap_text::Output;
use runtap_text::document::{EnvironmentDocument, Variable};

use super::failure::explain;
use super::target::{choose_managed, target_error};
use crate::cli::Processes;

pub(super) async fn run(options: &Processes, output: Output) -> anyhow::Result<u8> {
    let all = choose_managed(&options.target, options.all.all, output).await?;
    let (several, output) = (all.len() > 1, output.for_results(all.len()));
    for chosen in &all {
        let (pid, document) = match chosen {
            ManagedTarget::Dotnet(chosen) => {
                let entries = chosen.client.environment().await.map_err(explain)?;
                let variables = entries.iter().map(|entry| variable(entry.name(), entry.value()));
                let pid = chosen.process.as_ref().map(|process| process.pid);
                (pid, EnvironmentDocument::new(pid, variables.collect()))
            }
            ManagedTarget::Jvm(chosen) => {
                let entries = match chosen.environment().await {
                    Ok(entries) => entries,
                    Err(error) => return Err(target_error(error, "", output).await),
                };
                let variables = entries.iter().map(|entry| match entry.split_once('=') {
                    Some((name, value)) => variable(name, Some(value)),
                    None => variable(entry, None),
                });
                if !output.json() {
                    output.note(format_args!("the environment with which {chosen} was started"));
                }
                let pid = Some(chosen.pid());
                (pid, EnvironmentDocument::new(pid, variables.collect()).at_startup())
            }
        };
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

fn variable(name: &str, value: Option<&str>) -> Variable {
    Variable { name: name.to_owned(), value: value.unwrap_or_default().to_owned() }
}

//! `runtap env`

use runtap_target::Subject;
use serde::Serialize;

use super::failure::explain;
use super::target::choose_all;
use crate::cli::Info;
use crate::output::Output;

const SCHEMA: &str = "runtap.env/1";

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    /// Null for a bare port.
    pid: Option<u32>,
    variables: Vec<Variable>,
}

#[derive(Serialize)]
struct Variable {
    name: String,
    value: String,
}

pub(super) async fn run(options: &Info, output: Output) -> anyhow::Result<u8> {
    let all = choose_all(&options.target, options.all.all, output).await?;
    let several = all.len() > 1;
    for chosen in &all {
        let variables = variables(chosen).await?;
        let pid = chosen.process.as_ref().map(|process| process.pid);
        match (output.json(), several) {
            (true, true) => output.document_line(&Document { schema: SCHEMA, pid, variables })?,
            (true, false) => output.document(&Document { schema: SCHEMA, pid, variables })?,
            (false, _) => {
                // What belongs to whom, in a form that a shell passes over.
                let heading = pid.filter(|_| several).map(|pid| format!("# process {pid}"));
                let lines = variables.iter().map(|Variable { name, value }| format!("{name}={value}"));
                output.data(heading.into_iter().chain(lines))?;
            }
        }
    }
    Ok(crate::exit::OK)
}

async fn variables(chosen: &Subject) -> anyhow::Result<Vec<Variable>> {
    let entries = chosen.client.environment().await.map_err(explain)?;
    let mut variables: Vec<Variable> = entries
        .iter()
        .map(|entry| Variable {
            name: entry.name().to_owned(),
            value: entry.value().unwrap_or_default().to_owned(),
        })
        .collect();
    variables.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(variables)
}

//! `runtap env`

use serde::Serialize;

use super::failure::explain;
use super::target::choose;
use crate::cli::Target;
use crate::output::Output;

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    variables: Vec<Variable>,
}

#[derive(Serialize)]
struct Variable {
    name: String,
    value: String,
}

pub(super) async fn run(target: &Target, output: Output) -> anyhow::Result<u8> {
    let chosen = choose(target, output).await?;
    let entries = chosen.client.environment().await.map_err(explain)?;
    let mut variables: Vec<Variable> = entries
        .iter()
        .map(|entry| Variable {
            name: entry.name().to_owned(),
            value: entry.value().unwrap_or_default().to_owned(),
        })
        .collect();
    variables.sort_by(|a, b| a.name.cmp(&b.name));
    if output.json() {
        output.document(&Document { schema: "runtap.env/1", variables })?;
    } else {
        output.data(variables.iter().map(|Variable { name, value }| format!("{name}={value}")))?;
    }
    Ok(crate::exit::OK)
}

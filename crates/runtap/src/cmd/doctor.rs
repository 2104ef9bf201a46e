//! `runtap doctor`

use runtap_doctor::Finding;
use runtap_target::Diagnosed;
use runtap_text::TextOptions;
use runtap_text::document::{Examined, FindingRow, FindingsDocument};

use super::fix;
use super::target::examine;
use crate::cli::Processes;
use crate::exit;
use crate::output::Output;

const EMPTY: &str = "no process looks like .NET; 'runtap demo' has a program built in";
const DETAILS: &str = "'runtap doctor PID' shows details and fixes";

pub(super) async fn run(options: &Processes, output: Output) -> anyhow::Result<u8> {
    match examine(&options.target, options.all.all, output).await? {
        runtap_target::Examined::Named(diagnosed) => {
            let output = output.for_results(diagnosed.len());
            let codes = diagnosed
                .iter()
                .map(|diagnosed_one| one(diagnosed_one, output))
                .collect::<anyhow::Result<Vec<_>>>()?;
            // The first that can't be reached decides.
            Ok(codes.into_iter().find(|code| *code != exit::OK).unwrap_or(exit::OK))
        }
        runtap_target::Examined::All(diagnosed, machine) => {
            let diagnosed = diagnosed.iter().map(row).collect();
            show(&FindingsDocument::of_all(diagnosed, findings(&machine), EMPTY), output)?;
            Ok(exit::OK)
        }
    }
}

fn one(diagnosed: &Diagnosed, output: Output) -> anyhow::Result<u8> {
    for step in diagnosed.examination.facts.steps() {
        output.detail(format_args!("looked at {step}"));
    }
    show(&FindingsDocument::of(row(diagnosed)), output)?;
    Ok(if diagnosed.diagnosis.reachable { exit::OK } else { exit::NO_TARGET })
}

fn show(document: &FindingsDocument<'_>, output: Output) -> anyhow::Result<()> {
    if output.json() {
        return output.document(document);
    }
    output.print(document, &TextOptions { more: Some(DETAILS), ..output.options() })
}

fn row(diagnosed: &Diagnosed) -> Examined<'_> {
    Examined {
        pid: Some(diagnosed.examination.facts.pid),
        name: (!diagnosed.name.is_empty()).then_some(&*diagnosed.name),
        reachable: Some(diagnosed.diagnosis.reachable),
        findings: findings(&diagnosed.diagnosis.findings),
    }
}

fn findings(findings: &[Finding]) -> Vec<FindingRow<'_>> {
    findings
        .iter()
        .map(|finding| FindingRow {
            code: finding.code.name(),
            severity: finding.severity.name(),
            detail: &finding.detail,
            fix: fix::text(&finding.fixes),
        })
        .collect()
}

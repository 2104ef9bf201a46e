//! `runtap doctor`

use runtap_doctor::Finding;
use runtap_target::Patient;
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
        runtap_target::Examined::Named(patients) => {
            let output = output.for_results(patients.len());
            let codes =
                patients.iter().map(|patient| one(patient, output)).collect::<anyhow::Result<Vec<_>>>()?;
            // The first that can't be reached decides.
            Ok(codes.into_iter().find(|code| *code != exit::OK).unwrap_or(exit::OK))
        }
        runtap_target::Examined::All(patients, machine) => {
            let patients = patients.iter().map(row).collect();
            show(&FindingsDocument::of_all(patients, findings(&machine), EMPTY), output)?;
            Ok(exit::OK)
        }
    }
}

fn one(patient: &Patient, output: Output) -> anyhow::Result<u8> {
    for step in patient.examination.facts.steps() {
        output.detail(format_args!("looked at {step}"));
    }
    show(&FindingsDocument::of(row(patient)), output)?;
    Ok(if patient.diagnosis.reachable { exit::OK } else { exit::NO_TARGET })
}

fn show(document: &FindingsDocument<'_>, output: Output) -> anyhow::Result<()> {
    if output.json() {
        return output.document(document);
    }
    output.print(document, &TextOptions { more: Some(DETAILS), ..output.options() })
}

fn row(patient: &Patient) -> Examined<'_> {
    Examined {
        pid: Some(patient.examination.facts.pid),
        name: (!patient.name.is_empty()).then_some(&*patient.name),
        reachable: Some(patient.diagnosis.reachable),
        findings: findings(&patient.diagnosis.findings),
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

//! `runtap doctor`: examines why processes can or cannot be reached.

use runtap_discover::ProcessKind;
use runtap_target::Diagnosed;
use runtap_target::doctor::Finding;
use runtap_target::fixes;
use runtap_text::TextOptions;
use runtap_text::document::{Examined, FindingRow, FindingsDocument};

use super::target::examine;
use crate::cli::Processes;
use crate::exit;
use crate::output::Output;

const EMPTY: &str = "No .NET or Java processes found. Try 'runtap demo', which uses a built-in program.";
const DETAILS: &str = "'runtap doctor PID' shows details and fixes";

pub(super) async fn run(options: &Processes, output: Output) -> anyhow::Result<u8> {
    match examine(&options.target, options.all.all, output).await? {
        runtap_target::Examined::Named(diagnosed) => {
            let output = output.for_results(diagnosed.len());
            let mut code = exit::OK;
            for diagnosed in &diagnosed {
                let code_of_process = print_diagnosis(diagnosed, output).await?;
                // The exit code is that of the first unreachable process.
                if code == exit::OK {
                    code = code_of_process;
                }
            }
            Ok(code)
        }
        runtap_target::Examined::All(diagnosed, machine) => {
            let mut rows = Vec::new();
            for diagnosed in &diagnosed {
                rows.push(row(diagnosed).await);
            }
            show(&FindingsDocument::of_all(rows, findings(&machine).await, EMPTY), output)?;
            Ok(exit::OK)
        }
    }
}

async fn print_diagnosis(diagnosed: &Diagnosed, output: Output) -> anyhow::Result<u8> {
    for step in diagnosed.examination.facts.steps() {
        output.detail(format_args!("Checked {step}"));
    }
    show(&FindingsDocument::of(row(diagnosed).await), output)?;
    Ok(if diagnosed.diagnosis.reachable { exit::OK } else { exit::NO_TARGET })
}

fn show(document: &FindingsDocument<'_>, output: Output) -> anyhow::Result<()> {
    if output.json() {
        return output.document(document);
    }
    output.print(document, &TextOptions { more: Some(DETAILS), ..output.options() })
}

async fn row(diagnosed: &Diagnosed) -> Examined<'_> {
    let facts = &diagnosed.examination.facts;
    let kind = match (facts.is_jvm(), facts.is_dotnet()) {
        (true, _) => Some(ProcessKind::Jvm.name()),
        (false, true) => Some(ProcessKind::Dotnet.name()),
        (false, false) => None,
    };
    Examined {
        kind,
        pid: Some(diagnosed.examination.facts.pid),
        name: (!diagnosed.name.is_empty()).then_some(&*diagnosed.name),
        reachable: Some(diagnosed.diagnosis.reachable),
        findings: findings(&diagnosed.diagnosis.findings).await,
    }
}

async fn findings(findings: &[Finding]) -> Vec<FindingRow<'_>> {
    let mut rows = Vec::new();
    for finding in findings {
        rows.push(FindingRow {
            code: finding.code.name(),
            severity: finding.severity.name(),
            detail: &finding.detail,
            fix: fixes::text_after_checking_jvm(&finding.fixes).await,
        });
    }
    rows
}

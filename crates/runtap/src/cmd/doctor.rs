//! `runtap doctor`: examines why processes can or cannot be reached.

use runtap_discover::ProcessKind;
use runtap_target::Diagnosed;
use runtap_target::doctor::Finding;
use runtap_target::fixes;
use runtap_target::messages::NONE_FOUND;
use runtap_text::document::{Examined, FindingRow, FindingsDocument};
use runtap_text::{Output, TextOptions};

use super::target::examine;
use crate::cli::Processes;
use crate::exit;

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
            let document = FindingsDocument::of_all(rows, findings(&machine).await, NONE_FOUND);
            output.show_with(&document, &text_options(output))?;
            Ok(exit::OK)
        }
    }
}

async fn print_diagnosis(diagnosed: &Diagnosed, output: Output) -> anyhow::Result<u8> {
    for step in diagnosed.examination.facts.steps() {
        output.detail(format_args!("Checked {step}"));
    }
    output.show_with(&FindingsDocument::of(row(diagnosed).await), &text_options(output))?;
    Ok(if diagnosed.diagnosis.reachable { exit::OK } else { exit::NO_TARGET })
}

fn text_options(output: Output) -> TextOptions<'static> {
    TextOptions { more: Some(DETAILS), ..output.options() }
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

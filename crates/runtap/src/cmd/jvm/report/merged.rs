//! `--merge-agents`: a combined report on all agents of a recording, such as the JVMs forked by a test run.

use runtap_bytefrog::CombinedReport;
use runtap_text::{Print, TextOptions};

use super::super::broken::BrokenRules;
use super::super::document::{AgentDocument, Classes, JvmDocument};
use super::super::text::ReportText;
use super::kinds;
use super::load::Operand;
use crate::cli::JvmReport;
use crate::output::Output;
use crate::units::Things;

pub(super) fn run(
    options: &JvmReport,
    operand: &Operand,
    shown: &TextOptions<'_>,
    output: Output,
) -> anyhow::Result<u8> {
    let (mut sums, mut classes) = (CombinedReport::default(), Classes::default());
    let code = operand.each(&options.agent, options.slow(), output, |agent| {
        sums.add(agent.report());
        classes = classes.and(agent.classes());
    })?;
    let (agents, report) = (sums.agents(), sums.report());
    let title = format!("{} together", Things(agents, "agent"));
    if options.kind.is_some() {
        let document = kinds::merged(options, operand, title, &report);
        if output.json() {
            output.document(&document)?;
        } else {
            output.print(&document, shown)?;
        }
    } else if output.json() {
        output.document(&JvmDocument::new(vec![AgentDocument::of_several(agents, &report, classes)]))?;
    } else {
        let broken = BrokenRules::default().with_report(&report);
        output.print(&ReportText { title, report: &report, classes, broken } as &dyn Print, shown)?;
    }
    Ok(code)
}

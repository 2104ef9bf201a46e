//! Comparisons of recordings: which methods ran in them, and what changed.

use runtap_bytefrog::Report;
use runtap_jvm::recording::{
    CalledMethods, Difference, LoadedAgent, Operand, Operation, Order, combine, have_times,
};
use runtap_text::TextOptions;
use runtap_text::jvm::{DifferenceDocument, OperandRow, SetsDocument};

use super::{classify_error, each, parse_operand, show, warn};
use crate::cli::JvmReport;
use crate::exit::usage;
use crate::output::Output;

/// Combines the methods that ran in the recordings.
pub(super) fn sets(
    options: &JvmReport,
    first: &Operand,
    shown: &TextOptions<'_>,
    output: Output,
) -> anyhow::Result<u8> {
    let sets = &options.sets;
    // Unions come before intersections and differences, whatever the order on the command line.
    let given = [(Operation::Or, &sets.or), (Operation::And, &sets.and), (Operation::Minus, &sets.minus)];
    let mut operands: Vec<(Operation, Operand)> = Vec::new();
    for (operation, texts) in given {
        for text in texts {
            operands.push((operation, parse_operand(text)?));
        }
    }
    let called = |operand: &Operand, agents: &[String]| -> anyhow::Result<(CalledMethods, u8)> {
        let mut called = CalledMethods::default();
        let code = each(operand, agents, options, output, |agent| called.add(&agent.report()))?;
        Ok((called, code))
    };
    let (base, mut code) = called(first, &options.agent)?;
    let mut rows = vec![OperandRow::new(None, first.label(), base.len())];
    let mut others = Vec::new();
    for (operation, operand) in &operands {
        // `--agent` selects agents of the first operand only; agents of the others may have other names.
        let (called, told) = called(operand, &[])?;
        code = code.max(told);
        rows.push(OperandRow::new(Some(*operation), operand.label(), called.len()));
        others.push((*operation, called));
    }
    let methods = combine(&base, &others);
    show(&SetsDocument::new(rows, methods, options.document_rows()), shown, output)?;
    Ok(code)
}

/// Compares two recordings, method by method.
pub(super) fn difference(
    options: &JvmReport,
    before: &Operand,
    after: &Operand,
    shown: &TextOptions<'_>,
    output: Output,
) -> anyhow::Result<u8> {
    let mut code = 0;
    let mut read = |operand: &Operand, agents: &[String]| -> anyhow::Result<Vec<Report>> {
        let loaded = operand.load(agents, options.slow()).map_err(classify_error)?;
        code = code.max(warn(&loaded, output));
        Ok(loaded.agents.iter().map(LoadedAgent::report).collect())
    };
    let (first, second) = (read(before, &[])?, read(after, &options.agent)?);
    let has_times = have_times(first.iter().chain(&second));
    let order = match options.sort {
        None if has_times => Order::Own,
        None | Some(Order::Calls) => Order::Calls,
        Some(order) if has_times => order,
        Some(_) => {
            return Err(usage(
                "one of the recordings has counts or coverage only, without times: --sort calls",
            ));
        }
    };
    let difference = Difference::new(&first, &second, order);
    let recordings = [before.label(), after.label()];
    let document =
        DifferenceDocument::new(&difference, order, recordings, has_times, options.document_rows());
    show(&document, shown, output)?;
    Ok(code)
}

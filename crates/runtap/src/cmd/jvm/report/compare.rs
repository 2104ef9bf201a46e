//! Comparisons of recordings: which methods ran in them, and what changed.

use std::time::Duration;

use runtap_bytefrog::Report;
use runtap_convert::source::{ProfileForm, ProfileSource as _};
use runtap_convert::{Content, Note, Planned, limit_depth, reject_overwriting, write_difference};
use runtap_jvm::recording::{
    CalledMethods, Difference, JavaSource, LoadedRecording, Operand, Operation, Order, combine, have_times,
    views,
};
use runtap_model::{Comparison, Trace, View};
use runtap_os::output::Destination;
use runtap_text::TextOptions;
use runtap_text::jvm::{DifferenceDocument, OperandRow, SetsDocument};

use super::export::{profile_error, reject_missing_calls};
use super::{classify_error, each, parse_operand, warn};
use crate::cli::JvmReport;
use crate::cmd::convert;
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
    output.show_as(&SetsDocument::new(rows, methods, options.document_rows()), shown)?;
    Ok(code)
}

/// Two recordings to compare.
#[derive(Debug)]
pub(super) struct Pair<'a> {
    pub(super) before: &'a Operand,
    pub(super) after: &'a Operand,
    /// The agents of the later recording; agents of the earlier one may have other names.
    pub(super) agents: &'a [String],
    pub(super) slow: Duration,
    /// The order of methods; `None` for times, or for calls if times are unknown.
    pub(super) order: Option<Order>,
    /// The option that selects the order by calls.
    pub(super) calls_option: &'static str,
    /// The maximum number of methods in a JSON document.
    pub(super) limit: Option<usize>,
    /// The files with stacks.
    pub(super) files: Vec<Planned>,
    /// The view of the stacks; `None` for times.
    pub(super) view: Option<View>,
    /// Whether the stacks have absolute values instead of shares.
    pub(super) absolute: bool,
}

/// Compares two recordings, method by method.
pub(super) fn difference(pair: &Pair<'_>, shown: &TextOptions<'_>, output: Output) -> anyhow::Result<u8> {
    let mut code = 0;
    let mut read = |operand: &Operand, agents: &[String]| -> anyhow::Result<(Vec<Report>, Option<Trace>)> {
        let loaded = operand.load(agents, pair.slow).map_err(classify_error)?;
        reject_overwriting(&loaded.files(), &pair.files)?;
        code = code.max(warn(&loaded, output));
        Ok((
            loaded.reports(),
            (!pair.files.is_empty()).then(|| stacks(loaded, pair.view, output)).transpose()?,
        ))
    };
    let ((first, before), (second, after)) = (read(pair.before, &[])?, read(pair.after, pair.agents)?);
    let has_times = have_times(first.iter().chain(&second));
    let order = match pair.order {
        None if has_times => Order::Own,
        None | Some(Order::Calls) => Order::Calls,
        Some(order) if has_times => order,
        Some(_) => {
            let option = pair.calls_option;
            return Err(usage(format!(
                "one of the recordings has counts or coverage only, without times: {option}"
            )));
        }
    };
    let written = match (before, after) {
        (Some(before), Some(after)) => write_stacks(pair, &before, &after, output),
        _ => Ok(()),
    };
    let difference = Difference::new(&first, &second, order);
    let recordings = [pair.before.label(), pair.after.label()];
    let document = DifferenceDocument::new(&difference, order, recordings, has_times, pair.limit);
    let to_stdout = pair.files.iter().any(|planned| planned.to == Destination::Stdout);
    if output.json() {
        output.document_beside(&document, to_stdout)?;
    } else if !to_stdout {
        output.print(&document, shown)?;
    }
    written?;
    Ok(code)
}

/// Returns the stacks of a recording with their sums.
fn stacks(loaded: LoadedRecording, view: Option<View>, output: Output) -> anyhow::Result<Trace> {
    reject_missing_calls(&loaded)?;
    let content = Content { view, ..Content::default() };
    let mut on_note = |note: Note| convert::say(&note, output);
    let profile = JavaSource::new(loaded).profile(ProfileForm::Sums, &content, true, &mut on_note);
    let mut trace = profile.map_err(profile_error)?.trace;
    // Each line of a file contains all frames of a stack, so deep stacks are limited.
    limit_depth(&mut trace, &content, &mut on_note);
    Ok(trace)
}

/// Writes the comparison of the stacks.
fn write_stacks(pair: &Pair<'_>, before: &Trace, after: &Trace, output: Output) -> anyhow::Result<()> {
    let [time, _] = views();
    let comparison = Comparison::new(before, after, pair.view.unwrap_or(time));
    // Stdout carries the comparison of methods, so written files are only noted.
    let mut on_note = |note: Note| {
        if let Note::Written(file) = &note {
            output.note(convert::output_file(file));
        }
    };
    let paths = [&*pair.before.path, &*pair.after.path];
    let made = write_difference(&comparison, paths, &pair.files, pair.absolute, &mut on_note);
    convert::first(made.failures, output)
}

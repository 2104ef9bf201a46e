//! Comparisons of recordings: which methods ran in them, and what changed.

use std::time::Duration;

use runtap_bytefrog::Report;
use runtap_convert::source::{ProfileForm, ProfileSource as _};
use runtap_convert::{Content, Note, Planned, limit_depth, reject_overwriting, write_difference};
use runtap_jvm::recording::{
    CalledMethods, Difference, JavaSource, LoadedRecording, Operand, Operation, Order, combine, views,
};
use runtap_model::{Comparison, Trace, View};
use runtap_os::output::Destination;
use runtap_text::document::OutputFile;
use runtap_text::jvm::{DifferenceDocument, OperandRow, SetsDocument};
use runtap_text::{Output, TextOptions, conversion_message};

use super::export::{profile_error, reject_missing_calls};
use super::{Reporter, classify_error, parse_operand, warn};
use crate::cmd::convert;
use crate::exit::usage;

impl Reporter<'_> {
    /// Combines the methods that ran in the recordings.
    pub(super) fn sets(&self) -> anyhow::Result<u8> {
        let sets = &self.options.sets;
        let mut code = 0;
        let mut called = |operand: &Operand, agents: &[String]| -> anyhow::Result<CalledMethods> {
            let mut called = CalledMethods::default();
            code = code.max(self.each(operand, agents, |agent| called.add(&agent.report()))?);
            Ok(called)
        };
        // Unions come before intersections and differences, whatever the order on the command line.
        let given = [(Operation::Or, &sets.or), (Operation::And, &sets.and), (Operation::Minus, &sets.minus)];
        let given =
            given.into_iter().flat_map(|(operation, texts)| texts.iter().map(move |it| (operation, it)));
        let operands = given.map(|(operation, text)| Ok((operation, parse_operand(text)?)));
        let operands: Vec<(Operation, Operand)> = operands.collect::<anyhow::Result<_>>()?;
        let base = called(self.operand, &self.options.agent)?;
        let mut rows = vec![OperandRow::new(None, self.operand.label(), base.len())];
        let mut others = Vec::new();
        for (operation, operand) in &operands {
            // `--agent` selects agents of the first operand only; agents of the others may have other names.
            let called = called(operand, &[])?;
            rows.push(OperandRow::new(Some(*operation), operand.label(), called.len()));
            others.push((*operation, called));
        }
        let methods = combine(&base, &others);
        self.show(&SetsDocument::new(rows, methods, self.options.document_rows()))?;
        Ok(code)
    }
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

impl Pair<'_> {
    /// Compares two recordings, method by method.
    pub(super) fn compare(&self, shown: &TextOptions<'_>, output: Output) -> anyhow::Result<u8> {
        let mut code = 0;
        let mut read = |operand: &Operand,
                        agents: &[String]|
         -> anyhow::Result<(Vec<Report>, Option<Trace>)> {
            let loaded = operand.load(agents, self.slow).map_err(classify_error)?;
            reject_overwriting(&loaded.files(), &self.files)?;
            code = code.max(warn(&loaded, output));
            let reports = loaded.reports();
            let stacks = (!self.files.is_empty()).then(|| stacks(loaded, self.view, output)).transpose()?;
            Ok((reports, stacks))
        };
        let ((first, before), (second, after)) = (read(self.before, &[])?, read(self.after, self.agents)?);
        let Some(difference) = Difference::new(&first, &second, self.order) else {
            return Err(usage(format!(
                "one of the recordings has counts or coverage only, without times: {}",
                self.calls_option
            )));
        };
        let written = match (before, after) {
            (Some(before), Some(after)) => self.write_stacks(&before, &after, output),
            _ => Ok(()),
        };
        let recordings = [self.before.label(), self.after.label()];
        let document = DifferenceDocument::new(&difference, recordings, self.limit);
        let to_stdout = self.files.iter().any(|planned| planned.to == Destination::Stdout);
        if output.json() {
            output.document_on_free_stream(&document, to_stdout)?;
        } else if !to_stdout {
            output.print(&document, shown)?;
        }
        written?;
        Ok(code)
    }

    /// Writes the comparison of the stacks.
    fn write_stacks(&self, before: &Trace, after: &Trace, output: Output) -> anyhow::Result<()> {
        let [time, _] = views();
        let comparison = Comparison::new(before, after, self.view.unwrap_or(time));
        let paths = [&*self.before.path, &*self.after.path];
        let made = write_difference(&comparison, paths, &self.files, self.absolute);
        // Stdout carries the comparison of methods, so written files are only noted.
        made.files.iter().for_each(|file| output.note(OutputFile::from(file)));
        convert::first(made.failures, output)
    }
}

/// Returns the stacks of a recording with their sums.
fn stacks(loaded: LoadedRecording, view: Option<View>, output: Output) -> anyhow::Result<Trace> {
    reject_missing_calls(&loaded)?;
    let content = Content { view, ..Content::default() };
    let mut on_note = |note: Note| output.messages(conversion_message(&note));
    let profile = JavaSource::new(loaded).profile(ProfileForm::Sums, &content, true, &mut on_note);
    let mut trace = profile.map_err(profile_error)?.trace;
    // Each line of a file contains all frames of a stack, so deep stacks are limited.
    limit_depth(&mut trace, &content, &mut on_note);
    Ok(trace)
}

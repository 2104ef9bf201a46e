//! Workflow commands that GitHub Actions shows at lines of a change.

use std::borrow::Cow;
use std::io::{self, Write};

use super::frames;
use crate::{Attempt, Location, Source, TestResult, text, trouble};

/// The maximum length of a title in bytes; GitHub shows 255 characters.
const MAX_TITLE: usize = 250;
/// The maximum length of a message in bytes, before escaping. GitHub's limit is 64 KiB, but users read at most a
/// screen.
const MAX_MESSAGE: usize = 4096;

/// The options of annotations.
#[derive(Debug, Clone)]
pub struct Options {
    /// The folder of the checkout. Files outside of it are not annotated, because GitHub does not know them.
    pub root: String,
    /// The maximum number of errors.
    pub errors: usize,
    /// The maximum number of warnings.
    pub warnings: usize,
}

impl Options {
    /// Creates options with the limits of GitHub for a step: 10 errors and 10 warnings.
    pub fn new(root: impl Into<String>) -> Self {
        Self { root: root.into(), errors: 10, warnings: 10 }
    }
}

/// Writes annotations, one per line, for failures and warnings. Writes nothing if there are none.
///
/// Returns errors of the writer and of the source.
pub fn annotations(source: &impl Source, w: impl Write, options: &Options) -> io::Result<()> {
    let budget = |left| Budget { left, missing: 0 };
    let mut out = Annotations { w, errors: budget(options.errors), warnings: budget(options.warnings) };
    if let Some(trouble) = trouble(source)? {
        out.write(AnnotationLevel::Error, None, "test run", &trouble)?;
    }
    for module in source.modules() {
        if let Some(error) = &module.error {
            out.write(AnnotationLevel::Error, None, &format!("test application {}", module.title()), error)?;
        }
    }
    for number in 0..source.modules().len() {
        for index in 0..source.count(number) {
            let result = source.result(number, index)?;
            let Some((kind, attempt, note)) = noteworthy(&result) else { continue };
            let place = frames::place(&result, attempt, &options.root);
            let message = format!("{note}{}", explain(attempt));
            out.write(kind, place.as_ref(), &text::name(&result), &message)?;
        }
    }
    let (errors, warnings) = (out.errors.missing, out.warnings.missing);
    if errors + warnings > 0 {
        writeln!(out.w, "::notice::not annotated: {errors} more failures, {warnings} more warnings")?;
    }
    out.w.flush()
}

#[derive(Clone, Copy)]
enum AnnotationLevel {
    Error,
    Warning,
}

/// Returns the level, the relevant attempt, and a prefix for the annotation of a result. `None` if there is nothing to
/// report.
fn noteworthy(result: &TestResult) -> Option<(AnnotationLevel, &Attempt, &'static str)> {
    if result.is_failure() {
        return Some((AnnotationLevel::Error, &result.last, ""));
    }
    if result.is_forgiven() {
        return Some((AnnotationLevel::Warning, &result.last, "in quarantine: "));
    }
    let failed = result.earlier.iter().rfind(|attempt| attempt.state.is_failure());
    failed.filter(|_| result.is_flaky()).map(|attempt| (AnnotationLevel::Warning, attempt, "flaky: "))
}

fn explain(attempt: &Attempt) -> String {
    let message = attempt.message().unwrap_or_default();
    let details = attempt.details();
    if details.contains(message) { details } else { format!("{message}\n{details}") }
}

struct Annotations<W: Write> {
    w: W,
    errors: Budget,
    warnings: Budget,
}

/// The number of annotations that may still be written, and the number of omitted ones.
struct Budget {
    left: usize,
    missing: usize,
}

impl Budget {
    fn take(&mut self) -> bool {
        match self.left.checked_sub(1) {
            Some(left) => self.left = left,
            None => self.missing += 1,
        }
        self.missing == 0
    }
}

impl<W: Write> Annotations<W> {
    fn write(
        &mut self,
        kind: AnnotationLevel,
        at: Option<&Location>,
        title: &str,
        message: &str,
    ) -> io::Result<()> {
        let (name, budget) = match kind {
            AnnotationLevel::Error => ("error", &mut self.errors),
            AnnotationLevel::Warning => ("warning", &mut self.warnings),
        };
        if !budget.take() {
            return Ok(());
        }
        write!(self.w, "::{name} ")?;
        if let Some(at) = at {
            write!(self.w, "file={},", property(&at.file))?;
            if let Some(line) = at.line {
                write!(self.w, "line={line},")?;
            }
        }
        let title = text::line(title);
        write!(self.w, "title={}", property(&text::cut(&title, MAX_TITLE)))?;
        let message = text::plain(message);
        writeln!(self.w, "::{}", data(&text::cut(message.trim_end(), MAX_MESSAGE)))
    }
}

/// Escapes a message, so that it ends neither the line nor starts an escape or another command.
fn data(text: &str) -> Cow<'_, str> {
    let text = text::no_inner_command(text);
    if !text.contains(['%', '\r', '\n']) {
        return text;
    }
    Cow::Owned(text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A"))
}

/// Escapes the value of a property.
fn property(text: &str) -> String {
    data(&text::line(text)).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_are_escaped_as_the_toolkit_of_actions_does() {
        assert_eq!(data("100%\nok: a,b"), "100%25%0Aok: a,b");
        assert_eq!(property("A::b(1, 2)%"), "A%3A%3Ab(1%2C 2)%25");
        assert_eq!(property("x ##[add-mask]y"), "x # #[add-mask]y");
        assert_eq!(
            data("a\n##vso[task.complete] ###teamcity[x]"),
            "a%0A# #vso[task.complete] # # #teamcity[x]"
        );
    }

    #[test]
    fn omitted_annotations_are_counted() {
        let mut budget = Budget { left: 2, missing: 0 };
        assert_eq!([(); 4].map(|()| budget.take()), [true, true, false, false]);
        assert_eq!(budget.missing, 2);
    }

    proptest! {
        #[test]
        fn texts_never_end_a_line_or_a_property(text in "[#a%]{0,4}\\PC*\r?\n?#{0,3}") {
            prop_assert!(!data(&text).contains(['\r', '\n']) && !data(&text).contains("##"));
            prop_assert!(!property(&text).contains(['\r', '\n', ':', ',']));
        }
    }
}

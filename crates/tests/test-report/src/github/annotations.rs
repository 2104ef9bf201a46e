//! Workflow commands that GitHub Actions shows at the lines of a change.

use std::borrow::Cow;
use std::io::{self, Write};

use super::frames;
use crate::{Attempt, Location, Source, TestResult, text, trouble};

/// The longest title in bytes; GitHub shows 255 characters.
const MAX_TITLE: usize = 250;
/// The longest message in bytes, before it is escaped; GitHub's own limit is 64 KiB, and nobody reads more than a screen.
const MAX_MESSAGE: usize = 4096;

/// What to annotate.
#[derive(Debug, Clone)]
pub struct Options {
    /// The folder of the checkout. Files outside of it are not annotated: GitHub knows none of them.
    pub root: String,
    /// How many errors at most.
    pub errors: usize,
    /// How many warnings at most.
    pub warnings: usize,
}

impl Options {
    /// As many as GitHub shows of a step: 10 of each.
    pub fn new(root: impl Into<String>) -> Self {
        Self { root: root.into(), errors: 10, warnings: 10 }
    }
}

/// Writes an annotation, a line each, for what failed and for what nearly did. Nothing if all is well.
///
/// Errors are those of the writer and of the source.
pub fn annotations(source: &impl Source, w: impl Write, options: &Options) -> io::Result<()> {
    let budget = |left| Budget { left, missing: 0 };
    let mut out = Annotations { w, errors: budget(options.errors), warnings: budget(options.warnings) };
    if let Some(trouble) = trouble(source)? {
        out.write(Kind::Error, None, "test run", &trouble)?;
    }
    for module in source.modules() {
        if let Some(error) = &module.error {
            out.write(Kind::Error, None, &format!("test application {}", module.title()), error)?;
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
enum Kind {
    Error,
    Warning,
}

/// What to say of a result: how loud, by which attempt, and the words before that.
fn noteworthy(result: &TestResult) -> Option<(Kind, &Attempt, &'static str)> {
    if result.is_failure() {
        return Some((Kind::Error, &result.last, ""));
    }
    if result.is_forgiven() {
        return Some((Kind::Warning, &result.last, "in quarantine: "));
    }
    let failed = result.earlier.iter().rfind(|attempt| attempt.state.is_failure());
    failed.filter(|_| result.is_flaky()).map(|attempt| (Kind::Warning, attempt, "flaky: "))
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

/// How many may still be written, and how many could not.
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
    fn write(&mut self, kind: Kind, at: Option<&Location>, title: &str, message: &str) -> io::Result<()> {
        let (name, budget) = match kind {
            Kind::Error => ("error", &mut self.errors),
            Kind::Warning => ("warning", &mut self.warnings),
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

/// A message: what would end the line or begin an escape is escaped, and nothing in it is another command.
fn data(text: &str) -> Cow<'_, str> {
    let text = text::no_inner_command(text);
    if !text.contains(['%', '\r', '\n']) {
        return text;
    }
    Cow::Owned(text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A"))
}

/// A property's value: what would end it, too.
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
    fn what_is_over_the_limit_is_counted() {
        let mut budget = Budget { left: 2, missing: 0 };
        assert_eq!([(); 4].map(|()| budget.take()), [true, true, false, false]);
        assert_eq!(budget.missing, 2);
    }

    proptest! {
        #[test]
        fn no_text_ends_a_line_or_a_property(text in "[#a%]{0,4}\\PC*\r?\n?#{0,3}") {
            prop_assert!(!data(&text).contains(['\r', '\n']) && !data(&text).contains("##"));
            prop_assert!(!property(&text).contains(['\r', '\n', ':', ',']));
        }
    }
}

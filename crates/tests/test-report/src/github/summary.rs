//! The summary of a job: Markdown with HTML, which GitHub shows on the page of the run.
//!
//! Determines the order of sections, and what is omitted if the summary gets too long. Texts of tests are never
//! Markdown: they are in HTML elements, with all characters escaped that Markdown or HTML could interpret.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt::Write as _;
use std::io::{self, Write};

use crate::{Attempt, Module, Source, TestResult, Totals, text, time};

/// The maximum size of a summary in bytes; GitHub rejects larger ones.
pub const MAX_BYTES: usize = 1024 * 1024;
/// The size that is reserved for the short sections after the failures, in bytes.
const RESERVED: usize = 128 * 1024;
/// The maximum length of a name, in bytes before escaping.
const MAX_NAME: usize = 300;
/// The maximum length of the explanation of a failure, in bytes before escaping.
const MAX_DETAILS: usize = 16 * 1024;
/// The number of listed slowest tests, and of listed flaky tests, modules and broken modules.
const SLOWEST: usize = 10;
const LISTED: usize = 50;

/// Writes the summary, at most [`MAX_BYTES`].
///
/// Returns errors of the writer and of the source.
pub fn summary(source: &impl Source, mut w: impl Write) -> io::Result<()> {
    let modules = source.modules();
    let totals: Vec<Totals> =
        (0..modules.len()).map(|number| source.totals(number)).collect::<io::Result<_>>()?;
    let all = totals.iter().fold(Totals::default(), Totals::plus);
    let mut out = String::new();
    headline(&mut out, source, &all);
    table_of_modules(&mut out, modules, &totals, &all, source.run().duration_ns);
    broken(&mut out, modules);
    errors(&mut out, modules);

    let listed = Listed::of(source)?;
    failures(&mut out, source, &listed.failures)?;
    for (title, places) in [("Flaky", &listed.flaky), ("In quarantine", &listed.forgiven)] {
        if places.is_empty() {
            continue;
        }
        let _ = writeln!(out, "### {title}\n");
        for &(number, index) in places.iter().take(LISTED) {
            let (module, result) = (&modules[number], source.result(number, index)?);
            let attempts = result.earlier.len() + 1;
            let module = escape(&text::cut(&text::line(&module.title()), MAX_NAME));
            let _ = writeln!(out, "- {} · {module} · attempts: {attempts}", name(&result));
        }
        out.push('\n');
        more(&mut out, places.len(), LISTED);
    }
    slowest(&mut out, source, listed.slowest)?;
    w.write_all(text::cut(&out, MAX_BYTES).as_bytes())?;
    w.flush()
}

/// The number of a module and the index of a result.
type ResultIndex = (usize, usize);

#[derive(Default)]
struct Listed {
    failures: Vec<ResultIndex>,
    flaky: Vec<ResultIndex>,
    forgiven: Vec<ResultIndex>,
    /// The slowest results, with the fastest of them on top.
    slowest: BinaryHeap<Reverse<(u64, Reverse<ResultIndex>)>>,
}

impl Listed {
    fn of(source: &impl Source) -> io::Result<Self> {
        let mut listed = Self::default();
        for number in 0..source.modules().len() {
            for index in 0..source.count(number) {
                let (result, place) = (source.result(number, index)?, (number, index));
                if result.is_failure() {
                    listed.failures.push(place);
                } else if result.is_forgiven() {
                    listed.forgiven.push(place);
                } else if result.is_flaky() {
                    listed.flaky.push(place);
                }
                listed.slowest.push(Reverse((result.last.time_ns(), Reverse(place))));
                if listed.slowest.len() > SLOWEST {
                    listed.slowest.pop();
                }
            }
        }
        Ok(listed)
    }
}

fn headline(out: &mut String, source: &impl Source, all: &Totals) {
    let run = source.run();
    let broken = source.modules().iter().filter(|module| module.error.is_some()).count();
    let took = time::human(run.duration_ns);
    let (mark, message) = match (all.failures(), broken) {
        (0, 0) if run.interrupted.is_some() => {
            ("❌", format!("Interrupted, {} passed", text::plural(all.passed, "test")))
        }
        (0, 0) if run.exit_code == 0 => ("✅", format!("{} passed", text::plural(all.passed, "test"))),
        (0, 0) if all.total() == 0 => ("❌", "No tests ran".to_owned()),
        (0, 0) => ("❌", format!("Exit code {}, {} passed", run.exit_code, text::plural(all.passed, "test"))),
        (0, broken) => (
            "❌",
            format!("{} did not complete successfully", text::plural(broken as u64, "test application")),
        ),
        (failures, _) => ("❌", format!("{failures} of {} failed", text::plural(all.total(), "test"))),
    };
    let _ = writeln!(out, "## {mark} {message} in {took}\n");
    if let Some(why) = &run.interrupted {
        let _ = writeln!(out, "**Interrupted:** {}\n", escape(&text::cut(&text::line(why), MAX_NAME)));
    }
}

fn table_of_modules(out: &mut String, modules: &[Module], totals: &[Totals], all: &Totals, duration_ns: u64) {
    out.push_str("| module | tests | passed | failed | skipped | flaky | time |\n");
    out.push_str("| :-- | --: | --: | --: | --: | --: | --: |\n");
    let mut row = |name: &str, t: &Totals, ns: u64| {
        let (failures, skipped, took) = (t.failures(), t.skipped + t.quarantined, time::human(ns));
        let (total, passed, flaky) = (t.total(), t.passed, t.flaky);
        let _ = writeln!(out, "| {name} | {total} | {passed} | {failures} | {skipped} | {flaky} | {took} |");
    };
    for (module, totals) in modules.iter().zip(totals).take(LISTED) {
        row(&escape(&text::cut(&text::line(&module.title()), MAX_NAME)), totals, module.duration_ns);
    }
    if modules.len() != 1 {
        row("**all**", all, duration_ns);
    }
    out.push('\n');
    more(out, modules.len(), LISTED);
}

fn broken(out: &mut String, modules: &[Module]) {
    let broken: Vec<&Module> = modules.iter().filter(|module| module.error.is_some()).collect();
    for module in broken.iter().take(LISTED / 5) {
        let title = escape(&text::cut(&text::line(&module.title()), MAX_NAME));
        let _ = writeln!(out, "### {title} did not complete successfully\n");
        let error = module.error.as_deref().unwrap_or_default();
        let parts =
            [error, &module.stdout, &module.stderr].map(|part| text::plain(part).trim_end().to_owned());
        let shown: Vec<&str> = parts.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
        pre(out, &text::cut(&shown.join("\n"), 4096));
    }
    more(out, broken.len(), LISTED / 5);
}

/// Writes errors that no test explains.
fn errors(out: &mut String, modules: &[Module]) {
    let with_errors: Vec<&Module> = modules.iter().filter(|it| it.errors().next().is_some()).collect();
    for module in with_errors.iter().take(LISTED / 5) {
        let title = escape(&text::cut(&text::line(&module.title()), MAX_NAME));
        let _ = writeln!(out, "### {title} reported errors\n");
        let message: Vec<_> = module.errors().map(|error| text::plain(error).into_owned()).collect();
        pre(out, &text::cut(&message.join("\n"), 4096));
    }
    more(out, with_errors.len(), LISTED / 5);
}

fn failures(out: &mut String, source: &impl Source, places: &[ResultIndex]) -> io::Result<()> {
    if places.is_empty() {
        return Ok(());
    }
    out.push_str("### Failures\n\n");
    let mut shown = 0;
    for &(number, index) in places {
        let result = source.result(number, index)?;
        let mut section = String::new();
        let took = time::human(result.last.time_ns());
        let module = source.modules().get(number).map(Module::title).unwrap_or_default();
        let _ = write!(section, "<details><summary>{} · {}", name(&result), result.state());
        let _ = writeln!(
            section,
            " · {took} · {}</summary>\n",
            escape(&text::cut(&text::line(&module), MAX_NAME))
        );
        pre(&mut section, &text::cut(&explain(&result.last), MAX_DETAILS));
        section.push_str("</details>\n\n");
        if out.len() + section.len() > MAX_BYTES - RESERVED {
            break;
        }
        out.push_str(&section);
        shown += 1;
    }
    more(out, places.len(), shown);
    Ok(())
}

fn explain(attempt: &Attempt) -> String {
    let (message, details) = (attempt.message().unwrap_or_default(), attempt.details());
    let message = if details.contains(message) { details } else { format!("{message}\n{details}") };
    text::plain(&message).trim_end().to_owned()
}

fn slowest(
    out: &mut String,
    source: &impl Source,
    slowest: BinaryHeap<Reverse<(u64, Reverse<ResultIndex>)>>,
) -> io::Result<()> {
    if source.all_totals()?.total() <= SLOWEST as u64 {
        return Ok(());
    }
    out.push_str("<details><summary>Slowest tests</summary>\n\n| test | time |\n| :-- | --: |\n");
    // The smallest by `Reverse` is the slowest.
    for Reverse((ns, Reverse((number, index)))) in slowest.into_sorted_vec() {
        let _ = writeln!(out, "| {} | {} |", name(&*source.result(number, index)?), time::human(ns));
    }
    out.push_str("\n</details>\n");
    Ok(())
}

fn more(out: &mut String, all: usize, shown: usize) {
    if let Some(more) = all.checked_sub(shown).filter(|more| *more > 0) {
        let _ = writeln!(out, "… and {more} more.\n");
    }
}

fn name(result: &TestResult) -> String {
    format!("<code>{}</code>", escape(&text::cut(&text::name(result), MAX_NAME)))
}

/// Writes a block of preformatted text.
fn pre(out: &mut String, text: &str) {
    // Markdown treats everything from `<pre>` to its end as HTML, including empty lines.
    let _ = writeln!(out, "<pre>{}</pre>\n", escape(text));
}

/// Escapes text so that neither Markdown nor HTML interprets it.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut word = 0;
    for c in text.chars() {
        // GitHub converts `www.` and the text after it to a link.
        if c == '.' && word == 3 {
            out.push_str("&#46;");
            word = 0;
            continue;
        }
        word = if matches!(c, 'w' | 'W') { word + 1 } else { 0 };
        match c {
            ' ' | '\n' | '\t' | '.' | ',' | '(' | ')' | '=' | '/' | '-' | ';' => out.push(c),
            c if c.is_ascii_punctuation() => {
                let _ = write!(out, "&#{};", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_tests_are_never_markup() {
        assert_eq!(
            escape("a|b `c` <d> *e* [f](g) $h$ @i"),
            "a&#124;b &#96;c&#96; &#60;d&#62; &#42;e&#42; &#91;f&#93;(g) &#36;h&#36; &#64;i"
        );
        assert_eq!(escape("see www.x.example, Www.y"), "see www&#46;x.example, Www&#46;y");
    }
}

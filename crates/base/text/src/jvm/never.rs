//! The list of methods that were never called, as JSON and as text.

use std::cmp::Reverse;
use std::io;

use runtap_bytefrog::readable;
use runtap_jvm::coverage::inventory::Method;
use runtap_jvm::coverage::never::{ClassState, NeverClass, Size};
use runtap_jvm::coverage::{NeverCalled, Unknown};
use runtap_model::order;
use serde::Serialize;

use super::fitted_name;
use crate::units::{Count, Things};
use crate::{Clean, Column, Print, Table, TextOptions};

/// The width of the numbers of a row.
const NUMBERS_WIDTH: usize = 30;

#[derive(Debug, Serialize)]
pub(super) struct NeverDocument<'a> {
    total: SizeDocument,
    packages: Vec<PackageDocument<'a>>,
    /// The number of classes; `classes` may have fewer.
    classes_count: usize,
    classes: Vec<ClassDocument<'a>>,
    /// Classes for which it is unknown whether any of their methods was called.
    untraced: Vec<UntracedDocument<'a>>,
    /// Methods of other classes for which it is unknown whether they were called.
    unknown: Vec<UnknownDocument<'a>>,
    /// The number of these methods that were not called since the trace started, and whose class was loaded before.
    not_called_since_attach: u64,
    /// The reasons why the list may be wrong.
    caveats: Vec<String>,
}

#[derive(Debug, Clone, Copy, Serialize)]
struct SizeDocument {
    never_called_classes: u64,
    classes: u64,
    never_called_methods: u64,
    methods: u64,
    never_called_code_bytes: u64,
    code_bytes: u64,
}

#[derive(Debug, Serialize)]
struct PackageDocument<'a> {
    package: &'a str,
    #[serde(flatten)]
    size: SizeDocument,
}

#[derive(Debug, Serialize)]
struct ClassDocument<'a> {
    class: &'a str,
    state: &'static str,
    path: &'a str,
    source_file: Option<&'a str>,
    called_methods: u64,
    code_bytes: u64,
    methods: Vec<MethodDocument<'a>>,
}

#[derive(Debug, Serialize)]
struct MethodDocument<'a> {
    name: &'a str,
    descriptor: &'a str,
    line: Option<u16>,
    code_bytes: u32,
}

#[derive(Debug, Serialize)]
struct UntracedDocument<'a> {
    class: &'a str,
    fate: &'static str,
    why: String,
}

#[derive(Debug, Serialize)]
struct UnknownDocument<'a> {
    class: &'a str,
    fate: &'static str,
    why: String,
    #[serde(flatten)]
    method: MethodDocument<'a>,
}

/// Returns the identifier of the reason why it is unknown whether a method was called.
fn fate(why: &Unknown) -> &'static str {
    match why {
        Unknown::Ignored => "ignored",
        Unknown::Failed(_) => "failed",
        Unknown::AlreadyRunning => "already_running",
        Unknown::NotSinceAttach => "not_called_since_attach",
        Unknown::Outside => "not_included",
        Unknown::UnreadableFilter => "unreadable_filter",
        Unknown::Unsent => "unsent",
        _ => "unknown",
    }
}

impl From<Size> for SizeDocument {
    fn from(size: Size) -> Self {
        Self {
            never_called_classes: size.classes,
            classes: size.all_classes,
            never_called_methods: size.methods,
            methods: size.all_methods,
            never_called_code_bytes: size.code,
            code_bytes: size.all_code,
        }
    }
}

fn state(state: ClassState) -> &'static str {
    match state {
        ClassState::Called => "called",
        ClassState::Loaded => "loaded",
        ClassState::NotLoaded => "not_loaded",
        ClassState::Unknown => "unknown",
    }
}

impl<'a> NeverDocument<'a> {
    /// Creates the document with at most `limit` classes, those with the most code first.
    pub(super) fn new(never: &'a NeverCalled<'a>, limit: Option<usize>) -> Self {
        let mut classes: Vec<&NeverClass<'_>> = never.classes.iter().collect();
        order::sort_by_key(&mut classes, |class| (Reverse(class.code()), class.name));
        classes.truncate(limit.unwrap_or(usize::MAX));
        Self {
            total: never.total().into(),
            packages: never
                .packages
                .iter()
                .map(|(package, size)| PackageDocument { package, size: (*size).into() })
                .collect(),
            classes_count: never.classes.len(),
            classes: classes.into_iter().map(ClassDocument::new).collect(),
            untraced: never
                .untraced
                .iter()
                .map(|(class, why)| UntracedDocument { class, fate: fate(why), why: why.to_string() })
                .collect(),
            unknown: never
                .unknown
                .iter()
                .map(|unknown| UnknownDocument {
                    class: unknown.class,
                    fate: fate(&unknown.why),
                    why: unknown.why.to_string(),
                    method: MethodDocument::new(unknown.method),
                })
                .collect(),
            not_called_since_attach: never.not_called_since_attach,
            caveats: never.caveats.iter().map(ToString::to_string).collect(),
        }
    }
}

impl<'a> MethodDocument<'a> {
    fn new(method: &'a Method) -> Self {
        Self {
            name: &method.name,
            descriptor: &method.descriptor,
            line: method.first_line(),
            code_bytes: method.code,
        }
    }
}

impl<'a> ClassDocument<'a> {
    fn new(class: &NeverClass<'a>) -> Self {
        Self {
            class: class.name,
            state: state(class.state),
            path: &class.class.path,
            source_file: class.class.source_file.as_deref(),
            called_methods: class.called,
            code_bytes: class.code(),
            methods: class.methods.iter().map(|method| MethodDocument::new(method)).collect(),
        }
    }
}

/// A row of the table. A class without any called method has a single row.
enum Row<'r> {
    Class(&'r ClassDocument<'r>),
    Method(&'r ClassDocument<'r>, &'r MethodDocument<'r>),
}

impl Row<'_> {
    fn code(&self) -> u64 {
        match self {
            Self::Class(class) => class.code_bytes,
            Self::Method(_, method) => method.code_bytes.into(),
        }
    }

    fn cells(&self, options: &TextOptions<'_>) -> [String; 4] {
        let (class, line, count, name) = match self {
            Self::Class(class) => (class, None, class.methods.len() as u64, class.class.replace('/', ".")),
            Self::Method(class, method) => {
                let signature = format!("{}.{};0;{}", class.class, method.name, method.descriptor);
                (class, method.line, 1, readable(&signature))
            }
        };
        let name = fitted_name(&name, options, NUMBERS_WIDTH);
        let place = line.map_or_else(String::new, |line| format!(":{line}"));
        [
            Count(self.code()).to_string(),
            Count(count).to_string(),
            class.state.replace('_', " "),
            name + &place,
        ]
    }
}

impl Print for NeverDocument<'_> {
    fn print(&self, out: &mut dyn io::Write, options: &TextOptions<'_>) -> io::Result<()> {
        let SizeDocument { never_called_methods, methods, never_called_code_bytes, code_bytes, .. } =
            self.total;
        writeln!(
            out,
            "never called: {} of {}, {} of {} of code, {} of {} as a whole",
            Count(never_called_methods),
            Things(methods, "method"),
            Count(never_called_code_bytes),
            Things(code_bytes, "byte"),
            Count(self.total.never_called_classes),
            Things(self.total.classes, "class"),
        )?;
        if !(self.untraced.is_empty() && self.unknown.is_empty()) {
            writeln!(
                out,
                "not known whether called: {} and all methods of {} (--format json lists them, and says why)",
                Things(self.unknown.len() as u64, "method"),
                Things(self.untraced.len() as u64, "class"),
            )?;
        }
        for caveat in &self.caveats {
            writeln!(out, "- {}", Clean(caveat))?;
        }
        let mut rows: Vec<Row<'_>> = Vec::new();
        for class in &self.classes {
            if class.state == state(ClassState::Called) {
                rows.extend(class.methods.iter().map(|method| Row::Method(class, method)));
            } else {
                rows.push(Row::Class(class));
            }
        }
        if rows.is_empty() {
            return Ok(());
        }
        writeln!(out)?;
        order::sort_by_key(&mut rows, |row| Reverse(row.code()));
        let columns = [
            Column::number("BYTES"),
            Column::number("METHODS"),
            Column::text("CLASS IS"),
            Column::text("NEVER CALLED"),
        ];
        let mut table = Table::new("row", columns);
        table.fill(rows.iter(), options, |row| row.cells(options));
        table.print(out, options)
    }
}

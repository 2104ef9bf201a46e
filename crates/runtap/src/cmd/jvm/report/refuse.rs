//! Rejection of options that have no effect. Silently ignoring an option would answer another question than the one asked.

use runtap_jvm::report::ReportKind;

use crate::cli::{AnyFormat, JvmReport};
use crate::exit::usage;

/// Rejects the first option that has no effect, naming the reports it is for.
pub(super) fn ineffective(options: &JvmReport) -> anyhow::Result<()> {
    let (files, coverage, kind) = (&options.files, &options.coverage, options.kind);
    let makes_files = !AnyFormat::files(&files.to, options.format, files.output.as_deref()).is_empty()
        || files.output.is_some();
    let compares = options.diff.is_some();
    let is_plain = !(makes_files || compares || options.sets.is_wanted() || coverage.is_wanted());
    let lists = |wanted: ReportKind| is_plain && kind == Some(wanted);
    let rules = [
        (options.thread.is_some(), lists(ReportKind::Tree), "--thread", "the report 'tree'"),
        (
            options.sort.is_some(),
            lists(ReportKind::Methods) || (compares && !coverage.is_wanted()),
            "--sort",
            "the report 'methods' and --diff",
        ),
        (
            options.slow.is_some(),
            is_plain && matches!(kind, None | Some(ReportKind::Slow)),
            "--slow",
            "the whole report and the report 'slow'",
        ),
        (
            options.merge_agents,
            is_plain && matches!(kind, None | Some(ReportKind::Methods)),
            "--merge-agents",
            "the whole report and the report 'methods' (files and coverage have all agents together)",
        ),
        (options.number.is_some(), !makes_files, "--number", "lists"),
        (files.view.is_some(), makes_files, "--view", "files: --to FORMAT"),
        (files.merge_threads, makes_files, "--merge-threads", "files: --to FORMAT"),
        (files.max_depth.is_some(), makes_files, "--max-depth", "files: --to FORMAT"),
        (files.max_size.is_some(), makes_files, "--max-size", "files: --to FORMAT"),
        (!coverage.include.is_empty(), coverage.is_wanted(), "--include", "--coverage and --never-called"),
        (!coverage.exclude.is_empty(), coverage.is_wanted(), "--exclude", "--coverage and --never-called"),
        (
            coverage.compiler_methods,
            coverage.is_wanted(),
            "--compiler-methods",
            "--coverage and --never-called",
        ),
    ];
    match rules.into_iter().find(|(is_given, has_effect, ..)| *is_given && !has_effect) {
        None => Ok(()),
        Some((.., option, with)) => Err(usage(format!("{option} applies only to {with}"))),
    }
}

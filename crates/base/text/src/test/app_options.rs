//! The options of test applications as help.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

use anstyle::Style;
use runtap_mtp::{AppOption, Level, Module, ModuleId, RunEvent};

use super::module_failure::describe;
use crate::{Clean, DIM};

const HEADING: Style = Style::new().bold().underline();
const NAME: Style = Style::new().bold();

/// The options of all applications, without duplicates.
#[derive(Debug)]
pub struct MergedOptions<'a> {
    modules: &'a [Module],
    /// Keyed by whether an extension provides the option, and by name. The values are the description and the applications.
    options: BTreeMap<(bool, String), (String, Vec<ModuleId>)>,
    broken: Vec<(ModuleId, String)>,
    /// Warnings and errors that applications reported.
    messages: Vec<(ModuleId, String)>,
}

impl<'a> MergedOptions<'a> {
    /// Creates the help of these applications, whose options are unknown.
    pub fn new(modules: &'a [Module]) -> Self {
        Self { modules, options: BTreeMap::new(), broken: Vec::new(), messages: Vec::new() }
    }

    /// Adds an option, or why an application reports none.
    pub fn event(&mut self, event: RunEvent) {
        match event {
            RunEvent::Option { module, option } => self.add(module, option),
            RunEvent::Message { module, level: Level::Warning | Level::Error, text } => {
                self.messages.push((module, text));
            }
            RunEvent::LaunchEnded { module, end, .. } => {
                self.broken.extend(end.failures.first().map(|failure| (module, describe(failure))));
            }
            _ => {}
        }
    }

    fn add(&mut self, module: ModuleId, option: AppOption) {
        // The `--help` of runtap replaces these options.
        if option.hidden || ["help", "?"].contains(&option.name.as_str()) {
            return;
        }
        let known = self.options.entry((!option.built_in, option.name));
        let (_, modules) = known.or_insert_with(|| (option.description, Vec::new()));
        if !modules.contains(&module) {
            modules.push(module);
        }
    }

    /// Returns whether an application has reported no options and no reason.
    fn is_silent(&self, module: ModuleId) -> bool {
        let has_options = self.options.values().any(|(_, modules)| modules.contains(&module));
        let explained = |of: &[(ModuleId, String)]| of.iter().any(|(of, _)| *of == module);
        !has_options && !explained(&self.broken) && !explained(&self.messages)
    }

    fn name(&self, module: ModuleId) -> String {
        self.modules.get(module.0).map(Module::name).unwrap_or_default()
    }
}

impl Display for MergedOptions<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let answered = self.modules.len() - self.broken.len();
        for (of_extensions, heading) in [
            (false, "Options of the platform, after '--':"),
            (true, "Options of the applications' frameworks and extensions, after '--':"),
        ] {
            let mut options = self.options.iter().filter(|((it, _), _)| *it == of_extensions).peekable();
            if options.peek().is_some() {
                writeln!(f, "\n{HEADING}{heading}{HEADING:#}")?;
            }
            for ((_, name), (description, modules)) in options {
                write!(f, "  {NAME}--{}{NAME:#}", Clean(name))?;
                if modules.len() < answered {
                    let names: Vec<_> = modules.iter().map(|module| self.name(*module)).collect();
                    write!(f, "  {DIM}only {}{DIM:#}", Clean(&names.join(", ")))?;
                }
                writeln!(f)?;
                for line in description.lines().map(str::trim_end).filter(|line| !line.is_empty()) {
                    writeln!(f, "          {}", Clean(line))?;
                }
            }
        }
        for (module, why) in self.messages.iter().chain(&self.broken) {
            writeln!(f, "\n{}: {}", Clean(&self.name(*module)), Clean(why))?;
        }
        for module in (0..self.modules.len()).map(ModuleId).filter(|module| self.is_silent(*module)) {
            let name = self.name(module);
            writeln!(f, "\n{}: reported no options; is it a test application?", Clean(&name))?;
        }
        Ok(())
    }
}

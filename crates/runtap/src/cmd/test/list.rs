//! The tests that were found, by module.

use runtap_mtp::{Module, ModuleId, RunEvent, Severity, TestInfo};
use serde::Serialize;

use super::lines::{LINE, cleaned};
use super::module_failure::describe;
use super::printed;
use crate::cli::ListFormat;
use crate::output::Output;
use crate::units::Things;

/// What was found.
#[derive(Debug)]
pub(super) struct Listed {
    json: bool,
    modules: Vec<ListedModule>,
    /// What was said about modules, for people.
    warnings: Vec<String>,
}

#[derive(Debug, Default, Serialize)]
struct ListedModule {
    path: String,
    framework: Option<String>,
    architecture: Option<String>,
    error: Option<String>,
    /// What it has printed, if there is an error.
    #[serde(skip)]
    printed: (String, String),
    tests: Vec<ListedTest>,
}

#[derive(Debug, Serialize)]
struct ListedTest {
    uid: String,
    name: String,
    namespace: Option<String>,
    #[serde(rename = "type")]
    type_name: Option<String>,
    method: Option<String>,
    file: Option<String>,
    line: Option<i32>,
    traits: Vec<ListedTrait>,
}

#[derive(Debug, Serialize)]
struct ListedTrait {
    key: String,
    value: String,
}

#[derive(Debug, Serialize)]
struct Document<'a> {
    schema: &'static str,
    modules: &'a [ListedModule],
}

impl Listed {
    pub(super) fn new(format: ListFormat, json: bool, modules: &[Module]) -> Self {
        let listed = |module: &Module| ListedModule {
            path: module.path().to_string_lossy().into_owned(),
            ..ListedModule::default()
        };
        Self {
            json: json || format == ListFormat::Json,
            modules: modules.iter().map(listed).collect(),
            warnings: Vec::new(),
        }
    }

    pub(super) fn take(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Introduced { module, introduction, .. } => {
                if let Some(module) = self.of(*module) {
                    module.framework = Some(introduction.target_framework());
                    module.architecture = Some(introduction.architecture.to_lowercase());
                }
            }
            RunEvent::Discovered { module, test } => {
                if let Some(module) = self.of(*module) {
                    module.tests.push(test.into());
                }
            }
            RunEvent::Message { module, severity: Severity::Warning | Severity::Error, text } => {
                if let Some(module) = self.modules.get(module.0) {
                    self.warnings.push(format!("{} {text}", module.path));
                }
            }
            RunEvent::LaunchEnded { module, end, .. } => {
                if let (Some(module), Some(failure)) = (self.of(*module), end.failures.first()) {
                    module.error = Some(describe(failure));
                    module.printed = (end.stdout.clone(), end.stderr.clone());
                }
            }
            _ => {}
        }
    }

    fn of(&mut self, module: ModuleId) -> Option<&mut ListedModule> {
        self.modules.get_mut(module.0)
    }

    pub(super) fn finish(&self, output: Output) -> anyhow::Result<()> {
        for warning in &self.warnings {
            output.warning(cleaned(warning, LINE));
        }
        for module in &self.modules {
            if let Some(error) = &module.error {
                output.warning(cleaned(&format!("{} {error}", module.path), LINE));
                printed::tell(&module.printed.0, &module.printed.1, output);
            }
        }
        if self.json {
            return output.document(&Document { schema: "runtap.test-list/1", modules: &self.modules });
        }
        let mut text = String::new();
        for module in &self.modules {
            let of: Vec<&str> =
                [&module.framework, &module.architecture].into_iter().flatten().map(String::as_str).collect();
            // Not known of an application that was not started for its list, or has died before it said so.
            let of = if of.is_empty() { String::new() } else { format!(" ({})", of.join("|")) };
            let known = Things(module.tests.len() as u64, "test");
            let count = match (&module.error, module.tests.is_empty()) {
                (Some(_), true) => "tests unknown".to_owned(),
                (Some(_), false) => format!("{known} or more"),
                (None, _) => known.to_string(),
            };
            let title = cleaned(&format!("{}{of}: ", module.path), usize::MAX);
            text.extend([&title, &count, "\n"]);
            for test in &module.tests {
                text.extend(["  ", &cleaned(&test.name, usize::MAX), "\n"]);
            }
        }
        output.text(text)
    }
}

impl From<&TestInfo> for ListedTest {
    fn from(test: &TestInfo) -> Self {
        let traits = test.traits.iter();
        Self {
            uid: test.uid.clone(),
            name: test.name.clone(),
            namespace: test.namespace.clone(),
            type_name: test.type_name.clone(),
            method: test.method.clone(),
            file: test.file.clone(),
            line: test.line,
            traits: traits
                .map(|(key, value)| ListedTrait { key: key.clone(), value: value.clone() })
                .collect(),
        }
    }
}

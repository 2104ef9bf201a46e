//! The list of tests by module.

use runtap_mtp::{Module, ModuleId, RunEvent, Severity, TestInfo};
use serde::Serialize;

use super::lines::{MAX_LINE, cleaned};
use super::module_failure::describe;
use super::printed;
use crate::cli::ListFormat;
use crate::output::Output;
use crate::units::Things;

/// The tests found so far.
#[derive(Debug)]
pub(super) struct TestList {
    json: bool,
    modules: Vec<ListedModule>,
    /// Warnings about modules, for text output.
    warnings: Vec<String>,
}

#[derive(Debug, Default, Serialize)]
struct ListedModule {
    path: String,
    framework: Option<String>,
    architecture: Option<String>,
    error: Option<String>,
    /// The output of the module's process, if there is an error.
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

impl TestList {
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

    pub(super) fn add_event(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Introduced { module, introduction, .. } => {
                if let Some(module) = self.module_mut(*module) {
                    module.framework = Some(introduction.target_framework());
                    module.architecture = Some(introduction.architecture.to_lowercase());
                }
            }
            RunEvent::Discovered { module, test } => {
                if let Some(module) = self.module_mut(*module) {
                    module.tests.push(test.into());
                }
            }
            RunEvent::Message { module, severity: Severity::Warning | Severity::Error, text } => {
                if let Some(module) = self.modules.get(module.0) {
                    self.warnings.push(format!("{} {text}", module.path));
                }
            }
            RunEvent::LaunchEnded { module, end, .. } => {
                if let (Some(module), Some(failure)) = (self.module_mut(*module), end.failures.first()) {
                    module.error = Some(describe(failure));
                    module.printed = (end.stdout.clone(), end.stderr.clone());
                }
            }
            _ => {}
        }
    }

    fn module_mut(&mut self, module: ModuleId) -> Option<&mut ListedModule> {
        self.modules.get_mut(module.0)
    }

    pub(super) fn finish(&self, output: Output) -> anyhow::Result<()> {
        for warning in &self.warnings {
            output.warning(cleaned(warning, MAX_LINE));
        }
        for module in &self.modules {
            if let Some(error) = &module.error {
                output.warning(cleaned(&format!("{} {error}", module.path), MAX_LINE));
                printed::print_output(&module.printed.0, &module.printed.1, output);
            }
        }
        if self.json {
            return output.document(&Document { schema: "runtap.test-list/1", modules: &self.modules });
        }
        let mut text = String::new();
        for module in &self.modules {
            let platform: Vec<&str> =
                [&module.framework, &module.architecture].into_iter().flatten().map(String::as_str).collect();
            // Unknown if the application was not started or ended before it introduced itself.
            let platform =
                if platform.is_empty() { String::new() } else { format!(" ({})", platform.join("|")) };
            let known = Things(module.tests.len() as u64, "test");
            let count = match (&module.error, module.tests.is_empty()) {
                (Some(_), true) => "tests unknown".to_owned(),
                (Some(_), false) => format!("{known} or more"),
                (None, _) => known.to_string(),
            };
            let title = cleaned(&format!("{}{platform}: ", module.path), usize::MAX);
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

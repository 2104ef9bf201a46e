//! The list of tests by module.

use std::io;

use runtap_mtp::{Level, Module, ModuleId, RunEvent, TestInfo};
use serde::Serialize;

use super::format::{MAX_LINE, cleaned};
use super::module_failure::describe;
use crate::units::Things;
use crate::{Print, TextOptions};

/// The tests found so far: the document `runtap.test-list/1`.
#[derive(Debug, Serialize)]
pub struct TestList {
    schema: &'static str,
    modules: Vec<ListedModule>,
    /// Messages of applications, with their paths.
    #[serde(skip)]
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

impl TestList {
    /// Creates a list of modules whose tests are unknown.
    pub fn new(modules: &[Module]) -> Self {
        let listed = |module: &Module| ListedModule {
            path: module.path().to_string_lossy().into_owned(),
            ..ListedModule::default()
        };
        Self {
            schema: "runtap.test-list/1",
            modules: modules.iter().map(listed).collect(),
            warnings: Vec::new(),
        }
    }

    /// Adds what an event tells about modules and tests.
    pub fn add_event(&mut self, event: &RunEvent) {
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
            RunEvent::Message { module, level: Level::Warning | Level::Error, text } => {
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

    /// Returns the warnings and errors that applications reported.
    pub fn warnings(&self) -> impl Iterator<Item = String> {
        self.warnings.iter().map(|warning| cleaned(warning, MAX_LINE))
    }

    /// Returns the errors of applications, each with what the application printed on standard output and error output.
    pub fn errors(&self) -> impl Iterator<Item = (String, (&str, &str))> {
        self.modules.iter().filter_map(|module| {
            let error = module.error.as_ref()?;
            let (stdout, stderr) = &module.printed;
            Some((cleaned(&format!("{} {error}", module.path), MAX_LINE), (stdout.as_str(), stderr.as_str())))
        })
    }
}

impl Print for TestList {
    fn print(&self, out: &mut dyn io::Write, _options: &TextOptions<'_>) -> io::Result<()> {
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
            writeln!(out, "{title}{count}")?;
            for test in &module.tests {
                writeln!(out, "  {}", cleaned(&test.name, usize::MAX))?;
            }
        }
        Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;
    use runtap_mtp::{Introduction, LaunchEnd, LaunchId, ModuleFailure};

    #[test]
    fn tests_are_listed_by_application_with_what_is_unknown() {
        let mut list = TestList::new(&["a.dll", "b.dll", "c.dll"].map(Module::new));
        let (module, launch) = (ModuleId(0), LaunchId(1));
        let introduction = Introduction {
            architecture: "X64".into(),
            framework: ".NET 10.0.1".into(),
            ..Introduction::default()
        };
        list.add_event(&RunEvent::Introduced { module, launch, introduction });
        let test =
            TestInfo { uid: "1".into(), name: "Adds\x1b[1m".into(), line: Some(3), ..TestInfo::default() };
        list.add_event(&RunEvent::Discovered { module, test: test.clone() });
        list.add_event(&RunEvent::Message { module, level: Level::Info, text: "no warning".into() });
        for module in [ModuleId(1), ModuleId(2)] {
            let end = LaunchEnd {
                failures: vec![ModuleFailure::NotStarted("no file".into())],
                stderr: "oops".into(),
                ..LaunchEnd::default()
            };
            list.add_event(&RunEvent::LaunchEnded { module, launch, end });
        }
        list.add_event(&RunEvent::Discovered { module: ModuleId(2), test });
        list.add_event(&RunEvent::Message { module, level: Level::Warning, text: "slow".into() });
        let mut text = Vec::new();
        list.print(&mut text, &TextOptions::default()).unwrap();
        let name = cleaned("Adds\x1b[1m", usize::MAX);
        assert!(!name.contains('\x1b'));
        assert_eq!(
            String::from_utf8(text).unwrap(),
            format!(
                "a.dll (net10.0|x64): 1 test\n  {name}\nb.dll: tests unknown\nc.dll: 1 test or more\n  {name}\n"
            )
        );
        assert_eq!(list.warnings().collect::<Vec<_>>(), ["a.dll slow"]);
        let errors: Vec<_> = list.errors().collect();
        assert_eq!(errors[0], ("b.dll can't be started: no file".to_owned(), ("", "oops")));
        let document = serde_json::to_value(&list).unwrap();
        assert_eq!(document["schema"], "runtap.test-list/1");
        assert_eq!(document["modules"][0]["tests"][0]["line"], 3);
        assert!(document.get("warnings").is_none() && document["modules"][1].get("printed").is_none());
    }
}

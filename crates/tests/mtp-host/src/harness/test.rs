//! A test of the harness and the context that is passed to it.

use std::fmt;
use std::mem;
use std::panic::Location;
use std::sync::{Mutex, PoisonError};

use crate::{Artifact, Cancel, IntoOutcome, Outcome, TestNode};

type Body = Box<dyn FnOnce(&Context) -> Outcome + Send>;

/// A test of the harness.
pub struct Test {
    pub(crate) name: String,
    /// The reason, if the test is ignored.
    pub(crate) ignored: Option<String>,
    traits: Vec<(String, String)>,
    file: String,
    line: u32,
    body: Body,
}

impl fmt::Debug for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, ignored, traits, file, line, body: _ } = self;
        let mut shown = f.debug_struct("Test");
        shown.field("name", name).field("ignored", ignored).field("traits", traits);
        shown.field("file", file).field("line", line).finish_non_exhaustive()
    }
}

impl Test {
    /// Creates a test with a name such as `shop::orders::adds`. The test fails if it panics or returns an error; an
    /// [`Outcome`] is used as it is. Servers are sent the location of this call.
    #[track_caller]
    pub fn new<R: IntoOutcome>(
        name: impl Into<String>,
        body: impl FnOnce(&Context) -> R + Send + 'static,
    ) -> Self {
        let location = Location::caller();
        Self {
            name: name.into(),
            ignored: None,
            traits: Vec::new(),
            file: location.file().to_owned(),
            line: location.line(),
            body: Box::new(move |context| body(context).into_outcome()),
        }
    }

    /// Marks the test as ignored; it then runs only on request. The reason may be empty.
    #[must_use]
    pub fn ignored(mut self, why: impl Into<String>) -> Self {
        self.ignored = Some(why.into());
        self
    }

    /// Sets the location in the source. Defaults to the location of the call of [`Test::new`]. `line` starts at 1.
    #[must_use]
    pub fn at(mut self, file: impl Into<String>, line: u32) -> Self {
        (self.file, self.line) = (file.into(), line);
        self
    }

    /// Adds a trait, by which servers can filter tests.
    #[must_use]
    pub fn with_trait(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.traits.push((key.into(), value.into()));
        self
    }

    /// Returns the name, which filters use.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn node(&self) -> TestNode {
        let node = TestNode::from_rust_path(&self.name).at(self.file.as_str(), self.line);
        self.traits.iter().fold(node, |node, (key, value)| node.with_trait(key.as_str(), value.as_str()))
    }

    pub(crate) fn run(self, context: &Context) -> Outcome {
        (self.body)(context)
    }
}

/// The context of a running test.
#[derive(Debug, Default)]
pub struct Context {
    cancel: Option<Cancel>,
    output: Mutex<String>,
    artifacts: Mutex<Vec<Artifact>>,
}

impl Context {
    /// Adds a line to the output in the result of the test. Under cargo, the output is printed.
    pub fn say(&self, line: impl fmt::Display) {
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        output.push_str(&line.to_string());
        output.push('\n');
    }

    /// Attaches a file that the test produced, such as a screenshot. Ignored under cargo.
    pub fn attach(&self, artifact: Artifact) {
        self.artifacts.lock().unwrap_or_else(PoisonError::into_inner).push(artifact);
    }

    /// Returns whether the run was canceled. Long tests can check this to stop early.
    pub fn is_cancelled(&self) -> bool {
        self.cancel.as_ref().is_some_and(|cancel| cancel.reason().is_some())
    }

    pub(crate) fn of(cancel: &Cancel) -> Self {
        Self { cancel: Some(cancel.clone()), ..Self::default() }
    }

    pub(crate) fn take_output(&self) -> String {
        mem::take(&mut self.output.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn take_artifacts(&self) -> Vec<Artifact> {
        mem::take(&mut self.artifacts.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

//! A test: its name, whether it is ignored, where it is, and what it does; and what it is given.

use std::fmt;
use std::mem;
use std::panic::Location;
use std::sync::{Mutex, PoisonError};

use crate::{Artifact, Cancel, IntoOutcome, Outcome, TestNode};

type Body = Box<dyn FnOnce(&Context) -> Outcome + Send>;

/// A test.
pub struct Test {
    pub(crate) name: String,
    /// Why, if so.
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
    /// A test with a name such as `shop::orders::adds`. It passes unless it panics, or returns an error or another
    /// [`Outcome`]. Its place is that of this call, for servers that ask.
    #[track_caller]
    pub fn new<R: IntoOutcome>(
        name: impl Into<String>,
        body: impl FnOnce(&Context) -> R + Send + 'static,
    ) -> Self {
        let place = Location::caller();
        Self {
            name: name.into(),
            ignored: None,
            traits: Vec::new(),
            file: place.file().to_owned(),
            line: place.line(),
            body: Box::new(move |context| body(context).into_outcome()),
        }
    }

    /// It runs only if that is asked for. The reason may be empty.
    #[must_use]
    pub fn ignored(mut self, why: impl Into<String>) -> Self {
        self.ignored = Some(why.into());
        self
    }

    /// Its place in the source, if it is another one than that of [`Test::new`]; `line` counts from 1.
    #[must_use]
    pub fn at(mut self, file: impl Into<String>, line: u32) -> Self {
        (self.file, self.line) = (file.into(), line);
        self
    }

    /// One more trait, by which filters of servers choose tests.
    #[must_use]
    pub fn with_trait(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.traits.push((key.into(), value.into()));
        self
    }

    /// What filters call it.
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

/// What a test can do beside passing and failing.
#[derive(Debug, Default)]
pub struct Context {
    cancel: Option<Cancel>,
    said: Mutex<String>,
    artifacts: Mutex<Vec<Artifact>>,
}

impl Context {
    /// A line of output, which is in the result of the test; under cargo it is printed.
    pub fn say(&self, line: impl fmt::Display) {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        said.push_str(&line.to_string());
        said.push('\n');
    }

    /// A file that the test has made, such as a screenshot. Cargo does not know of such things.
    pub fn attach(&self, artifact: Artifact) {
        self.artifacts.lock().unwrap_or_else(PoisonError::into_inner).push(artifact);
    }

    /// Whether the run is to end: long tests may look.
    pub fn is_cancelled(&self) -> bool {
        self.cancel.as_ref().is_some_and(|cancel| cancel.reason().is_some())
    }

    pub(crate) fn of(cancel: &Cancel) -> Self {
        Self { cancel: Some(cancel.clone()), ..Self::default() }
    }

    pub(crate) fn take_said(&self) -> String {
        mem::take(&mut self.said.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn take_artifacts(&self) -> Vec<Artifact> {
        mem::take(&mut self.artifacts.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

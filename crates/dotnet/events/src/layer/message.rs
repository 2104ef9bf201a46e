//! Events and spans of `tracing` as log messages and scopes: their texts and arguments.

use std::fmt::{self, Display};

use tracing::span::Attributes;

use super::record::{MESSAGE, NamedValues};
use crate::logs::Content;

/// A log message: the text of the event, followed by its fields.
pub(super) struct EventContent<'a>(pub(super) &'a tracing::Event<'a>);

impl Content for EventContent<'_> {
    fn arguments(&self, each: &mut dyn FnMut(&str, &dyn Display)) {
        self.0.record(&mut NamedValues(|name: &str, value: &dyn Display| {
            if name != MESSAGE {
                each(name, value);
            }
        }));
    }

    fn template(&self, text: &mut dyn fmt::Write) -> fmt::Result {
        self.text(text, |text, name, _| write!(text, "{{{name}}}"))
    }

    fn message(&self, text: &mut dyn fmt::Write) -> fmt::Result {
        self.text(text, |text, _, value| write!(text, "{value}"))
    }
}

impl EventContent<'_> {
    fn text(
        &self,
        text: &mut dyn fmt::Write,
        field: impl Fn(&mut dyn fmt::Write, &str, &dyn Display) -> fmt::Result,
    ) -> fmt::Result {
        // The message comes first, whatever its position among the fields.
        let mut outcome = Ok(());
        let mut any = false;
        self.0.record(&mut NamedValues(|name: &str, value: &dyn Display| {
            if name == MESSAGE {
                any = true;
                outcome = outcome.and_then(|()| write!(text, "{value}"));
            }
        }));
        self.0.record(&mut NamedValues(|name: &str, value: &dyn Display| {
            if name != MESSAGE {
                let separator = if any { " " } else { "" };
                any = true;
                outcome = outcome.and_then(|()| {
                    write!(text, "{separator}{name}=")?;
                    field(text, name, value)
                });
            }
        }));
        outcome
    }
}

/// A scope: the name of the span and its fields.
pub(super) struct SpanContent<'a>(pub(super) &'a Attributes<'a>);

impl Content for SpanContent<'_> {
    fn arguments(&self, each: &mut dyn FnMut(&str, &dyn Display)) {
        self.0.record(&mut NamedValues(|name: &str, value: &dyn Display| each(name, value)));
    }

    fn template(&self, text: &mut dyn fmt::Write) -> fmt::Result {
        text.write_str(self.0.metadata().name())?;
        let mut outcome = Ok(());
        self.0.record(&mut NamedValues(|name: &str, _: &dyn Display| {
            outcome = outcome.and_then(|()| write!(text, " {name}={{{name}}}"));
        }));
        outcome
    }

    fn message(&self, text: &mut dyn fmt::Write) -> fmt::Result {
        text.write_str(self.0.metadata().name())
    }
}

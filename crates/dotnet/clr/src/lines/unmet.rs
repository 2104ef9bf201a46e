//! Finds names in a selection that do not occur in the stream, most of which are misspelled. Values are not checked, because they
//! may occur in another recording.

use std::collections::BTreeSet;

use runtap_nettrace::Metadata;
use runtap_wire::nearest;

use super::Choice;
use crate::payload::Schema;

/// The number of selected events, and the names of the selection that did not occur.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Matched {
    /// The number of events in the stream.
    pub events: u64,
    /// The number of events that were taken.
    pub taken: u64,
    /// The names that did not occur: always those of providers, others only if no event was selected.
    pub unmet: Vec<Unmet>,
}

/// A name in the selection that did not occur in the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmet {
    /// What the name belongs to.
    pub of: NameOf,
    /// The name.
    pub name: String,
    /// The most similar name in the stream, if it is similar enough.
    pub nearest: Option<String>,
}

/// What a name belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum NameOf {
    /// A provider.
    Provider,
    /// An event.
    Event,
    /// A field of payloads.
    Field,
}

/// The maximum number of names of one kind, and the maximum length of a name in bytes. Beyond that it is unknown which names occur.
const MAX_NAMES: usize = 10_000;
const MAX_NAME: usize = 256;

/// The names in the definitions of a stream.
#[derive(Debug, Default)]
pub(super) struct StreamNames {
    providers: Names,
    events: Names,
    fields: Names,
}

#[derive(Debug, Default)]
struct Names {
    names: BTreeSet<String>,
    is_incomplete: bool,
}

impl Names {
    fn add(&mut self, name: &str) {
        if name.is_empty() || self.names.contains(name) {
            return;
        }
        if name.len() > MAX_NAME || self.names.len() >= MAX_NAMES {
            self.is_incomplete = true;
        } else {
            self.names.insert(name.to_owned());
        }
    }

    /// Returns the name if it is certain that it did not occur.
    fn unmet(&self, of: NameOf, name: &str) -> Option<Unmet> {
        if self.is_incomplete || self.names.contains(name) {
            return None;
        }
        let nearest = nearest(name, self.names.iter().map(String::as_str)).map(str::to_owned);
        Some(Unmet { of, name: name.to_owned(), nearest })
    }
}

impl StreamNames {
    pub(super) fn define(&mut self, metadata: &Metadata, schema: &Schema) {
        self.providers.add(&metadata.provider);
        schema.names().for_each(|name| self.events.add(name));
        schema.field_names().for_each(|name| self.fields.add(name));
    }

    pub(super) fn unmet(&self, choice: &Choice, has_taken: bool) -> Vec<Unmet> {
        let mut unmet: Vec<Unmet> =
            choice.providers.iter().filter_map(|name| self.providers.unmet(NameOf::Provider, name)).collect();
        if let (Some(filter), false) = (&choice.filter, has_taken) {
            filter.each_name(&mut |of, name| {
                let names = match of {
                    NameOf::Provider => &self.providers,
                    NameOf::Event => &self.events,
                    NameOf::Field => &self.fields,
                };
                // `Outer.Inner` may be a field of an object, or the name of a field.
                let is_inner = of == NameOf::Field
                    && name.split_once('.').is_some_and(|(outer, _)| names.names.contains(outer));
                unmet.extend(names.unmet(of, name).filter(|_| !is_inner));
            });
        }
        let mut told = BTreeSet::new();
        unmet.retain(|it| told.insert((it.of, it.name.clone())));
        unmet
    }
}

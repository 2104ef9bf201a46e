//! Names in a choice that nothing in the stream has: most are misspelled, and the choice takes nothing. Refuses to judge
//! values, which the next recording may have.

use std::collections::BTreeSet;

use runtap_nettrace::Metadata;

use super::Choice;
use crate::payload::Schema;

/// What was taken of a stream, and which names of the choice it lacks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Matched {
    /// The number of events in the stream.
    pub events: u64,
    /// The number of events that were taken.
    pub taken: u64,
    /// Names that the stream lacks: of providers always, of others if nothing was taken.
    pub unmet: Vec<Unmet>,
}

/// A name that was asked for, and that nothing in the stream has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmet {
    /// What has such a name.
    pub of: NameOf,
    /// The name.
    pub name: String,
    /// The nearest name that the stream has, if it is near enough to be meant.
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

/// Names of one kind that are kept, and the longest of them in bytes: beyond that, it is unknown what the stream lacks.
const MAX_NAMES: usize = 10_000;
const MAX_NAME: usize = 256;

/// The names that the definitions of a stream have.
#[derive(Debug, Default)]
pub(super) struct Seen {
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

    /// What there is to say of a name, if none of these is it.
    fn unmet(&self, of: NameOf, name: &str) -> Option<Unmet> {
        if self.is_incomplete || self.names.contains(name) {
            return None;
        }
        Some(Unmet { of, name: name.to_owned(), nearest: self.nearest(name) })
    }

    fn nearest(&self, name: &str) -> Option<String> {
        nearest(name, self.names.iter().map(String::as_str)).map(str::to_owned)
    }
}

/// The name of some that is nearest to a name, if it is near enough to be meant.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = name.to_lowercase();
    let far = |known: &'a str| (strsim::osa_distance(&known.to_lowercase(), &lower), known);
    let nearest = known.into_iter().map(far).min();
    nearest.filter(|(n, known)| *n <= 2.max(known.len() / 3)).map(|(_, known)| known)
}

impl Seen {
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
                // `Outer.Inner` is a field of an object, and the whole may be the name of a field.
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

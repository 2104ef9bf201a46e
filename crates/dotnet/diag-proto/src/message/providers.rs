//! The providers of a session: which events of which source, and at which level. Section "CollectTracing" of the
//! specification. Rejects every provider that real runtimes reject, misread or crash on.

use std::collections::HashSet;

use runtap_wire::{DecodeError, DecodeErrorKind, Reader, Writer};

use super::{bounded_count, string, wire_count};
use crate::{EncodeError, error::unexpected};

/// The most providers in one session.
pub const MAX_PROVIDERS: usize = 1000;

/// The most event ids in one filter: the highest number known to work. A far higher count crashes the server.
pub const MAX_FILTER_IDS: usize = 10_000;

/// The level of detail of a provider's events. An event passes if its level is not above the session's, **or if the
/// session's level is 0**. Runtimes reject sessions with levels above 5.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
#[repr(u8)]
pub enum Level {
    /// 0: all events, whatever their level.
    LogAlways = 0,
    /// 1.
    Critical = 1,
    /// 2.
    Error = 2,
    /// 3.
    Warning = 3,
    /// 4.
    Informational = 4,
    /// 5: all events, too, because no event has a higher level.
    #[default]
    Verbose = 5,
}

impl Level {
    /// Every level, ordered by number.
    pub const ALL: [Self; 6] =
        [Self::LogAlways, Self::Critical, Self::Error, Self::Warning, Self::Informational, Self::Verbose];

    /// Returns the level with this number. `None` if unknown.
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.number() == number)
    }

    /// Returns the number of the level.
    pub fn number(self) -> u32 {
        u32::from(self as u8)
    }

    /// Returns the level that lets more events through. [`LogAlways`](Self::LogAlways) lets all through.
    #[must_use]
    pub fn widest(self, other: Self) -> Self {
        if self == Self::LogAlways || other == Self::LogAlways { Self::LogAlways } else { self.max(other) }
    }
}

/// A list of event ids to pass or to hold back, applied after keywords and level. Sent since CollectTracing5.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EventFilter {
    /// Whether only these ids pass (`true`), or all others (`false`).
    pub enable: bool,
    /// The ids, at most [`MAX_FILTER_IDS`]. Duplicates are harmless.
    pub ids: Vec<u32>,
}

impl EventFilter {
    /// Creates a filter that passes only these ids.
    pub fn only(ids: impl Into<Vec<u32>>) -> Self {
        Self { enable: true, ids: ids.into() }
    }

    /// Creates a filter that passes all other ids.
    pub fn except(ids: impl Into<Vec<u32>>) -> Self {
        Self { enable: false, ids: ids.into() }
    }

    /// Returns whether events with this id pass.
    pub fn passes(&self, id: u32) -> bool {
        self.ids.contains(&id) == self.enable
    }

    /// Returns a filter that passes the events that pass either filter.
    #[must_use]
    fn union(self, other: Self) -> Self {
        let within = |ids: &[u32]| ids.iter().copied().collect::<HashSet<_>>();
        match (self.enable, other.enable) {
            (true, true) => {
                let known = within(&self.ids);
                let mut ids = self.ids;
                ids.extend(other.ids.into_iter().filter(|id| !known.contains(id)));
                Self::only(ids)
            }
            (false, false) => {
                let known = within(&other.ids);
                Self::except(self.ids.into_iter().filter(|id| known.contains(id)).collect::<Vec<_>>())
            }
            (true, false) => {
                let passing = within(&self.ids);
                Self::except(other.ids.into_iter().filter(|id| !passing.contains(id)).collect::<Vec<_>>())
            }
            (false, true) => other.union(self),
        }
    }
}

/// One source of events in a session.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Provider {
    /// The name: case-sensitive, not empty, without NUL.
    pub name: String,
    /// An event passes if it has no keywords or shares a bit with these. **0 passes only events without keywords.**
    pub keywords: u64,
    /// The level of detail.
    pub level: Level,
    /// Arguments for the provider, usually `key=value;key=value`. `None` and the empty string are equivalent for
    /// a runtime, but encoded differently.
    pub arguments: Option<String>,
    /// A filter by event id. `None` passes all events.
    pub filter: Option<EventFilter>,
}

impl Provider {
    /// Creates a provider without arguments and filter.
    pub fn new(name: impl Into<String>, keywords: u64, level: Level) -> Self {
        Self { name: name.into(), keywords, level, arguments: None, filter: None }
    }

    /// Sets the arguments.
    #[must_use]
    pub fn with_arguments(mut self, arguments: impl Into<String>) -> Self {
        self.arguments = Some(arguments.into());
        self
    }

    /// Sets the event filter.
    #[must_use]
    pub fn with_filter(mut self, filter: EventFilter) -> Self {
        self.filter = Some(filter);
        self
    }

    /// Merges another entry for this provider, so that all events of both are requested.
    fn absorb(&mut self, other: Self) -> Result<(), EncodeError> {
        self.keywords |= other.keywords;
        self.level = self.level.widest(other.level);
        let given = |arguments: Option<String>| arguments.filter(|text| !text.is_empty());
        self.arguments = match (given(self.arguments.take()), given(other.arguments)) {
            (Some(one), Some(two)) if one != two => {
                return Err(EncodeError::ConflictingArguments { provider: self.name.clone() });
            }
            (one, two) => one.or(two),
        };
        self.filter = match (self.filter.take(), other.filter) {
            (Some(one), Some(two)) => Some(one.union(two)),
            _ => None,
        };
        Ok(())
    }
}

/// Merges entries for the same provider, because runtimes would use the first one only: keywords are combined, the
/// level is the widest of all, and filters pass the events that any entry passes. Keeps the order of first appearance.
///
/// # Errors
/// [`EncodeError::ConflictingArguments`] if two entries have different arguments.
pub fn merge_providers(providers: Vec<Provider>) -> Result<Vec<Provider>, EncodeError> {
    let mut merged: Vec<Provider> = Vec::new();
    for provider in providers {
        match merged.iter_mut().find(|known| known.name == provider.name) {
            Some(known) => known.absorb(provider)?,
            None => merged.push(provider),
        }
    }
    Ok(merged)
}

/// Rejects providers that must not be sent.
pub(crate) fn validate<'a>(
    providers: impl ExactSizeIterator<Item = &'a Provider>,
) -> Result<(), EncodeError> {
    if providers.len() == 0 {
        return Err(EncodeError::NoProviders);
    }
    if providers.len() > MAX_PROVIDERS {
        return Err(EncodeError::TooManyProviders { count: providers.len() });
    }
    let mut names = HashSet::new();
    for provider in providers {
        if provider.name.is_empty() {
            return Err(EncodeError::EmptyProviderName);
        }
        if provider.name.contains('\0') {
            return Err(EncodeError::EmbeddedNul { field: "provider name" });
        }
        if provider.arguments.as_deref().is_some_and(|text| text.contains('\0')) {
            return Err(EncodeError::EmbeddedNul { field: "provider arguments" });
        }
        if let Some(filter) = &provider.filter
            && filter.ids.len() > MAX_FILTER_IDS
        {
            return Err(EncodeError::FilterTooLong {
                provider: provider.name.clone(),
                ids: filter.ids.len(),
            });
        }
        if !names.insert(provider.name.as_str()) {
            return Err(EncodeError::DuplicateProvider { provider: provider.name.clone() });
        }
    }
    Ok(())
}

/// Appends the provider array, with event filters if `filters` (since CollectTracing5). The providers must be valid.
pub(crate) fn encode(w: &mut Writer, providers: &[Provider], filters: bool) {
    w.u32(wire_count(providers.len()));
    for provider in providers {
        encode_one(w, provider, filters);
    }
}

/// Appends one element of the array.
pub(super) fn encode_one(w: &mut Writer, provider: &Provider, filters: bool) {
    w.u64(provider.keywords).u32(provider.level.number());
    w.utf16_counted(Some(&provider.name)).utf16_counted(provider.arguments.as_deref());
    if filters {
        let ids = provider.filter.as_ref().map_or(&[][..], |filter| &filter.ids);
        w.u8(u8::from(provider.filter.as_ref().is_some_and(|filter| filter.enable)));
        encode_ids(w, ids);
    }
}

/// Appends a list of event ids.
pub(super) fn encode_ids(w: &mut Writer, ids: &[u32]) {
    w.u32(wire_count(ids.len()));
    for id in ids {
        w.u32(*id);
    }
}

/// Reads the provider array as a runtime does, with checked arithmetic. Duplicates are kept: a runtime uses
/// the first of them.
pub(crate) fn decode(r: &mut Reader<'_>, filters: bool) -> Result<Vec<Provider>, DecodeError> {
    decode_list(r, |r| decode_one(r, filters))
}

/// Reads the count of the array and then its elements.
pub(super) fn decode_list<T>(
    r: &mut Reader<'_>,
    mut element: impl FnMut(&mut Reader<'_>) -> Result<T, DecodeError>,
) -> Result<Vec<T>, DecodeError> {
    let count = bounded_count(r, "provider count", MAX_PROVIDERS)?;
    if count == 0 {
        let kind = DecodeErrorKind::TooSmall { value: 0, least: 1 };
        return Err(DecodeError::new(r.offset().saturating_sub(4), "provider count", kind));
    }
    (0..count).map(|_| element(r)).collect()
}

/// Reads one element of the array.
pub(super) fn decode_one(r: &mut Reader<'_>, filters: bool) -> Result<Provider, DecodeError> {
    let keywords = r.u64("provider keywords")?;
    let offset = r.offset();
    let number = r.u32("provider level")?;
    let level =
        Level::from_number(number).ok_or_else(|| unexpected(offset, "provider level", number, "0 to 5"))?;
    let offset = r.offset();
    let name = string(r, "provider name")?.unwrap_or_default();
    if name.is_empty() {
        return Err(DecodeError::new(offset, "provider name", DecodeErrorKind::Invalid("is empty")));
    }
    let arguments = string(r, "provider arguments")?;
    let filter = if filters { decode_filter(r)? } else { None };
    Ok(Provider { name, keywords, level, arguments, filter })
}

fn decode_filter(r: &mut Reader<'_>) -> Result<Option<EventFilter>, DecodeError> {
    let enable = r.u8("filter enable")? != 0;
    let count = bounded_count(r, "filter id count", MAX_FILTER_IDS)?;
    let ids = decode_ids(r, count, "filter id")?;
    // The absence of a filter is encoded as a filter that holds back nothing.
    Ok((enable || !ids.is_empty()).then_some(EventFilter { enable, ids }))
}

/// Reads `count` event ids.
pub(super) fn decode_ids(
    r: &mut Reader<'_>,
    count: u32,
    what: &'static str,
) -> Result<Vec<u32>, DecodeError> {
    (0..count).map(|_| r.u32(what)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn level_0_is_the_widest() {
        assert_eq!(Level::Error.widest(Level::Warning), Level::Warning);
        assert_eq!(Level::Verbose.widest(Level::LogAlways), Level::LogAlways);
        assert_eq!(Level::from_number(5), Some(Level::Verbose));
        assert_eq!(Level::from_number(6), None);
        assert_eq!(Level::from_number(256), None);
    }

    #[test]
    fn entries_of_one_provider_are_merged_in_order() {
        let merged = merge_providers(vec![
            Provider::new("A", 1, Level::Error),
            Provider::new("B", 7, Level::Verbose),
            Provider::new("A", 4, Level::Warning).with_arguments("x=1"),
            Provider::new("A", 0, Level::Critical).with_arguments(""),
        ])
        .unwrap();
        assert_eq!(
            merged,
            [
                Provider::new("A", 5, Level::Warning).with_arguments("x=1"),
                Provider::new("B", 7, Level::Verbose)
            ]
        );
    }

    #[test]
    fn names_differ_by_case() {
        let two = vec![Provider::new("A", 1, Level::Error), Provider::new("a", 1, Level::Error)];
        assert_eq!(merge_providers(two.clone()).unwrap(), two);
    }

    #[test]
    fn two_argument_strings_cannot_be_merged() {
        let twice = ["x=1", "x=2"].map(|text| Provider::new("A", 1, Level::Error).with_arguments(text));
        assert_eq!(
            merge_providers(twice.to_vec()).unwrap_err(),
            EncodeError::ConflictingArguments { provider: "A".into() }
        );
    }

    #[test]
    fn merged_filters_pass_what_either_passes() {
        let passes = |filter: &Option<EventFilter>, id: u32| {
            filter.as_ref().is_none_or(|filter| filter.ids.contains(&id) == filter.enable)
        };
        let filters = [
            None,
            Some(EventFilter::only([])),
            Some(EventFilter::only([1, 2])),
            Some(EventFilter::only([2, 3])),
            Some(EventFilter::except([])),
            Some(EventFilter::except([1, 2])),
            Some(EventFilter::except([2, 3])),
        ];
        for one in &filters {
            for two in &filters {
                let [mut a, mut b] = [1, 2].map(|_| Provider::new("A", 1, Level::Error));
                a.filter.clone_from(one);
                b.filter.clone_from(two);
                let merged = merge_providers(vec![a, b]).unwrap();
                for id in 0..5 {
                    assert_eq!(
                        passes(&merged[0].filter, id),
                        passes(one, id) || passes(two, id),
                        "{one:?} {two:?} {id}"
                    );
                }
            }
        }
    }
}

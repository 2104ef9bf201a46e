//! Resolves a selection of events to one list of providers.
//!
//! Remarks and errors are data, [`Note`] and [`RequestError`], because the caller knows the names of the options.

use runtap_diag_proto::{EncodeError, Level, Provider, merge_providers};
use thiserror::Error;

use crate::providers::arguments;
use crate::providers::grammar::is_above_verbose;
use crate::providers::{
    CLR_PROVIDER, ProviderError, ProviderSpec, clr_keywords, parse_event_filter, parse_level, profile,
};

/// A selection of events, as typed by the user.
#[derive(Debug, Clone, Default)]
pub struct Selection<'a> {
    /// Lists of providers (dotnet-trace's `--providers`).
    pub providers: &'a [String],
    /// Lists of profile names (`--profile`).
    pub profiles: &'a [String],
    /// Names of CLR keywords (`--clrevents`).
    pub clr_events: Option<&'a str>,
    /// The level for the CLR keywords (`--clreventlevel`).
    pub clr_event_level: Option<&'a str>,
    /// Event filters, each `NAME=[!]IDS`.
    pub event_filters: &'a [String],
}

/// A field of a [`Selection`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// [`Selection::providers`]
    Providers,
    /// [`Selection::profiles`]
    Profiles,
    /// [`Selection::clr_events`]
    ClrEvents,
    /// [`Selection::clr_event_level`]
    ClrEventLevel,
    /// [`Selection::event_filters`]
    EventFilters,
}

/// Why a provider is enabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum EnabledBy {
    /// It is in a list of providers.
    Providers,
    /// It is in a profile, which was specified or is a default.
    Profile,
    /// Names of CLR keywords were specified.
    ClrEvents,
    /// [`Request::add_method_names`]
    MethodNames,
}

/// A remark for the user: something was ignored or filled in. Exhaustive on purpose: programs that show remarks must handle all of
/// them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// A level is above the highest level, which is used.
    LevelTooHigh {
        /// The provider. `None` for the level of the CLR keywords.
        provider: Option<String>,
    },
    /// No keywords were specified, so all are enabled.
    AllKeywords {
        /// The providers.
        providers: Vec<String>,
    },
    /// Values in the arguments were not quoted and would have been split by the runtime, so quotes were added.
    ArgumentsQuoted {
        /// The provider.
        provider: String,
        /// The arguments as they are sent.
        arguments: String,
    },
    /// The arguments contain `\n` or `\r` as two characters, which providers do not treat as a line break.
    EscapesInArguments {
        /// The provider.
        provider: String,
    },
    /// Profiles were specified, but no names.
    NoProfile,
    /// Nothing was specified, so default profiles are used.
    Default {
        /// The names of the profiles.
        profiles: Vec<&'static str>,
    },
    /// The level of the CLR provider was raised, because method names are sent only at level Verbose.
    VerboseForNames,
    /// A level for CLR keywords was specified without keywords.
    LevelWithoutClrEvents,
    /// The CLR provider is in a list or a profile, so the CLR keywords are ignored.
    ClrEventsIgnored,
}

/// The profiles that are used if nothing is specified: common events and samples.
const DEFAULT_PROFILES: [&str; 2] = ["dotnet-common", "dotnet-sampled-thread-time"];

/// The keywords Loader and Jit: modules and compiled methods.
pub(crate) const METHOD_NAMES: u64 = 0x18;

/// A requested provider, and why it is enabled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requested {
    /// The settings of the provider.
    pub provider: Provider,
    /// Why it is enabled.
    pub by: EnabledBy,
}

/// The events of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Request {
    /// The providers, without duplicates.
    pub providers: Vec<Requested>,
    /// The rundown keyword that the profiles need, if it differs from the standard one.
    pub rundown_keyword: Option<u64>,
    /// Remarks for the user.
    pub notes: Vec<Note>,
}

/// An error in a selection.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RequestError {
    /// A part is invalid.
    #[error("{source}")]
    Unreadable {
        /// The invalid part.
        part: Part,
        /// The error.
        source: ProviderError,
    },
    /// A filter is for a provider that is not enabled.
    #[error("there is a filter for {provider}, which is not enabled")]
    NotChosen {
        /// The provider.
        provider: String,
    },
    /// There are two filters for one provider.
    #[error("there are two filters for {provider}")]
    FilterTwice {
        /// The provider.
        provider: String,
    },
    /// Two entries for one provider can't be merged.
    #[error("{source}")]
    Merge {
        /// The part with the entries.
        part: Part,
        /// The error.
        source: EncodeError,
    },
}

impl Request {
    /// Resolves a selection as dotnet-trace does. The order of precedence is: providers, profiles, CLR keywords; a provider is taken
    /// from the first part that contains it. An empty selection means the CPU profile.
    ///
    /// # Errors
    /// Returns an error for an invalid part.
    pub fn resolve(selection: &Selection<'_>) -> Result<Self, RequestError> {
        let at = |part| move |source| RequestError::Unreadable { part, source };
        let mut request = Self::default();

        let mut named = Vec::new();
        let mut open: Vec<String> = Vec::new();
        for list in selection.providers.iter().filter(|list| !list.trim().is_empty()) {
            for spec in ProviderSpec::parse_list(list).map_err(at(Part::Providers))? {
                if spec.keywords.is_none() && !open.contains(&spec.name) {
                    open.push(spec.name.clone());
                }
                if spec.is_above_verbose {
                    request.notes.push(Note::LevelTooHigh { provider: Some(spec.name.clone()) });
                }
                let mut sent = spec.arguments;
                if let Some(arguments) = sent.as_deref().and_then(arguments::quoted) {
                    let (provider, arguments) = (spec.name.clone(), sent.insert(arguments).clone());
                    request.notes.push(Note::ArgumentsQuoted { provider, arguments });
                }
                if sent.as_deref().is_some_and(arguments::has_escapes) {
                    request.notes.push(Note::EscapesInArguments { provider: spec.name.clone() });
                }
                named.push(Provider {
                    arguments: sent,
                    ..Provider::new(
                        spec.name,
                        spec.keywords.unwrap_or(u64::MAX),
                        spec.level.unwrap_or(Level::Informational),
                    )
                });
            }
        }
        if !open.is_empty() {
            request.notes.push(Note::AllKeywords { providers: open });
        }

        let mut profiles: Vec<&str> =
            selection.profiles.iter().flat_map(|list| list.split(',')).map(str::trim).collect();
        profiles.retain(|name| !name.is_empty());
        if profiles.is_empty() && !selection.profiles.is_empty() {
            request.notes.push(Note::NoProfile);
        }
        if named.is_empty() && profiles.is_empty() && selection.clr_events.is_none() {
            profiles = DEFAULT_PROFILES.to_vec();
            request.notes.push(Note::Default { profiles: DEFAULT_PROFILES.to_vec() });
        }
        let mut from_profiles = Vec::new();
        let mut rundowns = Vec::new();
        for name in profiles {
            let profile = profile(name).map_err(at(Part::Profiles))?;
            rundowns.push(profile.rundown_keyword);
            from_profiles.extend(profile.providers());
        }
        // A small rundown suffices only if no other stacks need names.
        if named.is_empty() && selection.clr_events.is_none() {
            let all: Option<Vec<u64>> = rundowns.into_iter().collect();
            request.rundown_keyword = all.and_then(|keywords| keywords.into_iter().reduce(|a, b| a | b));
        }
        request.add(Part::Providers, named, EnabledBy::Providers)?;
        request.add(Part::Profiles, from_profiles, EnabledBy::Profile)?;
        request.add_clr_events(selection)?;
        request.add_filters(selection)?;
        Ok(request)
    }

    /// Enables events with the name of each method when it is compiled, and not only at the end of a session, for recordings that
    /// may be interrupted. This requires level Verbose, which then also applies to other keywords of the runtime's provider.
    pub fn add_method_names(&mut self) {
        let known = self.providers.iter_mut().find(|entry| entry.provider.name == CLR_PROVIDER);
        let Some(Requested { provider, .. }) = known else {
            let provider = Provider::new(CLR_PROVIDER, METHOD_NAMES, Level::Verbose);
            self.providers.push(Requested { provider, by: EnabledBy::MethodNames });
            return;
        };
        // Level 0 enables everything already.
        if (Level::Critical..Level::Verbose).contains(&provider.level) {
            if provider.keywords & !METHOD_NAMES != 0 {
                self.notes.push(Note::VerboseForNames);
            }
            provider.level = Level::Verbose;
        }
        provider.keywords |= METHOD_NAMES;
    }

    /// Whether method names are sent while the session runs.
    pub fn includes_method_names(&self) -> bool {
        self.providers.iter().any(|Requested { provider, .. }| {
            provider.name == CLR_PROVIDER
                && provider.keywords & METHOD_NAMES == METHOD_NAMES
                && matches!(provider.level, Level::LogAlways | Level::Verbose)
        })
    }

    fn add_filters(&mut self, selection: &Selection<'_>) -> Result<(), RequestError> {
        for text in selection.event_filters {
            let (name, filter) = parse_event_filter(text)
                .map_err(|source| RequestError::Unreadable { part: Part::EventFilters, source })?;
            let entry = self.providers.iter_mut().find(|entry| entry.provider.name == name);
            let Some(entry) = entry else {
                return Err(RequestError::NotChosen { provider: name.to_owned() });
            };
            if entry.provider.filter.replace(filter).is_some() {
                return Err(RequestError::FilterTwice { provider: name.to_owned() });
            }
        }
        Ok(())
    }

    /// Adds the providers of a part that are not in an earlier part.
    fn add(&mut self, part: Part, providers: Vec<Provider>, by: EnabledBy) -> Result<(), RequestError> {
        let merged = merge_providers(providers).map_err(|source| RequestError::Merge { part, source })?;
        for provider in merged {
            if !self.names(&provider.name) {
                self.providers.push(Requested { provider, by });
            }
        }
        Ok(())
    }

    fn names(&self, name: &str) -> bool {
        self.providers.iter().any(|earlier| earlier.provider.name == name)
    }

    fn add_clr_events(&mut self, selection: &Selection<'_>) -> Result<(), RequestError> {
        let level = match selection.clr_event_level {
            None => Level::Informational,
            Some(text) => parse_level(text)
                .map_err(|source| RequestError::Unreadable { part: Part::ClrEventLevel, source })?,
        };
        if selection.clr_event_level.is_some_and(is_above_verbose) {
            self.notes.push(Note::LevelTooHigh { provider: None });
        }
        let Some(events) = selection.clr_events else {
            if selection.clr_event_level.is_some() {
                self.notes.push(Note::LevelWithoutClrEvents);
            }
            return Ok(());
        };
        let keywords = clr_keywords(events)
            .map_err(|source| RequestError::Unreadable { part: Part::ClrEvents, source })?;
        if self.names(CLR_PROVIDER) {
            self.notes.push(Note::ClrEventsIgnored);
        } else {
            let provider = Provider::new(CLR_PROVIDER, keywords, level);
            self.providers.push(Requested { provider, by: EnabledBy::ClrEvents });
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;

//! From what was typed to one list of providers: what wins over what.
//!
//! What is to be said of it comes as data, [`Note`] and [`RequestError`]: how the ways of choosing are called is known to
//! whoever offers them.

use runtap_diag_proto::{EncodeError, Level, Provider, merge_providers};
use thiserror::Error;

use crate::providers::arguments;
use crate::providers::grammar::is_above_verbose;
use crate::providers::{
    CLR_PROVIDER, ProviderError, ProviderSpec, clr_keywords, parse_event_filter, parse_level, profile,
};

/// What chooses events, as it was typed.
#[derive(Debug, Clone, Default)]
pub struct Selection<'a> {
    /// Providers, each a list (dotnet-trace's `--providers`).
    pub providers: &'a [String],
    /// Profiles, each a list of names (`--profile`).
    pub profiles: &'a [String],
    /// Names of CLR keywords (`--clrevents`).
    pub clr_events: Option<&'a str>,
    /// Their level (`--clreventlevel`).
    pub clr_event_level: Option<&'a str>,
    /// Which events of a provider, each `NAME=[!]IDS`.
    pub event_filters: &'a [String],
}

/// One of the fields of a [`Selection`].
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

/// Why a provider is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum EnabledBy {
    /// It is in a list of providers.
    Providers,
    /// It is in a profile, which was named or is there by default.
    Profile,
    /// Names of CLR keywords are given.
    ClrEvents,
    /// [`Request::add_method_names`]
    MethodNames,
}

/// Something that people should know: what was ignored or filled in. Not `non_exhaustive`: whoever tells them wants to
/// know of a new one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// A level is above the highest, which is taken.
    LevelTooHigh {
        /// The provider; `None` is the level of the CLR keywords.
        provider: Option<String>,
    },
    /// No keywords were given: all of them are asked for.
    AllKeywords {
        /// For whom.
        providers: Vec<String>,
    },
    /// Values in the arguments were not quoted, and the runtime would have torn them: quotes were added.
    ArgumentsQuoted {
        /// The provider.
        provider: String,
        /// The arguments as they are sent.
        arguments: String,
    },
    /// The arguments have `\n` or `\r` as two characters, which providers do not take for a line break.
    EscapesInArguments {
        /// The provider.
        provider: String,
    },
    /// Profiles were given, but no name is among them.
    NoProfile,
    /// Nothing was chosen: these profiles are taken.
    Default {
        /// Their names.
        profiles: Vec<&'static str>,
    },
    /// The level of the CLR's provider was raised, because it tells names of methods at Verbose only.
    VerboseForNames,
    /// A level for CLR keywords, but no keywords.
    LevelWithoutClrEvents,
    /// The CLR's provider is in a list or a profile: the CLR keywords are ignored.
    ClrEventsIgnored,
}

/// What is taken when nothing is chosen: events for people, and samples.
const DEFAULT_PROFILES: [&str; 2] = ["dotnet-common", "dotnet-sampled-thread-time"];

/// Loader and Jit: modules and compiled methods.
const METHOD_NAMES: u64 = 0x18;

/// One provider, and why it is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requested {
    /// What is asked of it.
    pub provider: Provider,
    /// Why.
    pub by: EnabledBy,
}

/// What a session shall deliver.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Request {
    /// The providers, none twice.
    pub providers: Vec<Requested>,
    /// The rundown keyword that the profiles need, where it differs from the standard.
    pub rundown_keyword: Option<u64>,
    /// What to tell people.
    pub notes: Vec<Note>,
}

/// Why no session comes of it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RequestError {
    /// A part can't be read.
    #[error("{source}")]
    Unreadable {
        /// Which.
        part: Part,
        /// What is wrong.
        source: ProviderError,
    },
    /// A filter for a provider that nothing chooses.
    #[error("a filter is for {provider}, which is not chosen")]
    NotChosen {
        /// The provider.
        provider: String,
    },
    /// Two filters for one provider, of which one holds back what the other lets through.
    #[error("two filters are for {provider}")]
    FilterTwice {
        /// The provider.
        provider: String,
    },
    /// Two entries for one provider can't be joined.
    #[error("{source}")]
    Merge {
        /// Where they are.
        part: Part,
        /// What is wrong.
        source: EncodeError,
    },
}

impl Request {
    /// Resolves them as dotnet-trace does: providers before profiles before CLR keywords, a provider that an earlier one
    /// names is taken from there alone; nothing at all means the CPU profile.
    ///
    /// # Errors
    /// The part that can't be read.
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
        // A small rundown is enough only if nothing else was asked for whose stacks need names.
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

    /// Has the runtime tell the name of each method when it compiles it, not only at the end of a session: for recordings
    /// that may be broken off. That takes the level Verbose, which other keywords of the runtime's provider get too.
    pub fn add_method_names(&mut self) {
        let known = self.providers.iter_mut().find(|entry| entry.provider.name == CLR_PROVIDER);
        let Some(Requested { provider, .. }) = known else {
            let provider = Provider::new(CLR_PROVIDER, METHOD_NAMES, Level::Verbose);
            self.providers.push(Requested { provider, by: EnabledBy::MethodNames });
            return;
        };
        // At level 0 it tells everything already.
        if (Level::Critical..Level::Verbose).contains(&provider.level) {
            if provider.keywords & !METHOD_NAMES != 0 {
                self.notes.push(Note::VerboseForNames);
            }
            provider.level = Level::Verbose;
        }
        provider.keywords |= METHOD_NAMES;
    }

    /// Whether names of methods come while the session runs.
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

    /// Adds the providers of a part that no earlier part names.
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

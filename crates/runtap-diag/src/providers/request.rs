//! From options to one list of providers: what wins over what.

use std::fmt;

use runtap_diag_proto::{EncodeError, Level, Provider, merge_providers};
use thiserror::Error;

use super::grammar::is_above_verbose;
use super::{
    CLR_PROVIDER, ProviderError, ProviderSpec, clr_keywords, parse_event_filter, parse_level, profile,
};

/// The options that choose events, as they were given.
#[derive(Debug, Clone, Default)]
pub struct Selection<'a> {
    /// `--providers`, each a list.
    pub providers: &'a [String],
    /// `--profile`, each a list of names.
    pub profiles: &'a [String],
    /// `--clrevents`.
    pub clr_events: Option<&'a str>,
    /// `--clreventlevel`.
    pub clr_event_level: Option<&'a str>,
    /// `--event-filter`, each `NAME=[!]IDS`.
    pub event_filters: &'a [String],
}

/// Which option a provider came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum EnabledBy {
    /// `--providers`
    Providers,
    /// `--profile`, or the default profiles
    Profile,
    /// `--clrevents`
    ClrEvents,
    /// `--method-names`
    MethodNames,
}

const NO_HIGHER_LEVEL: &str = "levels end at 5 (Verbose), which is taken";

/// Loader and Jit: modules and compiled methods.
const METHOD_NAMES: u64 = 0x18;

impl fmt::Display for EnabledBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Providers => "--providers",
            Self::Profile => "--profile",
            Self::ClrEvents => "--clrevents",
            Self::MethodNames => "--method-names",
        })
    }
}

/// One provider, and where it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requested {
    /// What is asked of it.
    pub provider: Provider,
    /// Which option asked.
    pub by: EnabledBy,
}

/// What a session shall deliver.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Request {
    /// The providers, none twice.
    pub providers: Vec<Requested>,
    /// The rundown keyword that the profiles need, where it differs from the standard.
    pub rundown_keyword: Option<u64>,
    /// Things the user should know: what was ignored or filled in.
    pub notes: Vec<String>,
}

/// Why the options make no session.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RequestError {
    /// An option can't be read.
    #[error("{option}: {source}")]
    Option {
        /// The option.
        option: &'static str,
        /// What is wrong.
        source: ProviderError,
    },
    /// A filter for a provider that no option chooses.
    #[error(
        "--event-filter: {provider} is not recorded: choose it with --providers, --profile or --clrevents"
    )]
    NotChosen {
        /// The provider.
        provider: String,
    },
    /// Two filters for one provider, of which one holds back what the other lets through.
    #[error("--event-filter: {provider} is there twice: list all its events in one")]
    FilterTwice {
        /// The provider.
        provider: String,
    },
    /// Two entries for one provider can't be joined.
    #[error("{option}: {source}")]
    Merge {
        /// The option.
        option: &'static str,
        /// What is wrong.
        source: EncodeError,
    },
}

impl Request {
    /// Resolves the options as dotnet-trace does: `--providers` before `--profile` before `--clrevents`, a provider
    /// that an earlier one names is taken from there alone; nothing at all means the CPU profile.
    ///
    /// # Errors
    /// The option that can't be read.
    pub fn resolve(selection: &Selection<'_>) -> Result<Self, RequestError> {
        let at = |option| move |source| RequestError::Option { option, source };
        let mut request = Self::default();

        let mut named = Vec::new();
        let mut open: Vec<String> = Vec::new();
        for list in selection.providers.iter().filter(|list| !list.trim().is_empty()) {
            for spec in ProviderSpec::parse_list(list).map_err(at("--providers"))? {
                if spec.keywords.is_none() && !open.contains(&spec.name) {
                    open.push(spec.name.clone());
                }
                if spec.is_above_verbose {
                    request.notes.push(format!("{}: {NO_HIGHER_LEVEL}", spec.name));
                }
                named.push(Provider {
                    arguments: spec.arguments,
                    ..Provider::new(
                        spec.name,
                        spec.keywords.unwrap_or(u64::MAX),
                        spec.level.unwrap_or(Level::Informational),
                    )
                });
            }
        }
        if !open.is_empty() {
            request.notes.push(format!(
                "no keywords given for {}: asking for all of them ('NAME:0' asks for events without keywords only)",
                open.join(", ")
            ));
        }

        let mut profiles: Vec<&str> =
            selection.profiles.iter().flat_map(|list| list.split(',')).map(str::trim).collect();
        profiles.retain(|name| !name.is_empty());
        if profiles.is_empty() && !selection.profiles.is_empty() {
            request.notes.push("--profile is empty: 'runtap list-profiles' lists what it takes".to_owned());
        }
        if named.is_empty() && profiles.is_empty() && selection.clr_events.is_none() {
            profiles = vec!["dotnet-common", "dotnet-sampled-thread-time"];
            request.notes.push(format!("no providers given: taking the profiles {}", profiles.join(" and ")));
        }
        let mut from_profiles = Vec::new();
        let mut rundowns = Vec::new();
        for name in profiles {
            let profile = profile(name).map_err(at("--profile"))?;
            rundowns.push(profile.rundown_keyword);
            from_profiles.extend(profile.providers());
        }
        // A small rundown is enough only if nothing else was asked for whose stacks need names.
        if named.is_empty() && selection.clr_events.is_none() {
            let all: Option<Vec<u64>> = rundowns.into_iter().collect();
            request.rundown_keyword = all.and_then(|keywords| keywords.into_iter().reduce(|a, b| a | b));
        }
        request.add("--providers", named, EnabledBy::Providers)?;
        request.add("--profile", from_profiles, EnabledBy::Profile)?;
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
                self.notes.push(format!(
                    "{CLR_PROVIDER} is asked for at the level Verbose, because names of methods come at that level only"
                ));
            }
            provider.level = Level::Verbose;
        }
        provider.keywords |= METHOD_NAMES;
    }

    /// Whether names of methods come while the session runs.
    pub fn tells_method_names(&self) -> bool {
        self.providers.iter().any(|Requested { provider, .. }| {
            provider.name == CLR_PROVIDER
                && provider.keywords & METHOD_NAMES == METHOD_NAMES
                && matches!(provider.level, Level::LogAlways | Level::Verbose)
        })
    }

    fn add_filters(&mut self, selection: &Selection<'_>) -> Result<(), RequestError> {
        for text in selection.event_filters {
            let (name, filter) = parse_event_filter(text)
                .map_err(|source| RequestError::Option { option: "--event-filter", source })?;
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

    /// Adds the providers of an option that no earlier option names.
    fn add(
        &mut self,
        option: &'static str,
        providers: Vec<Provider>,
        by: EnabledBy,
    ) -> Result<(), RequestError> {
        let merged = merge_providers(providers).map_err(|source| RequestError::Merge { option, source })?;
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
                .map_err(|source| RequestError::Option { option: "--clreventlevel", source })?,
        };
        if selection.clr_event_level.is_some_and(is_above_verbose) {
            self.notes.push(format!("--clreventlevel: {NO_HIGHER_LEVEL}"));
        }
        let Some(events) = selection.clr_events else {
            if selection.clr_event_level.is_some() {
                self.notes.push("--clreventlevel has no effect without --clrevents".to_owned());
            }
            return Ok(());
        };
        let keywords =
            clr_keywords(events).map_err(|source| RequestError::Option { option: "--clrevents", source })?;
        if self.names(CLR_PROVIDER) {
            self.notes.push(format!(
                "{CLR_PROVIDER} is chosen by --providers or --profile already: --clrevents is ignored"
            ));
        } else {
            let provider = Provider::new(CLR_PROVIDER, keywords, level);
            self.providers.push(Requested { provider, by: EnabledBy::ClrEvents });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use runtap_diag_proto::EventFilter;

    #[test]
    fn method_names_take_a_level_of_their_own() {
        let clr = |request: &Request| {
            let entry = request.providers.iter().find(|entry| entry.provider.name == CLR_PROVIDER).unwrap();
            (entry.provider.keywords, entry.provider.level, entry.by)
        };
        let mut alone = resolve(&["A:1:4"], &[], None).unwrap();
        alone.add_method_names();
        assert_eq!(clr(&alone), (0x18, Level::Verbose, EnabledBy::MethodNames));
        assert_eq!(alone.notes, [] as [&str; 0]);
        assert!(
            alone.tells_method_names()
                && !resolve(&[], &[], Some("gc+loader+jit")).unwrap().tells_method_names()
        );
        let mut raised = resolve(&[], &[], Some("gc")).unwrap();
        raised.add_method_names();
        assert_eq!(clr(&raised), (0x19, Level::Verbose, EnabledBy::ClrEvents));
        assert!(raised.notes[0].contains("at the level Verbose"), "{:?}", raised.notes);
    }

    use super::*;

    fn resolve(providers: &[&str], profiles: &[&str], clr: Option<&str>) -> Result<Request, RequestError> {
        let own = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        Request::resolve(&Selection {
            providers: &own(providers),
            profiles: &own(profiles),
            clr_events: clr,
            ..Selection::default()
        })
    }

    fn lines(request: &Request) -> Vec<String> {
        let line = |Requested { provider: p, by }: &Requested| {
            format!("{} {:#x} {:?} {by}", p.name, p.keywords, p.level)
        };
        request.providers.iter().map(line).collect()
    }

    #[test]
    fn nothing_chosen_is_the_cpu_profile() {
        let request = resolve(&[""], &[], None).unwrap();
        assert_eq!(
            lines(&request),
            [
                "Microsoft-Windows-DotNETRuntime 0x100003801d Informational --profile",
                "Microsoft-DotNETCore-SampleProfiler 0xf00000000000 Informational --profile",
            ]
        );
        assert_eq!(request.notes.len(), 1);
    }

    #[test]
    fn the_same_provider_is_merged_within_an_option() {
        let request = resolve(&["A:1:4,A:2:5", "A:4:3:x=1"], &[], None).unwrap();
        assert_eq!(lines(&request), ["A 0x7 Verbose --providers"]);
        assert_eq!(request.providers[0].provider.arguments.as_deref(), Some("x=1"));
        assert_eq!(
            resolve(&["A:1:4:x=1,A:1:4:x=2"], &[], None).unwrap_err().to_string(),
            "--providers: arguments of provider \"A\": given twice with different values"
        );
    }

    #[test]
    fn providers_win_over_profiles_and_those_over_clrevents() {
        let request =
            resolve(&["Microsoft-Windows-DotNETRuntime:1:5"], &["gc-collect"], Some("jit")).unwrap();
        assert_eq!(
            lines(&request),
            [
                "Microsoft-Windows-DotNETRuntime 0x1 Verbose --providers",
                "Microsoft-Windows-DotNETRuntimePrivate 0x1 Informational --profile",
            ]
        );
        assert!(request.notes[0].contains("--clrevents is ignored"));
        let request = resolve(&["A:1"], &[], Some("gc+jit")).unwrap();
        assert_eq!(request.providers[1].provider.keywords, 0x11);
    }

    #[test]
    fn a_small_rundown_only_where_nothing_else_needs_names() {
        let rundown = |providers: &[&str], profiles: &[&str]| {
            resolve(providers, profiles, None).unwrap().rundown_keyword
        };
        assert_eq!(rundown(&[], &["gc-collect"]), Some(1));
        assert_eq!(rundown(&[], &["gc-collect,dotnet-sampled-thread-time"]), None);
        assert_eq!(rundown(&["A:1"], &["gc-collect"]), None);
        assert_eq!(rundown(&[], &[]), None);
    }

    #[test]
    fn missing_keywords_mean_all_and_are_said_once() {
        let request = resolve(&["A,B,A"], &[], None).unwrap();
        assert_eq!(lines(&request)[0], "A 0xffffffffffffffff Informational --providers");
        assert_eq!(request.notes.len(), 1);
        assert!(request.notes[0].starts_with("no keywords given for A, B:"));
        assert_eq!(resolve(&["A:0"], &[], None).unwrap().providers[0].provider.keywords, 0);
    }

    #[test]
    fn filters_are_for_providers_that_are_chosen() {
        let filtered = |filters: &[&str]| {
            let filters: Vec<String> = filters.iter().map(ToString::to_string).collect();
            let selection = Selection {
                providers: &["A:1".to_owned()],
                clr_events: Some("gc"),
                event_filters: &filters,
                ..Selection::default()
            };
            Request::resolve(&selection).map(|request| {
                request.providers.into_iter().map(|asked| asked.provider.filter).collect::<Vec<_>>()
            })
        };
        let one = filtered(&["Microsoft-Windows-DotNETRuntime=1,2"]).unwrap();
        assert_eq!(one, [None, Some(EventFilter::only([1, 2]))]);
        for (filters, message) in [
            (
                &["B=1"][..],
                "--event-filter: B is not recorded: choose it with --providers, --profile or --clrevents",
            ),
            (&["A=1", "A=!2"], "--event-filter: A is there twice: list all its events in one"),
            (&["A=x"], "--event-filter: 'x' is no list of event ids such as 1,2,10-20"),
        ] {
            assert_eq!(filtered(filters).unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn an_unknown_profile_names_the_nearest() {
        let message = resolve(&[], &["gc-colect"], None).unwrap_err().to_string();
        let start =
            "--profile: 'gc-colect' is not a profile; did you mean 'gc-collect'? There are dotnet-common, ";
        assert!(message.starts_with(start), "{message}");
    }
}

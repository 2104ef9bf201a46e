//! Parses the destinations of events in the kernel: `[PROVIDER[:IDS]=]TRACEPOINT`.
//!
//! ```text
//! TRACEPOINT               all events of every provider without a destination of its own
//! PROVIDER=TRACEPOINT      all events of one provider
//! PROVIDER:1,2=TRACEPOINT  events with these ids
//! ```
//!
//! In the name of a tracepoint, `{provider}` and `{pid}` are replaced; characters that the kernel does not accept become `_`.

use runtap_diag_proto::{Provider, TracepointError, Tracepoints, UserEventsConfig, UserEventsProvider};
use thiserror::Error;

use crate::providers::{ProviderError, parse_event_ids};

/// An error in the destinations of events.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TracepointsError {
    /// There are two destinations for the same events.
    #[error("'{spec}': {provider} already has a tracepoint for these events")]
    Twice {
        /// The second destination.
        spec: String,
        /// The provider.
        provider: String,
    },
    /// The provider is not enabled.
    #[error("'{spec}' names {provider}, which is not enabled")]
    NotChosen {
        /// The destination.
        spec: String,
        /// The provider.
        provider: String,
    },
    /// The event ids are invalid.
    #[error("'{spec}': {source}")]
    Ids {
        /// The destination.
        spec: String,
        /// The error.
        source: ProviderError,
    },
    /// The tracepoints must not be sent.
    #[error("tracepoints of {provider}: {source}")]
    Refused {
        /// The provider.
        provider: String,
        /// The error.
        source: TracepointError,
    },
}

/// Assigns tracepoints to each provider for a process.
///
/// # Errors
/// Returns an error if a destination is invalid or must not be sent.
pub fn user_events_config(
    providers: &[Provider],
    specs: &[String],
    pid: u64,
) -> Result<UserEventsConfig, TracepointsError> {
    let mut entries: Vec<UserEventsProvider> = providers
        .iter()
        .map(|provider| UserEventsProvider {
            provider: provider.clone(),
            tracepoints: Tracepoints::default(),
        })
        .collect();
    let mut rest = None;
    for spec in specs {
        let Some((place, pattern)) = spec.split_once('=') else {
            if rest.replace(spec).is_some() {
                return Err(TracepointsError::Twice {
                    spec: spec.clone(),
                    provider: "every provider".to_owned(),
                });
            }
            continue;
        };
        let (name, ids) = place.split_once(':').map_or((place, None), |(name, ids)| (name, Some(ids)));
        let entry = entries.iter_mut().find(|entry| entry.provider.name == name.trim());
        let Some(entry) = entry else {
            return Err(TracepointsError::NotChosen { spec: spec.clone(), provider: name.trim().to_owned() });
        };
        let tracepoint = fill_in(pattern, &entry.provider.name, pid);
        match ids {
            Some(ids) => {
                let ids = parse_event_ids(ids)
                    .map_err(|source| TracepointsError::Ids { spec: spec.clone(), source })?;
                entry.tracepoints = std::mem::take(&mut entry.tracepoints).with_set(tracepoint, ids);
            }
            None if entry.tracepoints.default.is_some() => {
                let provider = entry.provider.name.clone();
                return Err(TracepointsError::Twice { spec: spec.clone(), provider });
            }
            None => entry.tracepoints.default = Some(tracepoint),
        }
    }
    for UserEventsProvider { provider, tracepoints } in &mut entries {
        if let (None, Some(pattern)) = (&tracepoints.default, rest) {
            tracepoints.default = Some(fill_in(pattern, &provider.name, pid));
        }
        tracepoints
            .validate()
            .map_err(|source| TracepointsError::Refused { provider: provider.name.clone(), source })?;
    }
    Ok(UserEventsConfig::new(entries))
}

fn fill_in(pattern: &str, provider: &str, pid: u64) -> String {
    let word = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let provider: String = provider.chars().map(word).collect();
    pattern.trim().replace("{provider}", &provider).replace("{pid}", &pid.to_string())
}

#[cfg(test)]
mod tests {
    use runtap_diag_proto::Level;

    use super::*;

    fn config(specs: &[&str]) -> Result<UserEventsConfig, TracepointsError> {
        let providers = ["A-B", "C"].map(|name| Provider::new(name, 1, Level::Verbose));
        let specs: Vec<String> = specs.iter().map(ToString::to_string).collect();
        user_events_config(&providers, &specs, 42)
    }

    fn tracepoints(specs: &[&str]) -> Vec<Tracepoints> {
        config(specs).unwrap().providers.into_iter().map(|entry| entry.tracepoints).collect()
    }

    #[test]
    fn destinations_for_all_events_for_providers_and_for_ids() {
        let all = Tracepoints::all_to;
        assert_eq!(tracepoints(&["dn_{pid}_{provider}"]), [all("dn_42_A_B"), all("dn_42_C")]);
        assert_eq!(tracepoints(&["rest", "A-B=ab"]), [all("ab"), all("rest")]);
        assert_eq!(
            tracepoints(&["A-B:1,3-4=some", "C=c", "A-B:9=nine"]),
            [Tracepoints::default().with_set("some", [1, 3, 4]).with_set("nine", [9]), all("c")]
        );
    }

    #[test]
    fn invalid_destinations_are_rejected() {
        for (specs, message) in [
            (&["A-B=x"][..], "tracepoints of C: neither a default nor a set is specified"),
            (&[], "tracepoints of A-B: neither a default nor a set is specified"),
            (&["D=x", "y"], "'D=x' names D, which is not enabled"),
            (&["x", "y"], "'y': every provider already has a tracepoint for these events"),
            (&["C=x", "C=y", "z"], "'C=y': C already has a tracepoint for these events"),
            (&["C:1=x", "C:1=y", "z"], "tracepoints of C: event 1 is specified twice"),
            (&["C:1=z", "z"], "tracepoints of C: tracepoint \"z\" is specified twice; merge the sets"),
            (&["C:=x", "z"], "'C:=x': '' is not a list of event ids (for example 1,2,10-20)"),
        ] {
            assert_eq!(config(specs).unwrap_err().to_string(), message);
        }
        assert!(matches!(config(&["a b"]), Err(TracepointsError::Refused { .. })));
    }
}

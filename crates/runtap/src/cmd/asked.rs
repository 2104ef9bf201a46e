//! Messages about the options that select events. The library returns the reasons as data; this module adds the option
//! names.

use runtap_record::providers::{
    CLR_KEYWORDS, CLR_PROVIDER, EnabledBy, Note, Part, RequestError, TracepointsError,
};
use runtap_record::{StopEvent, Unreachable};

const CHOOSE: &str = "choose it with --providers, --profile or --clrevents";
const NO_HIGHER_LEVEL: &str = "levels end at 5 (Verbose), which is taken";

/// Returns the option that enabled a provider.
pub(super) fn option(by: EnabledBy) -> &'static str {
    match by {
        EnabledBy::Profile => "--profile",
        EnabledBy::ClrEvents => "--clrevents",
        EnabledBy::MethodNames => "--method-names",
        _ => "--providers",
    }
}

fn option_of_part(part: Part) -> &'static str {
    match part {
        Part::Providers => "--providers",
        Part::Profiles => "--profile",
        Part::ClrEvents => "--clrevents",
        Part::ClrEventLevel => "--clreventlevel",
        Part::EventFilters => "--event-filter",
    }
}

/// Formats a note about an option value that was ignored or added.
pub(super) fn note(note: &Note) -> String {
    match note {
        Note::LevelTooHigh { provider } => {
            format!(
                "{}: {NO_HIGHER_LEVEL}",
                provider.as_deref().unwrap_or_else(|| option_of_part(Part::ClrEventLevel))
            )
        }
        Note::AllKeywords { providers } => format!(
            "no keywords given for {}: asking for all of them ('NAME:0' asks for events without keywords only)",
            providers.join(", ")
        ),
        Note::ArgumentsQuoted { provider, arguments } => format!(
            "added quotes to the arguments of {provider}, because a value contains '=' or ';': {arguments}"
        ),
        Note::EscapesInArguments { provider } => format!(
            "the arguments of {provider} contain '\\n' or '\\r' as two characters, which the provider does not read as a line \
             break; in bash, $'...\\n...' writes one"
        ),
        Note::NoProfile => "--profile is empty: 'runtap list-profiles' lists what it takes".to_owned(),
        Note::Default { profiles } => {
            format!("no providers given: taking the profiles {}", profiles.join(" and "))
        }
        Note::VerboseForNames => format!(
            "{CLR_PROVIDER} is asked for at the level Verbose, because names of methods come at that level only"
        ),
        Note::LevelWithoutClrEvents => "--clreventlevel has no effect without --clrevents".to_owned(),
        Note::ClrEventsIgnored => {
            format!("{CLR_PROVIDER} is chosen by --providers or --profile already: --clrevents is ignored")
        }
    }
}

/// Formats why a stopping event never occurs, or may never occur.
pub(super) fn unreachable(event: &StopEvent, why: &Unreachable) -> String {
    let StopEvent { provider, name, .. } = event;
    let name = name.as_deref().unwrap_or(provider);
    let near = |nearest: &Option<String>| {
        nearest.as_ref().map_or_else(String::new, |nearest| format!("; did you mean '{nearest}'?"))
    };
    let never = "is not recorded, so the stopping event never comes";
    match why {
        Unreachable::Provider { nearest } => {
            format!("{provider} {never}: add it to --providers{}", near(nearest))
        }
        Unreachable::Name { nearest } => format!(
            "no event of {provider} that runtap knows is named '{name}', so the stopping event may never come{}",
            near(nearest)
        ),
        Unreachable::Keywords { needed } => {
            let names: Vec<&str> = CLR_KEYWORDS
                .iter()
                .filter(|keyword| keyword.bit & needed != 0)
                .map(|keyword| keyword.name)
                .collect();
            let one_of = if needed.count_ones() > 1 { "one of the keywords" } else { "the keyword" };
            format!("{name} {never}: {provider} sends it with {one_of} {needed:#x} ({})", names.join(", "))
        }
        Unreachable::Level { needed, requested } => format!(
            "{name} {never}: {provider} sends it from level {needed} on, and the level is {} ({requested:?})",
            requested.number()
        ),
        Unreachable::Filter { ids } => {
            let ids: Vec<String> = ids.iter().map(u32::to_string).collect();
            format!(
                "--event-filter leaves out {name} (id {}), so the stopping event never comes from a runtime that applies \
                 filters (.NET 10 and later)",
                ids.join(", ")
            )
        }
        Unreachable::Field { name: field, nearest } => format!(
            "{name} has no field '{field}' that runtap knows, so the stopping event may never come{}",
            near(nearest)
        ),
        _ => format!("the stopping event of {provider} may never come"),
    }
}

/// Formats why the options do not form a session.
pub(super) fn request_error(error: &RequestError) -> String {
    match error {
        RequestError::Unreadable { part, source } => format!("{}: {source}", option_of_part(*part)),
        RequestError::Merge { part, source } => format!("{}: {source}", option_of_part(*part)),
        RequestError::NotChosen { provider } => {
            format!("--event-filter: {provider} is not recorded: {CHOOSE}")
        }
        RequestError::FilterTwice { provider } => {
            format!("--event-filter: {provider} is there twice: list all its events in one")
        }
        other => other.to_string(),
    }
}

/// Formats why no tracepoints can be assigned.
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "user_events are of Linux"))]
pub(super) fn user_events_error(error: &TracepointsError) -> String {
    match error {
        TracepointsError::NotChosen { spec, provider } => {
            format!("--user-events: '{spec}' names {provider}, which is not recorded: {CHOOSE}")
        }
        other => format!("--user-events: {other}"),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use runtap_record::providers::{Request, Selection, user_events_config};

    use super::*;
    use crate::cli::{Cli, Verb};

    /// Resolves the request of `runtap trace` with these options.
    fn resolve(line: &str) -> Result<Request, RequestError> {
        let words = ["runtap", "trace"].into_iter().chain(line.split_whitespace());
        let Verb::Trace(options) = Cli::parse_from(words).verb else { panic!("{line}") };
        Request::resolve(&Selection { event_filters: &options.event_filter, ..options.events.selection() })
    }

    #[test]
    fn errors_name_their_option() {
        for (line, message) in [
            ("--providers :1", "--providers: missing provider name in ':1'"),
            (
                "--providers A:1:4:x=1,A:1:4:x=2",
                "--providers: arguments of provider \"A\": specified twice with different values",
            ),
            (
                "--clrevents exceptoin",
                "--clrevents: 'exceptoin' is not a CLR event keyword; did you mean 'exception'?",
            ),
            (
                "--event-filter B=1",
                "--event-filter: B is not recorded: choose it with --providers, --profile or --clrevents",
            ),
            (
                "--providers A:1 --event-filter A=x",
                "--event-filter: 'x' is not a list of event ids (for example 1,2,10-20)",
            ),
            (
                "--providers A:1 --event-filter A=1 --event-filter A=!2",
                "--event-filter: A is there twice: list all its events in one",
            ),
        ] {
            assert_eq!(request_error(&resolve(line).unwrap_err()), message);
        }
        for (line, beginning) in [
            ("--clreventlevel loud", "--clreventlevel: 'loud' is not an event level; use 0 to 5"),
            ("--profile gc-colect", "--profile: 'gc-colect' is not a profile; did you mean"),
        ] {
            let error = request_error(&resolve(line).unwrap_err());
            assert!(error.starts_with(beginning), "{error}");
        }
        for (specs, message) in [
            (
                &["D=x"][..],
                "--user-events: 'D=x' names D, which is not recorded: choose it with --providers, --profile or --clrevents",
            ),
            (&["x", "y"], "--user-events: 'y': every provider already has a tracepoint for these events"),
        ] {
            let specs: Vec<String> = specs.iter().map(ToString::to_string).collect();
            assert_eq!(user_events_error(&user_events_config(&[], &specs, 42).unwrap_err()), message);
        }
    }

    #[test]
    fn notes_name_their_option() {
        for (line, notes) in [
            (
                "",
                &["no providers given: taking the profiles dotnet-common and dotnet-sampled-thread-time"][..],
            ),
            (
                "--providers A,B,A:1:9 --profile , --clreventlevel 6",
                &[
                    "A: levels end at 5 (Verbose), which is taken",
                    "no keywords given for A, B: asking for all of them ('NAME:0' asks for events without keywords only)",
                    "--profile is empty: 'runtap list-profiles' lists what it takes",
                    "--clreventlevel: levels end at 5 (Verbose), which is taken",
                    "--clreventlevel has no effect without --clrevents",
                ],
            ),
            (
                "--providers Microsoft-Windows-DotNETRuntime:1:5 --clrevents jit",
                &[
                    "Microsoft-Windows-DotNETRuntime is chosen by --providers or --profile already: --clrevents is ignored",
                ],
            ),
        ] {
            assert_eq!(resolve(line).unwrap().notes.iter().map(note).collect::<Vec<_>>(), notes);
        }
        let mut names = resolve("--clrevents gc").unwrap();
        names.add_method_names();
        let note = "Microsoft-Windows-DotNETRuntime is asked for at the level Verbose, because names of methods come at that level only";
        assert_eq!(names.notes.iter().map(super::note).collect::<Vec<_>>(), [note]);
    }

    #[test]
    fn every_provider_has_its_option() {
        let of = [EnabledBy::Providers, EnabledBy::Profile, EnabledBy::ClrEvents, EnabledBy::MethodNames];
        assert_eq!(of.map(option), ["--providers", "--profile", "--clrevents", "--method-names"]);
    }
}

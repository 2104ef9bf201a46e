//! Messages about the options that select events, with the names that dotnet-trace and `runtap trace` give these options.

use super::{CLR_KEYWORDS, CLR_PROVIDER, EnabledBy, Note, Part, RequestError, TracepointsError};
use crate::{StopEvent, Unreachable};

const SELECT: &str = "select it with --providers, --profile or --clrevents";
const NO_HIGHER_LEVEL: &str = "the highest level is 5 (Verbose); using that level";

/// Returns the option that enabled a provider.
pub fn option(by: EnabledBy) -> &'static str {
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
pub fn note(note: &Note) -> String {
    match note {
        Note::LevelTooHigh { provider } => {
            format!(
                "{}: {NO_HIGHER_LEVEL}",
                provider.as_deref().unwrap_or_else(|| option_of_part(Part::ClrEventLevel))
            )
        }
        Note::AllKeywords { providers } => {
            let name = if let [only] = &providers[..] { only } else { "NAME" };
            format!(
                "No keywords specified for {}; enabling all of them (use '{name}:0' for only events that have no keywords).",
                providers.join(", ")
            )
        }
        Note::ArgumentsQuoted { provider, arguments } => format!(
            "added quotes to the arguments of {provider}, because a value contains '=' or ';': {arguments}"
        ),
        Note::EscapesInArguments { provider } => format!(
            "the arguments of {provider} contain '\\n' or '\\r' as two characters, which the provider does not interpret as a line \
             break; in bash, write a line break as $'...\\n...'"
        ),
        Note::NoProfile => "--profile is empty; 'runtap list-profiles' lists the valid values".to_owned(),
        Note::Default { profiles } => {
            format!("No providers specified; using profiles {}.", profiles.join(" and "))
        }
        Note::VerboseForNames => {
            format!("Raising {CLR_PROVIDER} to level Verbose: method names are only sent at that level.")
        }
        Note::LevelWithoutClrEvents => "--clreventlevel has no effect without --clrevents".to_owned(),
        Note::ClrEventsIgnored => {
            format!("{CLR_PROVIDER} is already selected by --providers or --profile; ignoring --clrevents")
        }
    }
}

/// Formats why a stopping event never occurs, or may never occur.
pub fn unreachable(event: &StopEvent, why: &Unreachable) -> String {
    let StopEvent { provider, name, .. } = event;
    let name = name.as_deref().unwrap_or(provider);
    let near = |nearest: &Option<String>| {
        nearest.as_ref().map_or_else(String::new, |nearest| format!("; did you mean '{nearest}'?"))
    };
    let never = "is not recorded, so the stopping event never occurs";
    match why {
        Unreachable::Provider { nearest } => {
            format!("{provider} {never}: add it to --providers{}", near(nearest))
        }
        Unreachable::Name { nearest } => format!(
            "no event of {provider} known to runtap is named '{name}', so the stopping event may never occur{}",
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
                "--event-filter excludes {name} (id {}), so the stopping event never occurs with a runtime that applies \
                 filters (.NET 10 and later)",
                ids.join(", ")
            )
        }
        Unreachable::Field { name: field, nearest } => format!(
            "{name} has no field '{field}' known to runtap, so the stopping event may never occur{}",
            near(nearest)
        ),
    }
}

/// Formats why the options do not form a session.
pub fn request_error(error: &RequestError) -> String {
    match error {
        RequestError::Unreadable { part, source } => format!("{}: {source}", option_of_part(*part)),
        RequestError::Merge { part, source } => format!("{}: {source}", option_of_part(*part)),
        RequestError::NotChosen { provider } => {
            format!("--event-filter: {provider} is not recorded: {SELECT}")
        }
        RequestError::FilterTwice { provider } => {
            format!("--event-filter: {provider} is specified twice; list all its events in one filter")
        }
    }
}

/// Formats why no tracepoints can be assigned.
pub fn tracepoints_error(error: &TracepointsError) -> String {
    match error {
        TracepointsError::NotChosen { spec, provider } => {
            format!("--user-events: '{spec}' names {provider}, which is not recorded: {SELECT}")
        }
        other => format!("--user-events: {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::{Request, Selection, user_events_config};

    /// Resolves the request with these options, each of which has a value.
    fn resolve(line: &str) -> Result<Request, RequestError> {
        let (mut providers, mut profiles, mut event_filters) = (None, None, Vec::new());
        let (mut clr_events, mut clr_event_level) = (None, None);
        let words: Vec<&str> = line.split_whitespace().collect();
        for pair in words.chunks(2) {
            let [option, value] = pair else { panic!("{line}") };
            match *option {
                "--providers" => providers = Some(value.to_string()),
                "--profile" => profiles = Some(value.to_string()),
                "--clrevents" => clr_events = Some(*value),
                "--clreventlevel" => clr_event_level = Some(*value),
                "--event-filter" => event_filters.push((*value).to_owned()),
                _ => panic!("{line}"),
            }
        }
        Request::resolve(&Selection {
            providers: providers.as_slice(),
            profiles: profiles.as_slice(),
            clr_events,
            clr_event_level,
            event_filters: &event_filters,
        })
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
                "--event-filter: B is not recorded: select it with --providers, --profile or --clrevents",
            ),
            (
                "--providers A:1 --event-filter A=x",
                "--event-filter: 'x' is not a list of event ids (for example 1,2,10-20)",
            ),
            (
                "--providers A:1 --event-filter A=1 --event-filter A=!2",
                "--event-filter: A is specified twice; list all its events in one filter",
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
                "--user-events: 'D=x' names D, which is not recorded: select it with --providers, --profile or --clrevents",
            ),
            (&["x", "y"], "--user-events: 'y': every provider already has a tracepoint for these events"),
        ] {
            let specs: Vec<String> = specs.iter().map(ToString::to_string).collect();
            assert_eq!(tracepoints_error(&user_events_config(&[], &specs, 42).unwrap_err()), message);
        }
    }

    #[test]
    fn notes_name_their_option() {
        for (line, notes) in [
            (
                "",
                &["No providers specified; using profiles dotnet-common and dotnet-sampled-thread-time."][..],
            ),
            (
                "--providers A,B,A:1:9 --profile , --clreventlevel 6",
                &[
                    "A: the highest level is 5 (Verbose); using that level",
                    "No keywords specified for A, B; enabling all of them (use 'NAME:0' for only events that have no keywords).",
                    "--profile is empty; 'runtap list-profiles' lists the valid values",
                    "--clreventlevel: the highest level is 5 (Verbose); using that level",
                    "--clreventlevel has no effect without --clrevents",
                ],
            ),
            (
                "--providers Microsoft-Windows-DotNETRuntime:1:5 --clrevents jit",
                &[
                    "Microsoft-Windows-DotNETRuntime is already selected by --providers or --profile; ignoring --clrevents",
                ],
            ),
        ] {
            assert_eq!(resolve(line).unwrap().notes.iter().map(note).collect::<Vec<_>>(), notes);
        }
        let mut names = resolve("--clrevents gc").unwrap();
        names.add_method_names();
        let note = "Raising Microsoft-Windows-DotNETRuntime to level Verbose: method names are only sent at that level.";
        assert_eq!(names.notes.iter().map(super::note).collect::<Vec<_>>(), [note]);
    }

    #[test]
    fn every_provider_has_its_option() {
        let of = [EnabledBy::Providers, EnabledBy::Profile, EnabledBy::ClrEvents, EnabledBy::MethodNames];
        assert_eq!(of.map(option), ["--providers", "--profile", "--clrevents", "--method-names"]);
    }
}

//! What is said of the options that choose events: the library tells it as data, and the names of the options are ours.

use runtap_providers::{CLR_PROVIDER, EnabledBy, Note, Part, RequestError, TracepointsError};

const CHOOSE: &str = "choose it with --providers, --profile or --clrevents";
const NO_HIGHER_LEVEL: &str = "levels end at 5 (Verbose), which is taken";

/// The option that a provider came from.
pub(super) fn option(by: EnabledBy) -> &'static str {
    match by {
        EnabledBy::Profile => "--profile",
        EnabledBy::ClrEvents => "--clrevents",
        EnabledBy::MethodNames => "--method-names",
        // And what libraries may add.
        _ => "--providers",
    }
}

fn of_part(part: Part) -> &'static str {
    match part {
        Part::Providers => "--providers",
        Part::Profiles => "--profile",
        Part::ClrEvents => "--clrevents",
        Part::ClrEventLevel => "--clreventlevel",
        Part::EventFilters => "--event-filter",
    }
}

/// What was ignored or filled in.
pub(super) fn note(note: &Note) -> String {
    match note {
        Note::LevelTooHigh { provider } => {
            format!(
                "{}: {NO_HIGHER_LEVEL}",
                provider.as_deref().unwrap_or_else(|| of_part(Part::ClrEventLevel))
            )
        }
        Note::AllKeywords { providers } => format!(
            "no keywords given for {}: asking for all of them ('NAME:0' asks for events without keywords only)",
            providers.join(", ")
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

/// Why the options make no session.
pub(super) fn mistake(error: &RequestError) -> String {
    match error {
        RequestError::Unreadable { part, source } => format!("{}: {source}", of_part(*part)),
        RequestError::Merge { part, source } => format!("{}: {source}", of_part(*part)),
        RequestError::NotChosen { provider } => {
            format!("--event-filter: {provider} is not recorded: {CHOOSE}")
        }
        RequestError::FilterTwice { provider } => {
            format!("--event-filter: {provider} is there twice: list all its events in one")
        }
        other => other.to_string(),
    }
}

/// Why there are no tracepoints.
pub(super) fn user_events_mistake(error: &TracepointsError) -> String {
    match error {
        TracepointsError::NotChosen { spec, provider } => {
            format!("--user-events: '{spec}' names {provider}, which is not recorded: {CHOOSE}")
        }
        other => format!("--user-events: {other}"),
    }
}

#[cfg(test)]
mod tests {
    use runtap_providers::{Request, Selection, user_events_config};

    use super::*;

    fn list(text: &str) -> [String; 1] {
        [text.to_owned()]
    }

    #[test]
    fn mistakes_name_their_option() {
        let no = Selection::default;
        for (selection, message) in [
            (Selection { providers: &list(":1"), ..no() }, "--providers: a provider name is missing in ':1'"),
            (
                Selection { providers: &list("A:1:4:x=1,A:1:4:x=2"), ..no() },
                "--providers: arguments of provider \"A\": given twice with different values",
            ),
            (
                Selection { clr_events: Some("exceptoin"), ..no() },
                "--clrevents: 'exceptoin' is not a CLR event keyword; did you mean 'exception'?",
            ),
            (
                Selection { event_filters: &list("B=1"), ..no() },
                "--event-filter: B is not recorded: choose it with --providers, --profile or --clrevents",
            ),
            (
                Selection { providers: &list("A:1"), event_filters: &list("A=x"), ..no() },
                "--event-filter: 'x' is no list of event ids such as 1,2,10-20",
            ),
            (
                Selection {
                    providers: &list("A:1"),
                    event_filters: &["A=1", "A=!2"].map(str::to_owned),
                    ..no()
                },
                "--event-filter: A is there twice: list all its events in one",
            ),
        ] {
            assert_eq!(mistake(&Request::resolve(&selection).unwrap_err()), message);
        }
        let level =
            mistake(&Request::resolve(&Selection { clr_event_level: Some("loud"), ..no() }).unwrap_err());
        assert!(level.starts_with("--clreventlevel: 'loud' is no event level; take 0 to 5"), "{level}");
        let profile =
            mistake(&Request::resolve(&Selection { profiles: &list("gc-colect"), ..no() }).unwrap_err());
        assert!(profile.starts_with("--profile: 'gc-colect' is not a profile; did you mean"), "{profile}");
        assert_eq!(
            user_events_mistake(&user_events_config(&[], &list("D=x"), 42).unwrap_err()),
            "--user-events: 'D=x' names D, which is not recorded: choose it with --providers, --profile or --clrevents"
        );
        assert_eq!(
            user_events_mistake(&user_events_config(&[], &["x", "y"].map(str::to_owned), 42).unwrap_err()),
            "--user-events: 'y': every provider has a tracepoint for these events already"
        );
    }

    #[test]
    fn notes_name_their_option() {
        let said = |selection: &Selection<'_>| -> Vec<String> {
            Request::resolve(selection).unwrap().notes.iter().map(note).collect()
        };
        assert_eq!(
            said(&Selection::default()),
            ["no providers given: taking the profiles dotnet-common and dotnet-sampled-thread-time"]
        );
        assert_eq!(
            said(&Selection {
                providers: &list("A,B,A:1:9"),
                profiles: &list(","),
                clr_event_level: Some("6"),
                ..Selection::default()
            }),
            [
                "A: levels end at 5 (Verbose), which is taken",
                "no keywords given for A, B: asking for all of them ('NAME:0' asks for events without keywords only)",
                "--profile is empty: 'runtap list-profiles' lists what it takes",
                "--clreventlevel: levels end at 5 (Verbose), which is taken",
                "--clreventlevel has no effect without --clrevents",
            ]
        );
        assert_eq!(
            said(&Selection {
                providers: &list("Microsoft-Windows-DotNETRuntime:1:5"),
                clr_events: Some("jit"),
                ..Selection::default()
            }),
            [
                "Microsoft-Windows-DotNETRuntime is chosen by --providers or --profile already: --clrevents is ignored"
            ]
        );
        let mut names =
            Request::resolve(&Selection { clr_events: Some("gc"), ..Selection::default() }).unwrap();
        names.add_method_names();
        assert_eq!(
            names.notes.iter().map(note).collect::<Vec<_>>(),
            [
                "Microsoft-Windows-DotNETRuntime is asked for at the level Verbose, because names of methods come at that level only"
            ]
        );
    }

    #[test]
    fn every_provider_has_its_option() {
        let of = [EnabledBy::Providers, EnabledBy::Profile, EnabledBy::ClrEvents, EnabledBy::MethodNames];
        assert_eq!(of.map(option), ["--providers", "--profile", "--clrevents", "--method-names"]);
    }
}

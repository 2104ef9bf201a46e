//! Messages about providers that sent no events. runtap cannot know whether they should have sent some, so these messages
//! are notes, never errors.

use runtap_record::{Missing, Silence};
use runtap_text::advice;

/// Formats a note about missing events or names.
pub(super) fn note(silence: &Silence) -> String {
    match silence {
        Silence::Never(names) => format!(
            "no events were received from {}: the program wrote none, or the provider name, keywords or level do not match",
            names.join(" and ")
        ),
        Silence::Overtaken { after, providers } => {
            let what: Vec<String> = providers
                .iter()
                .map(|(name, after)| match after {
                    None => format!("of {name}"),
                    Some(after) => format!("of {name} after {:.2} s", after.as_secs_f64()),
                })
                .collect();
            format!(
                "another session of this process ended during this recording of {:.2} s, and nothing came {}: the runtime may have \
                 disabled the events for both; if you expected some, record again",
                after.as_secs_f64(),
                what.join(", and nothing ")
            )
        }
        Silence::Broken { provider, message } => {
            format!("{provider} can't send some of its events, as it reports: {message}")
        }
        Silence::NoNames => format!("no method names were received: {}", advice::NAMES),
    }
}

/// Formats why a recording is incomplete.
pub(super) fn reason(missing: &Missing) -> String {
    match missing {
        Missing::Abandoned => "it was interrupted before the runtime had sent all method names".to_owned(),
        Missing::NotBegun => "it was stopped before the program had started".to_owned(),
        Missing::Unfinished(error) => format!("the runtime did not finish it: {error}"),
        Missing::DiskFull => "the disk is full".to_owned(),
        Missing::NotWritten(error) => format!("it could not be written any further: {error}"),
        Missing::Broken(error) => format!("the connection broke: {error}"),
        Missing::MidStream(partial) => format!(
            "the process ended, or closed the connection, before the stream was complete ({})",
            super::recording::Partial::from(partial).reason
        ),
        Missing::NoStream(partial) => {
            format!(
                "what was received is not an event stream ({})",
                super::recording::Partial::from(partial).reason
            )
        }
    }
}

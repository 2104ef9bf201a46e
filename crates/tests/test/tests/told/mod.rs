//! What a parser tells of a text.

use runtap_test::TestOutcome;
use runtap_test::formats::{Case, Event, Format, Parser};

pub(crate) fn read(format: Format, text: impl AsRef<[u8]>) -> Vec<Event> {
    let mut parser = Parser::new(format);
    let mut events = parser.feed(text.as_ref());
    events.extend(parser.finish());
    events
}

pub(crate) fn cases(events: &[Event]) -> Vec<&Case> {
    let ended = events.iter().filter_map(|event| match event {
        Event::Ended(case) => Some(&**case),
        _ => None,
    });
    ended.collect()
}

pub(crate) fn problems(events: &[Event]) -> Vec<&str> {
    let problems = events.iter().filter_map(|event| match event {
        Event::Problem(text) | Event::Unreadable(text) => Some(text.as_str()),
        _ => None,
    });
    problems.collect()
}

/// Uid and outcome of each, in order.
pub(crate) fn told(events: &[Event]) -> Vec<(&str, TestOutcome)> {
    cases(events).into_iter().map(|case| (case.uid.as_str(), case.outcome)).collect()
}

//! The JSON of libtest, a line for each event, and nextest's in the same form: names there are `package::binary$test`, and
//! the suites of several binaries overlap.

use std::sync::Arc;

use serde::Deserialize;

use crate::case::{Case, Event, Outcome, seconds};
use crate::{Read, panicked};

#[derive(Debug, Deserialize)]
struct Line {
    #[serde(rename = "type")]
    kind: String,
    event: Option<String>,
    name: Option<String>,
    stdout: Option<String>,
    stderr: Option<String>,
    message: Option<String>,
    reason: Option<String>,
    exec_time: Option<f64>,
}

#[derive(Debug, Default)]
pub(crate) struct Json {
    /// Suites that have begun and not ended.
    open: u64,
    ended: u64,
}

impl Read for Json {
    fn line(&mut self, line: &str, out: &mut Vec<Event>) -> bool {
        let Some(line) = line.strip_prefix('{').map(|_| line) else { return false };
        let Ok(line) = serde_json::from_str::<Line>(line) else { return false };
        let event = line.event.as_deref().unwrap_or_default();
        match (line.kind.as_str(), event) {
            ("suite", "started") => self.open += 1,
            ("suite", _) => self.open = self.open.saturating_sub(1),
            ("test", "started") => {
                if let Some(name) = line.name {
                    let case = named(&name, Outcome::Passed);
                    out.push(Event::Begun { uid: case.uid, name: case.name });
                }
            }
            ("test", _) => {
                if let Some(case) = ended(line) {
                    self.ended += 1;
                    out.push(Event::Ended(Box::new(case)));
                }
            }
            _ => {}
        }
        true
    }

    fn finish(&mut self, out: &mut Vec<Event>) {
        // How many tests there should be is not sure: nextest starts a suite again for what is left of it.
        if self.open > 0 {
            let ended = self.ended;
            out.push(Event::Problem(format!("the command ended after {ended} tests, within a suite")));
        }
    }
}

fn named(name: &str, outcome: Outcome) -> Case {
    match name.split_once('$') {
        Some((suite, name)) => Case::new(&crate::case::suite(suite), "$", name, outcome),
        None => Case::new(&Arc::default(), "", name, outcome),
    }
}

fn ended(line: Line) -> Option<Case> {
    let outcome = match line.event.as_deref()? {
        "ok" => Outcome::Passed,
        "failed" if line.reason.as_deref() == Some("time limit exceeded") => Outcome::TimedOut,
        "failed" => Outcome::Failed,
        "ignored" => Outcome::Skipped,
        // `timeout` only warns: the test goes on.
        _ => return None,
    };
    let mut case = named(&line.name?, outcome);
    case.duration = line.exec_time.and_then(seconds);
    case.stdout = line.stdout.unwrap_or_default();
    case.stderr = line.stderr.unwrap_or_default();
    match outcome {
        Outcome::Passed => {}
        Outcome::Skipped => case.reason = line.message.or(line.reason).unwrap_or_default(),
        Outcome::Failed | Outcome::Error | Outcome::TimedOut => {
            let (mut detail, place) = panicked::read(&case.stdout);
            if let Some(message) = line.message.filter(|message| !message.is_empty()) {
                detail.message = message;
            } else if outcome == Outcome::TimedOut && detail.kind.is_empty() {
                "time limit exceeded".clone_into(&mut detail.message);
            }
            case.detail = Some(detail);
            case.place = place;
        }
    }
    Some(case)
}

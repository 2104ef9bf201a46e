//! Messages about the reports and the collected files of a run.

use runtap_model::Message;
use runtap_mtp::Module;
use runtap_mtp::suite::artifacts::Collected;
use runtap_mtp::suite::report::Problem;

use super::{MAX_LINE, cleaned};
use crate::units::Things;

/// Returns the message for a problem after which the run continues. `None` if this application prints it as an error.
pub fn problem(problem: &Problem, modules: &[Module]) -> Option<Message> {
    Some(match problem {
        Problem::ResultsLost { directory, why } => Message::Warning(format!(
            "cannot keep results in {}: {why}; without the results, the reports and the test history of this run cannot be written",
            directory.display()
        )),
        Problem::NoListing(error) => Message::Warning(format!("no application can list its tests: {error}")),
        Problem::NotListed(module) => {
            let module = modules.get(module.0)?;
            Message::Note(format!("{module} did not list its tests; reports may lack their classes"))
        }
        _ => return None,
    })
}

/// Returns the messages about the files that a run has collected.
pub fn collected(collected: &Collected) -> Vec<Message> {
    let Collected { directory, copies, rejected, more_rejected } = collected;
    let count = Things(*copies, "file");
    let mut messages = vec![Message::Note(format!("collected {count} in {}", directory.display()))];
    messages.extend(rejected.iter().map(|(path, why)| {
        let path = cleaned(&path.to_string_lossy(), MAX_LINE);
        Message::Warning(format!("not collected: {path}: {why}"))
    }));
    if *more_rejected > 0 {
        messages.push(Message::Warning(format!("not collected: {more_rejected} more")));
    }
    messages
}

//! Messages about the reports and the collected files of a run.

use runtap_mtp::Module;
use runtap_mtp::suite::artifacts::Collected;
use runtap_mtp::suite::report::Problem;

use super::{MAX_LINE, cleaned};
use crate::document::Remark;
use crate::units::Things;

/// Returns the message for a problem after which the run continues. `None` if this application prints it as an error.
pub fn problem(problem: &Problem, modules: &[Module]) -> Option<Remark> {
    Some(match problem {
        Problem::ResultsLost { directory, why } => Remark::Warning(format!(
            "cannot keep results in {}: {why}; without the results, the reports and the test history of this run cannot be written",
            directory.display()
        )),
        Problem::NoListing(error) => Remark::Warning(format!("no application can list its tests: {error}")),
        Problem::NotListed(module) => {
            let module = modules.get(module.0)?;
            Remark::Note(format!("{module} did not list its tests; reports may lack their classes"))
        }
        _ => return None,
    })
}

/// Returns the messages about the files that a run has collected.
pub fn collected(collected: &Collected) -> Vec<Remark> {
    let Collected { directory, copies, rejected, more_rejected } = collected;
    let count = Things(*copies, "file");
    let mut remarks = vec![Remark::Note(format!("collected {count} in {}", directory.display()))];
    remarks.extend(rejected.iter().map(|(path, why)| {
        let path = cleaned(&path.to_string_lossy(), MAX_LINE);
        Remark::Warning(format!("not collected: {path}: {why}"))
    }));
    if *more_rejected > 0 {
        remarks.push(Remark::Warning(format!("not collected: {more_rejected} more")));
    }
    remarks
}

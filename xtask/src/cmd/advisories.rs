//! `cargo xtask advisories`: looks for known vulnerabilities in dependencies (`RustSec`, with cargo-deny).
//!
//! Fails if one is found, but not if the database is unavailable. In `cargo xtask ci --all` the result is only reported, so
//! that checks do not start failing without a change.

use anyhow::{Result, bail};

use crate::args::Args;
use crate::output;
use crate::process;
use crate::step::Outcome;
use crate::workspace::Workspace;

/// The result of looking for vulnerabilities.
enum Found {
    Nothing,
    Vulnerabilities,
    /// The database could not be checked, with the reason.
    Unknown(&'static str),
}

pub(crate) fn command(ws: &Workspace, _: &Args) -> Result<()> {
    match look(ws)? {
        Found::Nothing => Ok(()),
        Found::Vulnerabilities => {
            bail!("found known vulnerabilities, or could not check for them; see above")
        }
        Found::Unknown(why) => {
            output::note(&format!("skipped: {why}"));
            Ok(())
        }
    }
}

/// A step of `ci` that never fails.
pub(crate) fn tell(ws: &Workspace) -> Result<Outcome> {
    Ok(match look(ws)? {
        Found::Nothing => Outcome::Passed,
        Found::Vulnerabilities => Outcome::Told(
            "known vulnerabilities, or an error; see above, or run `cargo xtask advisories`".to_owned(),
        ),
        Found::Unknown(why) => Outcome::Told(why.to_owned()),
    })
}

fn look(ws: &Workspace) -> Result<Found> {
    if process::find(ws.root(), "cargo-deny").is_none() {
        return Ok(Found::Unknown("cargo-deny is not installed"));
    }
    if ws.cargo(&["deny", "--workspace", "fetch", "db"]).code()? != Some(0) {
        return Ok(Found::Unknown("the advisory database is not available"));
    }
    let check = ["deny", "--workspace", "check", "--hide-inclusion-graph", "advisories"];
    Ok(match ws.cargo(&check).code()? {
        Some(0) => Found::Nothing,
        _ => Found::Vulnerabilities,
    })
}

//! `cargo xtask advisories`: known vulnerabilities of what we depend on (`RustSec`, by cargo-deny).
//!
//! Fails when one is found; where the database can't be had it says so and is no failure. In `cargo xtask ci` it only
//! tells: a check must not turn red on a day when nothing changed.

use anyhow::{Result, bail};

use crate::args::Args;
use crate::output;
use crate::process;
use crate::step::Outcome;
use crate::workspace::Workspace;

/// What came of the look.
enum Found {
    Nothing,
    Vulnerabilities,
    /// Nobody could look; why.
    Unknown(&'static str),
}

pub(crate) fn command(ws: &Workspace, _: &Args) -> Result<()> {
    match look(ws)? {
        Found::Nothing => Ok(()),
        Found::Vulnerabilities => bail!("there are known vulnerabilities, or nobody could look: see above"),
        Found::Unknown(why) => {
            output::note(&format!("skipped: {why}"));
            Ok(())
        }
    }
}

/// A step of `ci` that decides nothing.
pub(crate) fn tell(ws: &Workspace) -> Result<Outcome> {
    Ok(match look(ws)? {
        Found::Nothing => Outcome::Passed,
        Found::Vulnerabilities => Outcome::Told(
            "known vulnerabilities, or an error: see above, or `cargo xtask advisories`".to_owned(),
        ),
        Found::Unknown(why) => Outcome::Told(why.to_owned()),
    })
}

fn look(ws: &Workspace) -> Result<Found> {
    if process::find(ws.root(), "cargo-deny").is_none() {
        return Ok(Found::Unknown("cargo-deny is not there"));
    }
    if ws.cargo(&["deny", "--workspace", "fetch", "db"]).code()? != Some(0) {
        return Ok(Found::Unknown("the advisory database can't be had"));
    }
    let check = ["deny", "--workspace", "check", "--hide-inclusion-graph", "advisories"];
    Ok(match ws.cargo(&check).code()? {
        Some(0) => Found::Nothing,
        _ => Found::Vulnerabilities,
    })
}

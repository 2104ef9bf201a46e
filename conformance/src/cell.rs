//! The outcome of one request to one runtime, and how a row reaches it.

use std::fmt;

use runtap_diag_proto::Hresult;
use runtap_testkit::Skip;

/// One cell of the table, as written in the document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cell(String);

/// The reply was OK, and the effect that the row checks occurred.
pub(crate) const ANSWERED: &str = "answered";
/// The reply was OK, but the effect that the row checks did not occur.
pub(crate) const NO_EFFECT: &str = "no effect";
/// The runtime rejected the request with UNKNOWN_COMMAND.
pub(crate) const NOT_KNOWN: &str = "not known";
/// runtap's client checked the target and did not send the request.
pub(crate) const NOT_SENT: &str = "not sent";
/// The runtime can't be suspended at startup and connects to no port.
pub(crate) const NO_PORT: &str = "no port";
/// The runtime was not measured.
pub(crate) const NOT_TRIED: &str = "not tried";

/// An unexpected failure. Never in the document.
pub(crate) const FAILED: &str = "failed";

impl Cell {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// A rejection, by the name of its code.
    fn refused(hresult: Hresult) -> Self {
        match hresult.name() {
            _ if hresult == Hresult::UNKNOWN_COMMAND => Self::new(NOT_KNOWN),
            Some(name) => Self::new(name),
            None => Self::new(hresult.to_string()),
        }
    }

    pub(crate) fn is(&self, text: &str) -> bool {
        self.0 == text
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why a row ended before it could check its effect.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The outcome is this cell.
    Cell(Cell),
    /// An unexpected error.
    Failed(anyhow::Error),
}

/// The result of a row: whether the effect of an answered request occurred.
pub(crate) type Found = Result<bool, Stop>;

/// Converts the result of a row to a cell.
pub(crate) fn judge(found: Found) -> anyhow::Result<Cell> {
    match found {
        Ok(true) => Ok(Cell::new(ANSWERED)),
        Ok(false) => Ok(Cell::new(NO_EFFECT)),
        Err(Stop::Cell(cell)) => Ok(cell),
        Err(Stop::Failed(error)) => Err(error),
    }
}

impl From<runtap_diag::Error> for Stop {
    fn from(error: runtap_diag::Error) -> Self {
        match error {
            runtap_diag::Error::Refused { reply, .. } => reply.hresult.into(),
            runtap_diag::Error::Objection { .. } => Self::Cell(Cell::new(NOT_SENT)),
            other => Self::Failed(other.into()),
        }
    }
}

impl From<Hresult> for Stop {
    fn from(hresult: Hresult) -> Self {
        Self::Cell(Cell::refused(hresult))
    }
}

impl From<Skip> for Stop {
    fn from(_: Skip) -> Self {
        Self::Cell(Cell::new(NOT_TRIED))
    }
}

impl From<anyhow::Error> for Stop {
    fn from(error: anyhow::Error) -> Self {
        Self::Failed(error)
    }
}

impl From<std::io::Error> for Stop {
    fn from(error: std::io::Error) -> Self {
        Self::Failed(error.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_has_its_word() {
        let text = |found| judge(found).unwrap().to_string();
        assert_eq!(text(Ok(true)), "answered");
        assert_eq!(text(Ok(false)), "no effect");
        assert_eq!(text(Err(Hresult::UNKNOWN_COMMAND.into())), "not known");
        assert_eq!(text(Err(Hresult::E_FAIL.into())), "E_FAIL");
        assert_eq!(text(Err(Hresult(0x8123_4567).into())), "0x81234567");
        assert!(judge(Err(anyhow::anyhow!("broken").into())).is_err());
    }
}

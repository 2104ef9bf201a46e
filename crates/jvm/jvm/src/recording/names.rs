//! The names of the files of a recording.
//!
//! A [`StreamName`] is `AGENT.CONNECTION.DIRECTION.bin`: `agent0.ctl.a2h.bin` has the bytes that the first agent
//! sent on its control connection. The direction is `a2h` (from the agent to HQ) or `h2a`.

use std::fmt;

use runtap_bytefrog::hq::Connection;
use runtap_bytefrog_proto::Side;

/// The extension of a file with bytes.
const BYTES: &str = ".bin";
/// The extension of a file with the times at which bytes arrived.
const INDEX: &str = ".chunks.tsv";

/// One direction of one connection.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StreamName {
    /// The name of the agent in the recording.
    pub agent: String,
    /// The connection.
    pub connection: Connection,
    /// The sender.
    pub side: Side,
}

impl StreamName {
    /// Parses the name of a file with bytes; `None` if it does not belong to a recording.
    pub fn parse(file: &str) -> Option<Self> {
        let (rest, side) = file.strip_suffix(BYTES)?.rsplit_once('.')?;
        let (agent, connection) = rest.rsplit_once('.')?;
        let side = match side {
            "a2h" => Side::Agent,
            "h2a" => Side::Hq,
            _ => return None,
        };
        let connection = match connection {
            "ctl" => Connection::Control,
            data => {
                let number = data.strip_prefix("data")?;
                let is_canonical = number == "0" || !number.starts_with(['0', '+']);
                Connection::Data(number.parse().ok().filter(|_| is_canonical)?)
            }
        };
        (!agent.is_empty()).then(|| Self { agent: agent.to_owned(), connection, side })
    }

    /// Returns the name of the file with the bytes.
    pub fn bytes_file(&self) -> String {
        format!("{self}{BYTES}")
    }

    /// Returns the name of the file with the times at which the bytes arrived.
    pub fn index_file(&self) -> String {
        format!("{self}{INDEX}")
    }
}

impl fmt::Display for StreamName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = if self.side == Side::Agent { "a2h" } else { "h2a" };
        write!(f, "{}.{}.{side}", self.agent, self.connection)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_of_files() {
        let name = StreamName::parse("my.app.data12.h2a.bin").expect("a name");
        assert_eq!((&*name.agent, name.connection, name.side), ("my.app", Connection::Data(12), Side::Hq));
        assert_eq!(name.index_file(), "my.app.data12.h2a.chunks.tsv");
        for wrong in [
            "",
            ".bin",
            "a.ctl.bin",
            ".ctl.a2h.bin",
            "a.ctl.a2h",
            "a.data.a2h.bin",
            "a.data01.a2h.bin",
            "a.data+1.a2h.bin",
            "a.data-1.a2h.bin",
            "a.ctl.x2h.bin",
            "a.data4294967296.a2h.bin",
        ] {
            assert_eq!(StreamName::parse(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn a_name_round_trips(agent in "[a-z.]{1,8}", data in prop::option::of(any::<u32>()), from_hq: bool) {
            let connection = data.map_or(Connection::Control, Connection::Data);
            let name = StreamName { agent, connection, side: if from_hq { Side::Hq } else { Side::Agent } };
            prop_assert_eq!(StreamName::parse(&name.bytes_file()), Some(name));
        }

        #[test]
        fn a_parsed_name_is_formatted_identically(file: String) {
            if let Some(name) = StreamName::parse(&file) {
                prop_assert_eq!(name.bytes_file(), file);
            }
        }
    }
}

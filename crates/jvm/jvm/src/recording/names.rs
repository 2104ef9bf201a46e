//! Names of the files of a recording.
//!
//! Owns: [`StreamName`], `AGENT.CONNECTION.DIRECTION.bin`: `agent0.ctl.a2h.bin` is what the first agent has sent on its control
//! connection. The direction is `a2h` from the agent to HQ, or `h2a`.

use std::fmt;

use runtap_bytefrog::hq::Connection;
use runtap_bytefrog_proto::Side;

/// The end of the name of a file that holds bytes.
const BYTES: &str = ".bin";
/// The end of the name of a file that says when they came.
const INDEX: &str = ".chunks.tsv";

/// One direction of one connection.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StreamName {
    /// The agent, by the name that the recording gives it.
    pub agent: String,
    /// Its connection.
    pub connection: Connection,
    /// Who has sent it.
    pub side: Side,
}

impl StreamName {
    /// Reads the name of a file with bytes. `None`: it is none of a recording.
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
                let is_written_so = number == "0" || !number.starts_with(['0', '+']);
                Connection::Data(number.parse().ok().filter(|_| is_written_so)?)
            }
        };
        (!agent.is_empty()).then(|| Self { agent: agent.to_owned(), connection, side })
    }

    /// The name of the file with the bytes.
    pub fn bytes_file(&self) -> String {
        format!("{self}{BYTES}")
    }

    /// The name of the file that says when they came.
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
        fn a_name_comes_back(agent in "[a-z.]{1,8}", data in prop::option::of(any::<u32>()), from_hq: bool) {
            let connection = data.map_or(Connection::Control, Connection::Data);
            let name = StreamName { agent, connection, side: if from_hq { Side::Hq } else { Side::Agent } };
            prop_assert_eq!(StreamName::parse(&name.bytes_file()), Some(name));
        }

        #[test]
        fn what_is_read_is_written_so(file: String) {
            if let Some(name) = StreamName::parse(&file) {
                prop_assert_eq!(name.bytes_file(), file);
            }
        }
    }
}

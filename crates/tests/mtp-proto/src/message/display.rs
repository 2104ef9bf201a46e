//! Id 12: something for people to read. Version 1.3.0.

use crate::envelope::{code, envelope};

code! {
    /// How much a text matters.
    pub struct DisplayLevel {
        /// Good to know.
        0 "Information" => INFORMATION,
        /// Worth a look.
        1 "Warning" => WARNING,
        /// Something went wrong.
        2 "Error" => ERROR,
    }
}

envelope! {
    /// Something for people to read.
    pub struct Display {
        /// The run that this belongs to.
        1 "ExecutionId" => execution_id: String,
        /// The process that sends it.
        2 "InstanceId" => instance_id: String,
        /// How much it matters. Hosts always send it.
        3 "Level" => level: DisplayLevel,
        /// The text, which may have several lines.
        4 "Text" => text: String,
    }
}

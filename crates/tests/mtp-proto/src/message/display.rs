//! Id 12: text for users. Since version 1.3.0.

use crate::envelope::{code, envelope};

code! {
    /// The severity of a text.
    pub struct DisplayLevel {
        /// Information.
        0 "Information" => INFORMATION,
        /// A warning.
        1 "Warning" => WARNING,
        /// An error.
        2 "Error" => ERROR,
    }
}

envelope! {
    /// Text for users.
    pub struct Display {
        /// The id of the run.
        1 "ExecutionId" => execution_id: String,
        /// The id of the sending process.
        2 "InstanceId" => instance_id: String,
        /// The severity. Hosts always send it.
        3 "Level" => level: DisplayLevel,
        /// The text, possibly with several lines.
        4 "Text" => text: String,
    }
}

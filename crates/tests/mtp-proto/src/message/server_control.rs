//! Id 14: a command of the server, as the reply to the pending request on the control pipe. Since version 1.4.0.

use crate::envelope::{code, envelope};

code! {
    /// The kind of a command.
    pub struct ControlKind {
        /// End the session in an orderly way as soon as possible.
        1 "CancelSession" => CANCEL_SESSION,
        /// No more commands will follow. Since MTP 2.4.
        2 "CloseChannel" => CLOSE_CHANNEL,
    }
}

envelope! {
    /// A command of the server.
    pub struct ServerControl {
        /// The kind of the command.
        1 "Kind" => kind: ControlKind,
    }
}

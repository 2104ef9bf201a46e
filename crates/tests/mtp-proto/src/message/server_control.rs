//! Id 14: what the server wants, as the reply to a request that waits on the control pipe. Version 1.4.0.

use crate::envelope::{code, envelope};

code! {
    /// What the server wants.
    pub struct ControlKind {
        /// End the session as soon as it can be done in good order.
        1 "CancelSession" => CANCEL_SESSION,
        /// There will be no more orders. From MTP 2.4 on.
        2 "CloseChannel" => CLOSE_CHANNEL,
    }
}

envelope! {
    /// What the server wants.
    pub struct ServerControl {
        /// What it is.
        1 "Kind" => kind: ControlKind,
    }
}

//! Encoding of requests and decoding of replies, without I/O.
//!
//! ```text
//! request, version 1   "1" 0  command 0  argument 0  argument 0  argument 0        always three arguments
//! request, version 2   "2" 0  length 0   (command 0  argument 0 …)                 length: decimal, of the part in
//! parentheses
//! reply                code LF  text…  end of the connection                       code: decimal, 0 on success
//! ```
//!
//! Every JVM supports version 1, which allows commands of 16 bytes and arguments of 1,024 bytes. Version 2 (JDK 24)
//! allows requests of 256 KiB. `getversion` returns the version; older JVMs do not know that command. Requests
//! cannot contain 0 bytes.
//!
//! The text of a reply to `threaddump` is described at [`thread_dump`].
//!
//! The text of a reply to `load` with code 0 depends on the version ([`loaded`]): JDK 9 and later send `return
//! code: 0`, JDK 8 sends the bare number, and with JDK 21 and later any other text means that the library was not
//! loaded.

mod load;
mod properties;
mod reply;
mod request;
mod thread_dump;

pub use self::load::{LoadError, loaded};
pub use self::properties::properties;
pub use self::reply::{MAX_TEXT, Reply, ReplyError, ReplyReader};
pub use self::request::{Request, RequestError, Version, version_of};
pub use self::thread_dump::{
    ThreadDumpError, ThreadDumpLimits, add_virtual_threads, thread_dump, vm_version,
};

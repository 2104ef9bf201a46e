//! Requests and replies as bytes. No I/O.
//!
//! ```text
//! request, version 1   "1" 0  command 0  argument 0  argument 0  argument 0        always three arguments
//! request, version 2   "2" 0  length 0   (command 0  argument 0 …)                 length: decimal, of what follows
//! reply                code LF  text…  end of the connection                       code: decimal, 0 if it was carried out
//! ```
//!
//! Version 1 is spoken by every JVM; it takes commands of 16 bytes and arguments of 1,024. Version 2 (JDK 24) takes requests
//! of 256 KiB. `getversion` asks; older ones do not know that command. Nothing in a request can contain a 0 byte.
//!
//! What `load` answers with code 0 depends on the version ([`loaded`]): JDK 9 and later say `return code: 0`, JDK 8 the bare
//! number, and JDK 21 and later say by any other text that the library was not loaded.

mod load;
mod properties;
mod reply;
mod request;

pub use self::load::{NotLoaded, loaded};
pub use self::properties::properties;
pub use self::reply::{MAX_TEXT, Reply, ReplyError, ReplyReader};
pub use self::request::{Request, RequestError, Version, version_of};

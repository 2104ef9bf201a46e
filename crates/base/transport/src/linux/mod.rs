//! What Linux alone has: the folder of a process in `/proc`, its root directory as the only door to its files, and the
//! kernel's word on who listens on a socket. The way to other processes' files is public for those who look for processes.

mod location;
mod process;
pub(crate) mod proof;
pub(crate) mod root;
mod status;

pub use location::{Location, seen_by};
pub use process::{ProcDir, parse_stat, path_of, read, user_name};
pub use root::{POINT, Root, open_beneath};
pub use status::{CAP_SYS_PTRACE, Capabilities, Status};

//! Linux only: directories of processes in `/proc`, access to the files of other processes through their root
//! directories, and verification of the process that listens on a socket.

mod location;
mod process;
pub(crate) mod proof;
pub(crate) mod root;
mod status;

pub use location::{Location, seen_by};
pub use process::{ProcDir, parse_stat, path_of, read, user_name};
pub use root::{POINT, Root, open_beneath};
pub use status::{CAP_SYS_PTRACE, Capabilities, Status};

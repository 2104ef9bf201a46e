//! The `runtap` program. `cli.rs` defines the command line, and `cmd/` has one file per verb.

mod cli;
mod cmd;
mod embedded;
mod exit;

fn main() -> std::process::ExitCode {
    cmd::main()
}

//! `runtap`: taps into running managed programs. The command line is in `cli.rs`, one verb a file in `cmd/`.

mod cli;
mod cmd;
mod exit;
mod output;
mod units;

fn main() -> std::process::ExitCode {
    cmd::main()
}

//! The checks of the workspace, one subcommand each.

fn main() {}

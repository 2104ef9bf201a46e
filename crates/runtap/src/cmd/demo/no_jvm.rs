//! `runtap demo jvm`, where the collector is not there.

use crate::cli::{DemoJvm, DemoJvmAgent};
use crate::exit::{self, expected};
use crate::output::Output;

pub(super) fn be_agent(_options: &DemoJvmAgent) -> anyhow::Result<u8> {
    Err(missing())
}

pub(super) fn jvm(_options: &DemoJvm, _output: Output) -> anyhow::Result<u8> {
    Err(missing())
}

fn missing() -> anyhow::Error {
    let why = "'demo jvm' is not there on Windows: collecting from Java programs was not brought to it yet";
    expected(exit::USAGE, why, None)
}

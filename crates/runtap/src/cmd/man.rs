//! `runtap man`: prints or writes the manual pages.

use std::io::Write;
use std::path::Path;

use anyhow::Context;
use clap::{Command, CommandFactory};
use runtap_os::output::{OutputSink, PendingFile, make_folder};
use runtap_text::Output;

use crate::cli::{Cli, Man};

pub(crate) fn run(options: &Man, output: Output) -> anyhow::Result<u8> {
    let command = Cli::command();
    match &options.out_dir {
        None => output.text(page(&command)?)?,
        Some(dir) => {
            make_folder(dir)?;
            write_pages(command, "", dir)?;
        }
    }
    Ok(crate::exit::OK)
}

fn page(command: &Command) -> anyhow::Result<String> {
    let mut text = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut text)?;
    Ok(String::from_utf8(text)?)
}

fn write_pages(mut command: Command, prefix: &str, dir: &Path) -> anyhow::Result<()> {
    command.build();
    let name = format!("{prefix}{}", command.get_name());
    let command = command.display_name(name.clone());
    let path = dir.join(format!("{name}.1"));
    let page = page(&command)?;
    let mut out = OutputSink::File(PendingFile::public(&path)?).begin()?;
    out.write_all(page.as_bytes()).with_context(|| format!("can't write {}", path.display()))?;
    out.finish()?;
    let shown = |verb: &&Command| verb.get_name() != "help" && !verb.is_hide_set();
    for verb in command.get_subcommands().filter(shown) {
        write_pages(verb.clone(), &format!("{name}-"), dir)?;
    }
    Ok(())
}

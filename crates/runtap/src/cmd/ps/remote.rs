//! `runtap ps runtap://HOST:PORT`: lists the processes that a router offers.

use runtap_target::{ProcessStatus, TargetSpec};
use runtap_text::document::ProcessesDocument;
use runtap_text::{Output, ProcessList, ProcessRow};

use super::{row, text_options};
use crate::cli::{Ps, Target, TargetOptions};
use crate::cmd::target::{target_error, target_spec};
use crate::exit::{self, expected, usage};

pub(super) async fn run(options: &Ps, output: Output) -> anyhow::Result<u8> {
    if options.watch || options.all_users {
        return Err(usage(
            "a router lists the processes of its own user, once: without --watch and --all-users",
        ));
    }
    let target_options = TargetOptions { token_file: options.token_file.clone(), ..TargetOptions::default() };
    let TargetSpec::Remote(remote) =
        target_spec(&Target { word: options.name.clone(), options: target_options })?
    else {
        return Err(usage("this is not the address of a router"));
    };
    let listed = match remote.selected().await {
        Ok(listed) => listed,
        Err(error) => return Err(target_error(error, "Pick one.", output).await),
    };
    if listed.is_empty() {
        let hint =
            "'runtap ps' on that machine, as the router's user, shows what can be seen there".to_owned();
        return Err(expected(exit::NO_TARGET, format!("{}: nothing is offered there", remote.address), hint));
    }
    let rows: Vec<ProcessRow> = listed
        .iter()
        .map(|one| {
            row(&ProcessStatus::remote(one, format!("runtap://{}/{}", remote.address.router, one.pid)))
        })
        .collect();
    if output.json() {
        output.document(&ProcessesDocument::new(rows, 0))?;
    } else {
        let list = ProcessList { rows: &rows, wide: options.wide };
        output.print(&list, &text_options(options, output))?;
    }
    Ok(exit::OK)
}

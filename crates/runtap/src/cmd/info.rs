//! `runtap info`: prints what runtimes report about their processes.

use runtap_target::is_suspended;
use runtap_text::document::InfoDocument;

use super::failure::explain;
use super::target::choose_all;
use crate::cli::Processes;
use crate::output::Output;

pub(super) async fn run(options: &Processes, output: Output) -> anyhow::Result<u8> {
    let all = choose_all(&options.target, options.all.all, output).await?;
    let output = output.for_results(all.len());
    for (n, chosen) in all.iter().enumerate() {
        let info = chosen.client.process_info().await.map_err(explain)?;
        let pid = chosen.process.as_ref().map_or(info.process_id, |process| u64::from(process.pid));
        let (cookie, platform) = (info.runtime_cookie.to_string(), [&*info.os, &*info.arch]);
        let mut document = InfoDocument::new(pid, cookie, &info.command_line, platform);
        document.entry_assembly = info.entry_assembly.as_deref();
        document.runtime_version = info.runtime_version.as_deref();
        document.portable_rid = info.portable_rid.as_deref();
        document.suspended = chosen.process.as_ref().and_then(|process| is_suspended(process, &info));
        if n > 0 && !output.json() {
            output.text("\n")?;
        }
        output.show(&document)?;
    }
    Ok(crate::exit::OK)
}

//! `runtap info`: prints facts about .NET processes, as their runtimes report them, and about Java programs.

use runtap_discover::System;
use runtap_target::{FactSource, JvmTarget, ManagedTarget, ResolvedTarget, is_suspended};
use runtap_text::Output;
use runtap_text::document::{InfoDocument, JvmInfo};

use super::failure::explain;
use super::target::{choose_managed, target_error};
use crate::cli::Processes;

pub(super) async fn run(options: &Processes, output: Output) -> anyhow::Result<u8> {
    let all = choose_managed(&options.target, options.all.all, output).await?;
    let output = output.for_results(all.len());
    for (n, chosen) in all.iter().enumerate() {
        if n > 0 && !output.json() {
            output.text("\n")?;
        }
        match chosen {
            ManagedTarget::Dotnet(chosen) => print_dotnet(chosen, output).await?,
            ManagedTarget::Jvm(chosen) => print_jvm(chosen, output).await?,
        }
    }
    Ok(crate::exit::OK)
}

async fn print_dotnet(chosen: &ResolvedTarget, output: Output) -> anyhow::Result<()> {
    let info = chosen.client.process_info().await.map_err(explain)?;
    let process = chosen.process.as_ref();
    let pid = process.map_or(info.process_id, |process| u64::from(process.pid));
    let mut document = InfoDocument::new(pid, "dotnet", &info.command_line);
    document.runtime_cookie = Some(info.runtime_cookie.to_string());
    (document.os, document.arch) = (Some(&*info.os), Some(&*info.arch));
    document.entry_assembly = info.entry_assembly.as_deref();
    document.entry = document.entry_assembly;
    document.runtime_version = info.runtime_version.as_deref();
    document.portable_rid = info.portable_rid.as_deref();
    document.suspended = process.and_then(|process| is_suspended(process, &info));
    document.user = process.map(|process| &*process.user);
    let usage = process.and_then(|process| System::current().usage(process.pid, process.start_time));
    document.uptime_ns = usage.and_then(|usage| usage.uptime.as_nanos().try_into().ok());
    Ok(output.show(&document)?)
}

async fn print_jvm(chosen: &JvmTarget, output: Output) -> anyhow::Result<()> {
    let facts = match chosen.facts().await {
        Ok(facts) => facts,
        Err(error) => return Err(target_error(error, "", output).await),
    };
    if let Some(why) = &facts.not_attached {
        output.detail(format_args!("{chosen} has no performance counters and was not queried: {why}"));
    }
    let (java, process) = (&facts.java, &*chosen.process);
    let known = |value| Some(value).filter(|value: &&str| !value.is_empty());
    let (pid, command_line) = (u64::from(process.pid), process.command_line.join(" "));
    let mut document = InfoDocument::new(pid, process.kind.name(), &command_line);
    document.os = cfg!(target_os = "linux").then_some("Linux");
    document.arch = facts.arch;
    document.entry = java.main();
    document.runtime_version = java.version();
    document.user = Some(&process.user);
    document.uptime_ns = facts.usage.and_then(|usage| usage.uptime.as_nanos().try_into().ok());
    document.jvm = Some(JvmInfo {
        vm_name: known(&java.vm_name),
        vm_version: known(&java.vm_version),
        vm_info: known(&java.vm_info),
        vendor: known(&java.vendor),
        java_home: known(&java.home),
        // Without these sources, an empty text means that the arguments are unknown.
        jvm_args: match facts.source {
            FactSource::Counters | FactSource::Attach => Some(java.arguments.trim()),
            FactSource::Process => None,
        },
        jvm_flags: known(&java.flags),
        source: facts.source.name(),
    });
    Ok(output.show(&document)?)
}

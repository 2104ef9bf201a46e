//! A runtime that connects to a tool's port: section "Diagnostic Ports" of the specification.

use runtap_diag_proto::{InfoForm, ProcessInfo};

use super::{NO_PORT_31, Row};
use crate::target::Target;

pub(super) const ROWS: &[Row] = &[
    Row {
        request: "Advertise, of a suspended runtime",
        checked: "its pid and the cookie of 0x0400",
        section: "Advertise Protocol",
        since: 5,
        run: |room| {
            let target = room.suspended()?;
            Ok(advertise_agrees(&target, &target.info(InfoForm::ProcessInfo)?))
        },
        notes: &[NO_PORT_31],
    },
    Row {
        request: "Advertise, after each command",
        checked: "three commands over the port, to the same runtime",
        section: "Advertise Protocol",
        since: 5,
        run: |room| {
            let target = room.suspended()?;
            let (first, second, third) = (
                target.info(InfoForm::ProcessInfo)?,
                target.info(InfoForm::ProcessInfo)?,
                target.info(InfoForm::ProcessInfo)?,
            );
            Ok(first == second && second == third && advertise_agrees(&target, &third))
        },
        notes: &[NO_PORT_31],
    },
    Row {
        request: "0x0401 ResumeRuntime, over the port",
        checked: "the program runs afterwards",
        section: "Diagnostic Ports",
        since: 5,
        run: |room| {
            let mut target = room.suspended()?;
            target.resume()?;
            Ok(advertise_agrees(&target, &target.info(InfoForm::ProcessInfo)?))
        },
        notes: &[NO_PORT_31],
    },
];

/// Returns whether the Advertise message and ProcessInfo agree.
fn advertise_agrees(target: &Target<'_>, info: &ProcessInfo) -> bool {
    let own = u64::from(target.id());
    let advertised = target.advertised().map(|runtime| (runtime.process_id(), runtime.cookie()));
    info.process_id == own && advertised == Some((own, info.runtime_cookie))
}

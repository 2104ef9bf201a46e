//! What the performance counters of a virtual machine tell about the machine and its program.

use super::Java;
use crate::perf_data::{PerfCounter, PerfData, PerfValue};

/// Parses a file or its first part. Returns `None` if the virtual machine is not ready or the version is unknown.
pub(crate) fn parse(bytes: &[u8]) -> Option<Java> {
    let data = PerfData::new(bytes).ok()?;
    let mut java = Java { has_counters: true, ..Java::default() };
    // The rest may be missing if the file was truncated.
    for PerfCounter { name, value } in data.map_while(Result::ok) {
        let PerfValue::Text(value) = value else { continue };
        let value = value.into_owned();
        match &*name {
            "sun.rt.javaCommand" => java.command = value,
            "java.property.java.version" => java.version = value,
            "java.property.java.vm.version" => java.vm_version = value,
            "java.property.java.vm.name" => java.vm_name = value,
            "java.property.java.vm.info" => java.vm_info = value,
            "java.property.java.vm.vendor" => java.vendor = value,
            "java.property.java.home" => java.home = value,
            "java.rt.vmArgs" => java.arguments = value,
            "java.rt.vmFlags" => java.flags = value,
            _ => {}
        }
    }
    Some(java)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::perf_data::tests::file;

    const TEXTS: [(&str, &str); 5] = [
        ("sun.rt.javaCommand", "shop.Main --port 80"),
        ("java.property.java.version", "17.0.15"),
        ("java.property.java.vm.version", "17.0.15+6"),
        ("java.property.java.vm.name", "OpenJDK 64-Bit Server VM"),
        ("java.rt.vmArgs", "-Xmx1g"),
    ];

    #[test]
    fn both_byte_orders_are_read() {
        for little in [false, true] {
            let java = parse(&file(little, &TEXTS)).unwrap();
            assert_eq!(java.version(), Some("17.0.15"));
            assert_eq!((java.command.as_str(), java.vm_name.as_str()), (TEXTS[0].1, TEXTS[3].1));
            assert_eq!((java.arguments.as_str(), java.has_counters), (TEXTS[4].1, true));
        }
    }

    #[test]
    fn a_machine_without_readable_counters_is_known_to_have_some() {
        let mut damaged = file(true, &TEXTS);
        damaged[32..36].fill(0);
        assert_eq!(parse(&damaged), Some(Java { has_counters: true, ..Java::default() }));
    }

    proptest! {
        #[test]
        fn a_truncated_file_yields_a_part_of_the_values(little: bool, end in 0..600_usize) {
            let whole = file(little, &TEXTS);
            let part = parse(&whole[..end.min(whole.len())]);
            let all = parse(&whole).unwrap();
            let Some(part) = part else {
                prop_assert!(end < 32);
                return Ok(());
            };
            prop_assert!(part.command.is_empty() || part.command == all.command);
            prop_assert!(part.arguments.is_empty() || end >= whole.len());
        }
    }
}

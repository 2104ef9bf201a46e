//! Names of the numbers in the events of the garbage collector.

/// Returns the name of the reason for a collection.
pub fn reason_name(reason: u32) -> &'static str {
    match reason {
        0 => "AllocSmall",
        1 => "Induced",
        2 => "LowMemory",
        3 => "Empty",
        4 => "AllocLarge",
        5 => "OutOfSpaceSOH",
        6 => "OutOfSpaceLOH",
        7 => "InducedNotForced",
        8 => "Internal",
        9 => "InducedLowMemory",
        10 => "InducedCompacting",
        11 => "LowMemoryHost",
        12 => "PMFullGC",
        13 => "LowMemoryHostBlocking",
        14 => "BGCTuningSOH",
        15 => "BGCTuningLOH",
        16 => "BGCStepping",
        17 => "InducedAggressive",
        _ => "unknown reason",
    }
}

/// Returns the name of the type of a collection: whether the program runs meanwhile.
pub fn type_name(kind: u32) -> &'static str {
    match kind {
        0 => "blocking",
        1 => "background",
        2 => "foreground",
        _ => "unknown type",
    }
}

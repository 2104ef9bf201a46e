//! Detection of messages of MTP 1.4 to 1.6, which use another layout: they have no InstanceId, so their lists are in
//! field 2 (and 3, for results).
//!
//! Such messages are only detected, so that users can be asked to update. They are not decoded; `dotnet test` of .NET
//! 10 does not decode them either (dotnet/sdk#48912).

use runtap_wire::Reader;

use crate::{
    Frame, MessageId,
    envelope::{field, length},
};

/// Returns whether this is a message of MTP 1.4 to 1.6: a message that starts with ExecutionId and InstanceId in later
/// versions, with a list in place of the InstanceId.
///
/// An InstanceId is never mistaken for a list: its first four characters would be a far too large element count.
/// Returns `false` for malformed messages.
pub fn is_old_layout(frame: &Frame<'_>) -> bool {
    let lists: &[u16] = match frame.id {
        MessageId::DISCOVERED_TESTS | MessageId::FILE_ARTIFACTS => &[2],
        MessageId::TEST_RESULTS => &[2, 3],
        _ => return false,
    };
    let mut reader = frame.reader();
    let Ok(count) = reader.u16("field count") else { return false };
    let mut found = false;
    for _ in 0..count {
        let Ok((id, value)) = field(&mut reader) else { return false };
        match id {
            // In current results, field 3 holds the successful tests: only field 2 is decisive.
            2 if is_list(value.clone()) => found = true,
            2 => return false,
            // Old results with only failed tests have them in field 3 and no field 2. Current results of successful
            // tests without an InstanceId look alike, but their elements differ at field 6.
            3 if lists.contains(&3) && is_list_of_failures(value.clone()) => found = true,
            _ => {}
        }
    }
    found
}

fn is_list(mut value: Reader<'_>) -> bool {
    elements(&mut value, |_, _| true) && value.is_empty()
}

/// Returns whether field 6 of an element is a list of envelopes (exceptions): in a successful test, it is text.
fn is_list_of_failures(mut value: Reader<'_>) -> bool {
    let mut seen = false;
    let whole = elements(&mut value, |id, value| {
        seen |= id == 6 && is_list(value);
        true
    });
    seen && whole && value.is_empty()
}

fn elements(value: &mut Reader<'_>, mut each: impl FnMut(u16, Reader<'_>) -> bool) -> bool {
    let Ok(count @ 1..) = length(value, "list") else { return false };
    for _ in 0..count {
        let Ok(fields @ 1..) = value.u16("field count") else { return false };
        for _ in 0..fields {
            let Ok((id, of_field)) = field(value) else { return false };
            if !each(id, of_field) {
                return false;
            }
        }
    }
    true
}

//! Recognises the messages of MTP 1.4 to 1.6, which lay them out in another way: without InstanceId, so that their lists are
//! at field 2 (and 3, for results).
//!
//! Owns: the answer to "is this such a message?", so that a user can be told to update. Refuses to: read them; `dotnet test`
//! of .NET 10 does not either (dotnet/sdk#48912).

use runtap_wire::Reader;

use crate::{
    Frame, MessageId,
    envelope::{field, length},
};

/// Whether this is a message of MTP 1.4 to 1.6: one of the three that begin with ExecutionId and InstanceId today, with a
/// list in the place of the InstanceId.
///
/// An InstanceId can't be taken for a list: its first four characters would be a count of elements, and a far too large one.
/// A message that is broken in any way is none.
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
            // Results of today have their successful tests at field 3: only field 2 tells.
            2 if is_list(value.clone()) => found = true,
            2 => return false,
            // What only failed has no field 2, and its failed tests at field 3: so have results of today without an
            // InstanceId, of successful tests. Their elements differ at field 6.
            3 if lists.contains(&3) && is_list_of_failures(value.clone()) => found = true,
            _ => {}
        }
    }
    found
}

fn is_list(mut value: Reader<'_>) -> bool {
    elements(&mut value, |_, _| true) && value.is_empty()
}

/// Whether a field 6 of an element is a list of envelopes (exceptions): a successful test has text there.
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

//! Events as CSV (RFC 4180): a column for each thing that every event has, then the payload and the stack as JSON.

use std::io::Write;

use runtap_ingest::{Member, MemberValue, Record};

use super::json;

pub(super) fn head(out: &mut Vec<u8>, stacks: bool) {
    for member in Member::ALL {
        out.extend_from_slice(member.name().as_bytes());
        out.push(b',');
    }
    out.extend_from_slice(if stacks { b"payload,stack\r\n" } else { b"payload\r\n" });
}

pub(super) fn write(out: &mut Vec<u8>, record: &Record<'_>, frames: Option<&[String]>) {
    for member in Member::ALL {
        // Writing to a Vec can't fail.
        let _ = match record.member(member) {
            Some(MemberValue::Text(value)) => {
                cell(out, value.as_bytes());
                Ok(())
            }
            Some(MemberValue::Int(value)) => write!(out, "{value}"),
            Some(MemberValue::UInt(value)) => write!(out, "{value}"),
            Some(MemberValue::Hex(value)) => write!(out, "{value:#x}"),
            Some(MemberValue::Time(value)) => write!(out, "{value}"),
            Some(MemberValue::Guid(value)) => write!(out, "{value}"),
            _ => Ok(()),
        };
        out.push(b',');
    }
    let mut text = Vec::new();
    json::payload(&mut text, record);
    cell(out, &text);
    if let Some(frames) = frames {
        out.push(b',');
        let frames = serde_json::to_vec(frames).unwrap_or_default();
        cell(out, &frames);
    }
    out.extend_from_slice(b"\r\n");
}

/// Quoted where it must be.
fn cell(out: &mut Vec<u8>, text: &[u8]) {
    if !text.iter().any(|byte| b",\"\r\n".contains(byte)) {
        out.extend_from_slice(text);
        return;
    }
    out.push(b'"');
    for byte in text {
        if *byte == b'"' {
            out.push(b'"');
        }
        out.push(*byte);
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_where_they_must_be() {
        for (text, quoted) in
            [("a b", "a b"), ("", ""), ("a,b", "\"a,b\""), ("a\"b", "\"a\"\"b\""), ("a\nb", "\"a\nb\"")]
        {
            let mut out = Vec::new();
            cell(&mut out, text.as_bytes());
            assert_eq!(out, quoted.as_bytes());
        }
    }
}

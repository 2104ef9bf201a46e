//! Events as CSV (RFC 4180): a column for each member that every event has, then payload, stack and the names of numbers as JSON,
//! and problems of the payload.
//!
//! Spreadsheets evaluate cells that start with `=`, `+`, `-` or `@` as formulas. Such texts of the target get an apostrophe in
//! front, which marks them as text; numbers stay numbers.

use std::io::Write;

use crate::{Member, MemberValue, Record};

use super::json::{self, PayloadProblem};
use crate::shown::shown;
use runtap_model::text::Clean;

pub(super) fn head(out: &mut Vec<u8>, stacks: bool) {
    for member in Member::ALL {
        out.extend_from_slice(member.name().as_bytes());
        out.push(b',');
    }
    out.extend_from_slice(if stacks { b"payload,stack" } else { b"payload" });
    out.extend_from_slice(b",payload_names,payload_hex,payload_error\r\n");
}

pub(super) fn write(out: &mut Vec<u8>, record: &Record<'_>, frames: Option<&[String]>) {
    for member in Member::ALL {
        // Writing to a Vec can't fail.
        let _ = match record.member(member) {
            Some(MemberValue::Text(value)) => {
                text_cell(out, &shown(value));
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
    let odd = json::payload(&mut text, record);
    cell(out, &text);
    if let Some(frames) = frames {
        out.push(b',');
        text.clear();
        json::stack(&mut text, frames);
        cell(out, &text);
    }
    out.push(b',');
    text.clear();
    json::names(&mut text, b"", record);
    cell(out, &text);
    out.push(b',');
    if let Some(PayloadProblem::Bytes(bytes)) = &odd {
        json::hex_digits(out, bytes);
    }
    out.push(b',');
    if let Some(PayloadProblem::Error(error)) = &odd {
        text_cell(out, error);
    }
    out.extend_from_slice(b"\r\n");
}

/// Writes a text of the target so that it can act neither in a spreadsheet nor on a terminal.
fn text_cell(out: &mut Vec<u8>, text: &str) {
    // Full-width variants are treated as formulas too on East Asian systems.
    let is_formula = text.starts_with(['=', '+', '-', '@', '＝', '＋', '－', '＠']);
    let text = format!("{}{}", if is_formula { "'" } else { "" }, Clean(text));
    cell(out, text.as_bytes());
}

/// Writes a cell, quoted if necessary.
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
    fn texts_are_not_formulas() {
        for (text, shown) in [
            ("=1+1", "'=1+1"),
            ("+1", "'+1"),
            ("-2", "'-2"),
            ("@SUM(A1,A2)", "\"'@SUM(A1,A2)\""),
            ("＝1", "'＝1"),
            ("\t=1", "\\t=1"),
            ("\r=1", "\\r=1"),
            ("\n=1", "\\n=1"),
            ("a=1", "a=1"),
            ("\u{202e}x\u{1b}", "\\u{202e}x\\u{1b}"),
            ("", ""),
        ] {
            let mut out = Vec::new();
            text_cell(&mut out, text);
            assert_eq!(String::from_utf8(out).unwrap(), shown);
        }
    }

    #[test]
    fn cells_are_quoted_if_necessary() {
        for (text, quoted) in
            [("a b", "a b"), ("", ""), ("a,b", "\"a,b\""), ("a\"b", "\"a\"\"b\""), ("a\nb", "\"a\nb\"")]
        {
            let mut out = Vec::new();
            cell(&mut out, text.as_bytes());
            assert_eq!(out, quoted.as_bytes());
        }
    }
}

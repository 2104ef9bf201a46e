//! The configuration of version 1, as `ObjectOutputStream` serializes it.
//!
//! Contains a writer for this one object; the reader is in `objects`. Source: "Java Object
//! Serialization Specification", section 6.4, and two samples written by the original class.

use super::Configuration;
use crate::{Dialect, EncodeError, JavaStr, JavaString};

/// The class of a serialized configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JavaClass {
    /// The fully qualified name, with dots.
    pub name: JavaString,
    /// The `serialVersionUID`.
    pub uid: u64,
}

impl JavaClass {
    /// Returns the configuration class of the original HQ.
    pub(super) fn bytefrog() -> Self {
        Self {
            name: "com.secdec.bytefrog.common.config.RuntimeAgentConfigurationV1".into(),
            uid: 0xbf53_efb7_761d_26c2,
        }
    }

    /// Returns the dialect of an agent that said hello with version 1 and received a configuration of this class.
    pub fn dialect(&self) -> Dialect {
        if self.name.as_java_str().as_bytes().starts_with(b"com.codedx.codepulse.") {
            Dialect::V1CodePulse
        } else {
            Dialect::V1
        }
    }
}

pub(super) fn write(configuration: &Configuration, class: &JavaClass) -> Result<Vec<u8>, EncodeError> {
    let mut out = vec![0xac, 0xed, 0, 5, 0x73, 0x72];
    text(&mut out, class.name.as_java_str())?;
    out.extend(class.uid.to_be_bytes());
    // Serializable, seven fields: first the primitive ones, then the others, each sorted by name.
    out.extend([2, 0, 7]);
    for (kind, name) in [
        (b'I', "bufferMemoryBudget"),
        (b'I', "heartbeatInterval"),
        (b'I', "numDataSenders"),
        (b'I', "queueRetryCount"),
        (b'B', "runId"),
        (b'L', "exclusions"),
    ] {
        out.push(kind);
        ascii(&mut out, name);
    }
    out.push(0x74);
    ascii(&mut out, "Ljava/util/List;");
    out.push(b'L');
    ascii(&mut out, "inclusions");
    // The type again, as a handle to the first one; the end of the class description; no superclass.
    out.extend([0x71, 0, 0x7e, 0, 1, 0x78, 0x70]);
    for number in [
        configuration.buffer_memory_budget,
        configuration.heartbeat_interval,
        configuration.data_senders,
        configuration.queue_retry_count,
    ] {
        out.extend(number.to_be_bytes());
    }
    out.push(configuration.run);
    out.extend([0x73, 0x72]);
    ascii(&mut out, "java.util.ArrayList");
    out.extend(0x7881_d21d_99c7_619d_u64.to_be_bytes());
    out.extend([3, 0, 1, b'I']);
    ascii(&mut out, "size");
    out.extend([0x78, 0x70]);
    list(&mut out, &configuration.exclusions)?;
    out.extend([0x73, 0x71, 0, 0x7e, 0, 3]);
    list(&mut out, &configuration.inclusions)?;
    Ok(out)
}

/// Writes a text that is known to be shorter than 256 bytes.
fn ascii(out: &mut Vec<u8>, text: &'static str) {
    out.extend((text.len() as u64).to_be_bytes().iter().skip(6));
    out.extend(text.as_bytes());
}

fn text(out: &mut Vec<u8>, text: JavaStr<'_>) -> Result<(), EncodeError> {
    let bytes = text.as_bytes();
    let Ok(length) = u16::try_from(bytes.len()) else {
        let limit = u16::MAX.into();
        return Err(EncodeError::TooLong { what: "pattern", length: bytes.len() as u64, limit });
    };
    out.extend(length.to_be_bytes());
    out.extend_from_slice(bytes);
    Ok(())
}

/// Writes a list: its size, the block that `ArrayList` adds (its capacity), the elements and the end marker.
fn list(out: &mut Vec<u8>, patterns: &[JavaString]) -> Result<(), EncodeError> {
    let Ok(size) = i32::try_from(patterns.len()) else {
        let (length, limit) = (patterns.len() as u64, i32::MAX.unsigned_abs().into());
        return Err(EncodeError::TooLong { what: "list of patterns", length, limit });
    };
    out.extend(size.to_be_bytes());
    out.extend([0x77, 4]);
    out.extend(size.to_be_bytes());
    for pattern in patterns {
        out.push(0x74);
        text(out, pattern.as_java_str())?;
    }
    out.push(0x78);
    Ok(())
}

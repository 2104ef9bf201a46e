//! Evaluates conditions on events.

use std::cmp::Ordering;

use super::{Comparison, Field, Filter, Number, Op, Operand};
use runtap_wire::filter::Expression;

use crate::lines::NameOf;
use crate::payload::Value;
use crate::record::{Member, MemberValue, Record};

impl Filter {
    /// Whether an event meets the condition. `frames` are the names of the frames of its stack; they are needed only for `stack`.
    pub fn matches(&self, record: &Record<'_>, frames: &[String]) -> bool {
        // For a known event, every comparison has a result.
        self.root.evaluate(&|comparison| Some(comparison.matches(record, frames))) == Some(true)
    }

    /// Whether the condition uses `stack`, so that [`Self::matches`] needs the names of frames.
    pub fn needs_frames(&self) -> bool {
        let mut needs_frames = false;
        self.root.each(&mut |comparison| needs_frames |= comparison.field == Field::Stack);
        needs_frames
    }

    /// Returns the payload fields that are required to meet the condition. Of a path (`Outer.Inner`) only the first part.
    pub fn fields(&self) -> Vec<String> {
        let mut fields = Vec::new();
        self.each_name(&mut |of, name| {
            if of == NameOf::Field {
                fields.push(name.split('.').next().unwrap_or(name).to_owned());
            }
        });
        fields
    }

    /// Calls `take` for the names that events need to meet the condition: values of `provider` and `name`, and payload fields.
    pub(crate) fn each_name(&self, take: &mut impl FnMut(NameOf, &str)) {
        each_name(&self.root, take);
    }
}

fn each_name(expression: &Expression<Comparison>, take: &mut impl FnMut(NameOf, &str)) {
    match expression {
        Expression::Or(parts) | Expression::And(parts) => parts.iter().for_each(|part| each_name(part, take)),
        // Events that lack the name meet the condition.
        Expression::Not(_) => {}
        Expression::Condition(Comparison { field, op, value }) => match (field, value) {
            (Field::Payload(path), Operand::Text { .. } | Operand::Regex(_)) => take(NameOf::Field, path),
            (Field::Member(Member::Provider), Operand::Text { text, .. }) if *op == Op::Equal => {
                take(NameOf::Provider, text);
            }
            (Field::Member(Member::Name), Operand::Text { text, .. }) if *op == Op::Equal => {
                take(NameOf::Event, text);
            }
            _ => {}
        },
    }
}

/// The value of a field.
enum FieldValue<'a> {
    Number(Number),
    Bool(bool),
    Borrowed(&'a str),
    Text(String),
    /// An object or an array, which exists but can't be compared.
    Nested,
}

impl Comparison {
    fn matches(&self, record: &Record<'_>, frames: &[String]) -> bool {
        match &self.field {
            Field::Member(member) => {
                self.holds(record.member(*member).map(|value| of_member(*member, value)))
            }
            Field::Payload(path) => self.field_matches(record, path),
            Field::Stack if frames.is_empty() => self.holds(None),
            Field::Stack => frames.iter().any(|frame| self.holds(Some(FieldValue::Borrowed(frame)))),
        }
    }

    /// A number that has a name is compared by name if the condition has a text.
    fn field_matches(&self, record: &Record<'_>, path: &str) -> bool {
        let by_name = match &self.value {
            Operand::Regex(_) => true,
            Operand::Text { number, .. } => number.is_none() && matches!(self.op, Op::Equal | Op::NotEqual),
            Operand::Null => false,
        };
        if by_name && let Some(name) = record.payload.name(path) {
            return self.holds(Some(FieldValue::Borrowed(&name)))
                || matches!(self.value, Operand::Regex(_))
                    && self.holds(record.field(path).as_ref().map(of_value));
        }
        self.holds(record.field(path).as_ref().map(of_value))
    }

    fn holds(&self, held: Option<FieldValue<'_>>) -> bool {
        let Some(held) = held else {
            return matches!((&self.value, self.op), (Operand::Null, Op::Equal));
        };
        match &self.value {
            Operand::Null => self.op == Op::NotEqual,
            Operand::Regex(regex) => match &held {
                FieldValue::Borrowed(text) => regex.is_match(text),
                FieldValue::Text(text) => regex.is_match(text),
                FieldValue::Bool(value) => regex.is_match(if *value { "true" } else { "false" }),
                FieldValue::Number(Number::Int(n)) => regex.is_match(&n.to_string()),
                FieldValue::Number(Number::Real(n)) => regex.is_match(&n.to_string()),
                FieldValue::Nested => false,
            },
            Operand::Text { text, number } => {
                let order = match held {
                    FieldValue::Number(held) => number.and_then(|number| compare(held, number)),
                    FieldValue::Bool(held) => {
                        text.to_ascii_lowercase().parse().ok().map(|value| held.cmp(&value))
                    }
                    FieldValue::Borrowed(held) => Some(held.cmp(text)),
                    FieldValue::Text(held) => Some(held.as_str().cmp(text)),
                    FieldValue::Nested => None,
                };
                // Values that can't be compared are different, but neither less nor greater.
                order.map_or(self.op == Op::NotEqual, |order| self.op.accepts(order))
            }
        }
    }
}

impl Op {
    fn accepts(self, order: Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::NotEqual => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::AtMost => order.is_le(),
            Self::More => order.is_gt(),
            Self::AtLeast => order.is_ge(),
            Self::Matches => false,
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "only where one side is no integer")]
fn compare(a: Number, b: Number) -> Option<Ordering> {
    let real = |number| match number {
        Number::Int(n) => n as f64,
        Number::Real(n) => n,
    };
    match (a, b) {
        (Number::Int(a), Number::Int(b)) => Some(a.cmp(&b)),
        (a, b) => real(a).partial_cmp(&real(b)),
    }
}

fn of_member(member: Member, value: MemberValue<'_>) -> FieldValue<'_> {
    match value {
        MemberValue::Text(text) => FieldValue::Borrowed(text),
        MemberValue::Int(n) => FieldValue::Number(Number::Int(n.into())),
        MemberValue::UInt(n) | MemberValue::Hex(n) => FieldValue::Number(Number::Int(n.into())),
        MemberValue::Time(time) => FieldValue::Text(time.to_string()),
        MemberValue::Guid(guid) => {
            debug_assert!(!member.is_number(), "GUIDs are texts");
            FieldValue::Text(guid.to_string())
        }
    }
}

fn of_value<'a>(value: &Value<'a>) -> FieldValue<'a> {
    match value {
        Value::Bool(value) => FieldValue::Bool(*value),
        Value::Int(n) => FieldValue::Number(Number::Int((*n).into())),
        Value::UInt(n) | Value::Hex(n) => FieldValue::Number(Number::Int((*n).into())),
        Value::F32(n) => FieldValue::Number(Number::Real((*n).into())),
        Value::F64(n) => FieldValue::Number(Number::Real(*n)),
        Value::Decimal(n) => match n.to_string().parse() {
            Ok(n) => FieldValue::Number(Number::Real(n)),
            Err(_never) => FieldValue::Nested,
        },
        Value::Char(unit) => FieldValue::Text(String::from_utf16_lossy(&[*unit])),
        Value::Time(time) => match time.unix_ns() {
            Some(ns) => FieldValue::Text(crate::record::UtcNs(ns).to_string()),
            None => FieldValue::Nested,
        },
        Value::Guid(guid) => FieldValue::Text(guid.to_string()),
        Value::Utf16(text) => FieldValue::Text(text.to_string()),
        Value::Utf8(text) => FieldValue::Text(String::from_utf8_lossy(text).into_owned()),
        Value::Bytes(_) | Value::Object(_) | Value::Array(_) => FieldValue::Nested,
    }
}

//! Whether an event meets a condition.

use std::cmp::Ordering;

use super::{Comparison, Field, Filter, Node, Number, Op, Operand};
use crate::lines::NameOf;
use crate::payload::Value;
use crate::record::{Member, MemberValue, Record};

impl Filter {
    /// Whether an event meets the condition. `frames` are the names of the frames of its stack, which only `stack`
    /// asks for.
    pub fn matches(&self, record: &Record<'_>, frames: &[String]) -> bool {
        self.root.matches(record, frames)
    }

    /// Whether the condition speaks of `stack`, so that [`Self::matches`] needs the names of frames.
    pub fn needs_frames(&self) -> bool {
        self.root.needs_frames()
    }

    /// The fields that a payload needs to meet the condition; of a path (`Outer.Inner`) the first.
    pub fn fields(&self) -> Vec<String> {
        let mut fields = Vec::new();
        self.each_name(&mut |of, name| {
            if of == NameOf::Field {
                fields.push(name.split('.').next().unwrap_or(name).to_owned());
            }
        });
        fields
    }

    /// Hands out the names that events need to meet the condition: values of `provider` and `name`, and payload fields.
    pub(crate) fn each_name(&self, take: &mut impl FnMut(NameOf, &str)) {
        self.root.each_name(take);
    }
}

impl Node {
    fn matches(&self, record: &Record<'_>, frames: &[String]) -> bool {
        match self {
            Self::Or(nodes) => nodes.iter().any(|node| node.matches(record, frames)),
            Self::And(nodes) => nodes.iter().all(|node| node.matches(record, frames)),
            Self::Not(node) => !node.matches(record, frames),
            Self::Compare(comparison) => comparison.matches(record, frames),
        }
    }

    fn each_name(&self, take: &mut impl FnMut(NameOf, &str)) {
        match self {
            Self::Or(nodes) | Self::And(nodes) => nodes.iter().for_each(|node| node.each_name(take)),
            // What lacks the name meets the condition.
            Self::Not(_) => {}
            Self::Compare(Comparison { field, op, value }) => match (field, value) {
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

    fn needs_frames(&self) -> bool {
        match self {
            Self::Or(nodes) | Self::And(nodes) => nodes.iter().any(Self::needs_frames),
            Self::Not(node) => node.needs_frames(),
            Self::Compare(comparison) => comparison.field == Field::Stack,
        }
    }
}

/// What a field holds.
enum Held<'a> {
    Number(Number),
    Bool(bool),
    Borrowed(&'a str),
    Text(String),
    /// An object or an array: there, but not comparable.
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
            Field::Stack => frames.iter().any(|frame| self.holds(Some(Held::Borrowed(frame)))),
        }
    }

    /// A number that has a name is compared by it, where the condition has a text.
    fn field_matches(&self, record: &Record<'_>, path: &str) -> bool {
        let by_name = match &self.value {
            Operand::Regex(_) => true,
            Operand::Text { number, .. } => number.is_none() && matches!(self.op, Op::Equal | Op::NotEqual),
            Operand::Null => false,
        };
        if by_name && let Some(name) = record.payload.name(path) {
            return self.holds(Some(Held::Borrowed(&name)))
                || matches!(self.value, Operand::Regex(_))
                    && self.holds(record.field(path).as_ref().map(of_value));
        }
        self.holds(record.field(path).as_ref().map(of_value))
    }

    fn holds(&self, held: Option<Held<'_>>) -> bool {
        let Some(held) = held else {
            return matches!((&self.value, self.op), (Operand::Null, Op::Equal));
        };
        match &self.value {
            Operand::Null => self.op == Op::NotEqual,
            Operand::Regex(regex) => match &held {
                Held::Borrowed(text) => regex.is_match(text),
                Held::Text(text) => regex.is_match(text),
                Held::Bool(value) => regex.is_match(if *value { "true" } else { "false" }),
                Held::Number(Number::Int(n)) => regex.is_match(&n.to_string()),
                Held::Number(Number::Real(n)) => regex.is_match(&n.to_string()),
                Held::Nested => false,
            },
            Operand::Text { text, number } => {
                let order = match held {
                    Held::Number(held) => number.and_then(|number| compare(held, number)),
                    Held::Bool(held) => text.to_ascii_lowercase().parse().ok().map(|value| held.cmp(&value)),
                    Held::Borrowed(held) => Some(held.cmp(text)),
                    Held::Text(held) => Some(held.as_str().cmp(text)),
                    Held::Nested => None,
                };
                // What can't be compared is different, and neither less nor more.
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

fn of_member(member: Member, value: MemberValue<'_>) -> Held<'_> {
    match value {
        MemberValue::Text(text) => Held::Borrowed(text),
        MemberValue::Int(n) => Held::Number(Number::Int(n.into())),
        MemberValue::UInt(n) | MemberValue::Hex(n) => Held::Number(Number::Int(n.into())),
        MemberValue::Time(time) => Held::Text(time.to_string()),
        MemberValue::Guid(guid) => {
            debug_assert!(!member.is_number(), "GUIDs are texts");
            Held::Text(guid.to_string())
        }
    }
}

fn of_value<'a>(value: &Value<'a>) -> Held<'a> {
    match value {
        Value::Bool(value) => Held::Bool(*value),
        Value::Int(n) => Held::Number(Number::Int((*n).into())),
        Value::UInt(n) | Value::Hex(n) => Held::Number(Number::Int((*n).into())),
        Value::F32(n) => Held::Number(Number::Real((*n).into())),
        Value::F64(n) => Held::Number(Number::Real(*n)),
        Value::Decimal(n) => match n.to_string().parse() {
            Ok(n) => Held::Number(Number::Real(n)),
            Err(_never) => Held::Nested,
        },
        Value::Char(unit) => Held::Text(String::from_utf16_lossy(&[*unit])),
        Value::Time(time) => match time.unix_ns() {
            Some(ns) => Held::Text(crate::record::UtcNs(ns).to_string()),
            None => Held::Nested,
        },
        Value::Guid(guid) => Held::Text(guid.to_string()),
        Value::Utf16(text) => Held::Text(text.to_string()),
        Value::Utf8(text) => Held::Text(String::from_utf8_lossy(text).into_owned()),
        Value::Bytes(_) | Value::Object(_) | Value::Array(_) => Held::Nested,
    }
}

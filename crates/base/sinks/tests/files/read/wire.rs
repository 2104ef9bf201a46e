//! The encoding of Protocol Buffers: a message is a list of numbered fields. Panics on what is malformed.

/// A field of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Field<'a> {
    pub(crate) fn number(self) -> u64 {
        let Self::Number(number) = self else { panic!("not a number: {self:?}") };
        number
    }

    pub(crate) fn bytes(self) -> &'a [u8] {
        let Self::Bytes(bytes) = self else { panic!("not bytes: {self:?}") };
        bytes
    }

    pub(crate) fn text(self) -> &'a str {
        std::str::from_utf8(self.bytes()).expect("texts are UTF-8")
    }
}

/// The fields of a message with their numbers.
pub(crate) fn fields(message: &[u8]) -> Vec<(u64, Field<'_>)> {
    let mut rest = message;
    let mut fields = Vec::new();
    while !rest.is_empty() {
        let key = varint(&mut rest);
        let field = match key & 7 {
            0 => Field::Number(varint(&mut rest)),
            2 => {
                let length = usize::try_from(varint(&mut rest)).expect("a small number");
                let (bytes, behind) = rest.split_at(length);
                rest = behind;
                Field::Bytes(bytes)
            }
            other => panic!("wire type {other} is not used"),
        };
        fields.push((key >> 3, field));
    }
    fields
}

/// The numbers of a packed field.
pub(crate) fn packed(field: Field<'_>) -> Vec<u64> {
    let mut rest = field.bytes();
    let mut numbers = Vec::new();
    while !rest.is_empty() {
        numbers.push(varint(&mut rest));
    }
    numbers
}

fn varint(rest: &mut &[u8]) -> u64 {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, behind) = rest.split_first().expect("the number ends");
        *rest = behind;
        number |= u64::from(byte & 0x7f) << shift;
        if *byte < 0x80 {
            return number;
        }
    }
    panic!("a number of more than 64 bits");
}

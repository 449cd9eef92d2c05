use std::fmt;
use std::io::Write;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Int32Type, Int64Type, Time64MicrosecondType, TimestampMicrosecondType,
};
use arrow_array::{Array, ArrayRef, StringArray};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType};
use frazil_core::{Error, ErrorKind, Result};
use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};

use crate::text;

/// SHA-256 works on blocks of this size, and HMAC makes keys as long (RFC 2104).
const BLOCK_BYTES: usize = 64;
/// A shorter secret can be guessed (NIST SP 800-107: at least half of the hash's strength).
const MIN_SECRET_BYTES: usize = 16;
const DIGEST_BYTES: usize = 32;

/// The secret that hashed columns are made with. `Debug` does not show it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct HashKey([u8; BLOCK_BYTES]);

impl HashKey {
    /// The key that these bytes are, of any length from 16 on: what `openssl dgst -sha256 -hmac` takes.
    ///
    /// # Errors
    /// `Invalid` if the secret is too short to be one.
    pub fn new(secret: &[u8]) -> Result<Self> {
        if secret.len() < MIN_SECRET_BYTES {
            return Err(Error::new(
                ErrorKind::Invalid,
                "use the secret of hashed columns",
                format!(
                    "it has {} bytes; at least {MIN_SECRET_BYTES} are needed",
                    secret.len()
                ),
            )
            .with_hint("take 32 random bytes, such as from `openssl rand -base64 32`"));
        }
        let mut block = [0; BLOCK_BYTES];
        if secret.len() > BLOCK_BYTES {
            block[..DIGEST_BYTES].copy_from_slice(&Sha256::digest(secret));
        } else {
            block[..secret.len()].copy_from_slice(secret);
        }
        Ok(Self(block))
    }
}

impl fmt::Debug for HashKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HashKey(…)")
    }
}

/// HMAC-SHA256 of each value, as lowercase hexadecimal digits; null stays null.
///
/// What is hashed is a part of the table's contract: a string's UTF-8, the bytes of binary, and of anything else the
/// text that Iceberg's JSON has for it (`true`, `-7`, `14.20`, `2017-11-16`, `2017-11-16T22:31:08.123456+00:00`).
pub(crate) fn hash(array: &ArrayRef, key: &HashKey) -> std::result::Result<StringArray, ArrowError> {
    let mac: Hmac<Sha256> = Hmac::new_from_slice(&key.0)
        .map_err(|error| ArrowError::ComputeError(format!("the hash key: {error}")))?;
    let mut digits = Vec::with_capacity(array.len() * 2 * DIGEST_BYTES);
    let mut ends: Vec<i32> = Vec::with_capacity(array.len() + 1);
    ends.push(0);
    let mut text = Vec::new();
    for row in 0..array.len() {
        if array.is_valid(row) {
            text.clear();
            value_bytes(array, row, &mut text)?;
            let mut mac = mac.clone();
            mac.update(&text);
            for byte in mac.finalize().into_bytes() {
                // Writing to a Vec never fails.
                let _ = write!(digits, "{byte:02x}");
            }
        }
        let end = i32::try_from(digits.len())
            .map_err(|_| ArrowError::ComputeError("one column of one event exceeds 2 GiB".to_owned()))?;
        ends.push(end);
    }
    StringArray::try_new(
        OffsetBuffer::new(ScalarBuffer::from(ends)),
        Buffer::from_vec(digits),
        array.nulls().cloned(),
    )
}

/// The same of one text.
pub(crate) fn hash_text(text: &[u8], key: &HashKey) -> String {
    // Keys have the size of a block, which HMAC always takes.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&key.0) else {
        return String::new();
    };
    mac.update(text);
    let digest = mac.finalize().into_bytes();
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn value_bytes(array: &ArrayRef, row: usize, out: &mut Vec<u8>) -> std::result::Result<(), ArrowError> {
    match array.data_type() {
        DataType::Utf8 => out.extend_from_slice(array.as_string::<i32>().value(row).as_bytes()),
        DataType::LargeBinary => out.extend_from_slice(array.as_binary::<i64>().value(row)),
        DataType::Boolean => {
            let _ = write!(out, "{}", array.as_boolean().value(row));
        }
        DataType::Int32 => {
            let _ = write!(out, "{}", array.as_primitive::<Int32Type>().value(row));
        }
        DataType::Int64 => {
            let _ = write!(out, "{}", array.as_primitive::<Int64Type>().value(row));
        }
        DataType::Decimal128(_, scale) => {
            let scale = u32::try_from(*scale).unwrap_or(0);
            text::decimal(array.as_primitive::<Decimal128Type>().value(row), scale, out);
        }
        DataType::Date32 => text::date(array.as_primitive::<Date32Type>().value(row), out),
        DataType::Time64(_) => text::time(array.as_primitive::<Time64MicrosecondType>().value(row), out),
        DataType::Timestamp(_, zone) => {
            let micros = array.as_primitive::<TimestampMicrosecondType>().value(row);
            text::timestamp(micros, zone.is_some(), out);
        }
        other => {
            return Err(ArrowError::ComputeError(format!(
                "a value of {other} cannot be hashed"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{
        BooleanArray, Date32Array, Decimal128Array, Int64Array, LargeBinaryArray, TimestampMicrosecondArray,
    };

    use super::*;

    /// By another implementation: `printf %s TEXT | openssl dgst -sha256 -hmac SECRET`.
    fn check(secret: &str, values: ArrayRef, expected: &[Option<&str>]) {
        let hashed = hash(&values, &HashKey::new(secret.as_bytes()).unwrap()).unwrap();
        assert_eq!(hashed.iter().collect::<Vec<_>>(), expected);
    }

    const SECRET: &str = "0123456789abcdef";
    #[test]
    fn hashes_are_those_of_openssl() {
        let mail = "87c8707b0c61806881347867c370e9f6bba71e47fb7aa89200288026b10d38de";
        let empty = "496dc93fa2d26eae500ec0bc37a122706b88f8963cebf0899d0245fae313e241";
        let umlauts = "f7e3fd3cfd6b15ca9c8c91bdfe0dd4bf7e008542c4b78ea4b5ac04274765fd86";
        let texts = StringArray::from(vec![Some("a@example.com"), None, Some(""), Some("Grüße")]);
        check(
            SECRET,
            Arc::new(texts),
            &[Some(mail), None, Some(empty), Some(umlauts)],
        );
        check(
            SECRET,
            Arc::new(LargeBinaryArray::from_vec(vec![b"\x00\xff", b"a@example.com"])),
            &[
                Some("d8fabb2fbd7078d2302e2c28f5eca4ecec7ae0b017ceca06a0c1724be619535c"),
                Some(mail),
            ],
        );
        check(
            SECRET,
            Arc::new(Int64Array::from(vec![-7])),
            &[Some(
                "dc36c4ce207858e5dbe272dce3ac510520f14d15a76a8d4809cd742adce47bbe",
            )],
        );
        let decimals = Decimal128Array::from(vec![1_420])
            .with_precision_and_scale(9, 2)
            .unwrap();
        check(
            SECRET,
            Arc::new(decimals),
            &[Some(
                "1de337e3686347360b6682b7204accc560d4b4400b40357b85bff672cf82487c",
            )],
        );
        check(
            SECRET,
            Arc::new(Date32Array::from(vec![17_486])),
            &[Some(
                "cad9f2327e2f923c0bf0a39a0d66ad33ab175aa8caf14f20179793134c5c5a2d",
            )],
        );
        let instants = TimestampMicrosecondArray::from(vec![1_510_871_468_123_456]).with_timezone("+00:00");
        check(
            SECRET,
            Arc::new(instants),
            &[Some(
                "a0b407626fb031b1350f7c7e8023b050b3b48e8d4c9290e91847fbc466b94e97",
            )],
        );
        check(
            SECRET,
            Arc::new(BooleanArray::from(vec![true])),
            &[Some(
                "d3af9eb57408b54bafc0bcbfe2fd11d315c8c29753e669ef720860cd8286bb1c",
            )],
        );
        // A secret that is longer than a block.
        check(
            &"k".repeat(100),
            Arc::new(StringArray::from(vec!["a@example.com"])),
            &[Some(
                "5819f3d898d98c335d304216fb69a621331f19009dea4928d97f7038c271404e",
            )],
        );
    }

    #[test]
    fn a_secret_is_long_enough_and_never_shown() {
        assert_eq!(
            HashKey::new(b"0123456789abcde").unwrap_err().kind(),
            ErrorKind::Invalid
        );
        assert_eq!(
            format!("{:?}", HashKey::new(SECRET.as_bytes()).unwrap()),
            "HashKey(…)"
        );
    }
}

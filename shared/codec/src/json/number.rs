use crate::fault::{Decoded, Fault};

#[cold]
pub(super) fn too_large(number: &str, room: impl std::fmt::Display) -> Box<Fault> {
    Fault::new(
        "json.number_out_of_range",
        format!("{} is beyond {room}", shortened(number)),
    )
}

/// A number for a message.
pub(super) fn shortened(number: &str) -> String {
    const SHOWN: usize = 40;
    match number.get(..SHOWN) {
        Some(start) if number.len() > SHOWN => format!("{start}…"),
        _ => number.to_owned(),
    }
}

/// The nearest double.
pub(super) fn double(text: &str) -> Decoded<f64> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(value),
        _ => Err(too_large(text, "a double")),
    }
}

/// The nearest float.
pub(super) fn float(text: &str) -> Decoded<f32> {
    match text.parse::<f32>() {
        Ok(value) if value.is_finite() => Ok(value),
        _ => Err(too_large(text, "a float")),
    }
}

//! Durations and ranges in scenario files: `30s`, `10m`, `1h30m`, `30m..4h`, `2..8`.

use serde::de::{Unexpected, Visitor};
use serde::{Deserialize, Deserializer};

use crate::rng::Rng;

const SECOND: i64 = 1_000_000;
const UNITS: [(&str, i64); 5] =
    [("ms", 1_000), ("s", SECOND), ("m", 60 * SECOND), ("h", 3_600 * SECOND), ("d", 86_400 * SECOND)];

/// A duration in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub i64);

/// A range with both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Between {
    /// The smallest value.
    pub low: i64,
    /// The largest value.
    pub high: i64,
}

/// A range of durations, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spans(pub Between);

/// A range of whole numbers, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers(pub Between);

impl Span {
    /// Parses a duration, as in `1h30m`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not a duration; write it as in 30s, 10m, 2h, 1h30m or 7d");
        let mut rest = text.trim();
        let mut micros = 0_i64;
        if rest.is_empty() {
            return Err(wrong());
        }
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
            let number: i64 = rest[..digits].parse().map_err(|_| wrong())?;
            rest = &rest[digits..];
            let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
            let (_, unit) = UNITS.iter().find(|(name, _)| *name == &rest[..letters]).ok_or_else(wrong)?;
            rest = &rest[letters..];
            micros = number.checked_mul(*unit).and_then(|part| micros.checked_add(part)).ok_or_else(wrong)?;
        }
        Ok(Self(micros))
    }
}

impl Between {
    /// A random value of the range.
    pub fn draw(self, rng: &mut Rng) -> i64 {
        if self.low == self.high { self.low } else { rng.range(self.low, self.high) }
    }

    fn parse(text: &str, parse: impl Fn(&str) -> Result<i64, String>) -> Result<Self, String> {
        let (low, high) = match text.split_once("..") {
            Some((low, high)) => (parse(low)?, parse(high)?),
            None => (parse(text)?, parse(text)?),
        };
        if low > high {
            Err(format!("{text:?} ends before it begins; write the smaller value first"))
        } else {
            Ok(Self { low, high })
        }
    }
}

fn number(text: &str) -> Result<i64, String> {
    let number = text.trim().parse().ok().filter(|number| (1..=100_000).contains(number));
    number.ok_or_else(|| format!("{text:?} is not a number from 1 to 100000; write it as in 4 or 2..8"))
}

/// Deserializes a string, or a number as a string, with a parser.
struct Text<T>(fn(&str) -> Result<T, String>);

impl<T> Visitor<'_> for Text<T> {
    type Value = T;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("text as in 30s, 10m or 2h")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<T, E> {
        (self.0)(text).map_err(E::custom)
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<T, E> {
        Err(E::invalid_value(Unexpected::Signed(number), &self))
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Text(Self::parse))
    }
}

impl<'de> Deserialize<'de> for Spans {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let parse = |text: &str| Between::parse(text, |text| Span::parse(text).map(|span| span.0)).map(Self);
        deserializer.deserialize_any(Text(parse))
    }
}

impl<'de> Deserialize<'de> for Numbers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Text(|text| Between::parse(text, number).map(Self)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        for (text, micros) in [
            ("30s", Some(30 * SECOND)),
            ("10m", Some(600 * SECOND)),
            ("1h30m", Some(5_400 * SECOND)),
            ("7d", Some(604_800 * SECOND)),
            ("250ms", Some(250_000)),
            ("0s", Some(0)),
            ("30", None),
            ("", None),
            ("h", None),
            ("1 h", None),
            ("-1h", None),
            ("99999999999d", None),
        ] {
            assert_eq!(Span::parse(text).ok().map(|span| span.0), micros, "{text}");
        }
    }

    #[test]
    fn ranges_have_the_smaller_value_first() {
        let spans = |text: &str| serde_json::from_value::<Spans>(text.into()).map(|spans| (spans.0.low, spans.0.high));
        assert_eq!(spans("1s..1m").unwrap(), (SECOND, 60 * SECOND));
        assert_eq!(spans("1m").unwrap(), (60 * SECOND, 60 * SECOND));
        assert!(spans("1m..1s").unwrap_err().to_string().contains("ends before it begins"));
        let numbers = serde_json::from_value::<Numbers>(8.into()).unwrap();
        assert_eq!(numbers.0, Between { low: 8, high: 8 });
        assert!(serde_json::from_value::<Numbers>(0.into()).is_err());
    }
}

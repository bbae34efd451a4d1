//! Intrinsic functors and comparisons. Integers are 64 bits wide and wrap around; division truncates.

use std::cmp::Ordering;

use regex_lite::Regex;

use crate::error::Fault;
use crate::values::{Type, Values};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Functor {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Power,
    Negate,
    BitAnd,
    BitOr,
    BitXor,
    BitNot,
    ShiftLeft,
    ShiftRight,
    ShiftRightUnsigned,
    And,
    Or,
    Xor,
    Not,
    Min,
    Max,
    Concatenate,
    Length,
    Substring,
    /// The number itself, a hash of a text, or the place of a record among the existing ones.
    Ordinal,
    ToNumber,
    ToUnsigned,
    ToFloat,
    ToText,
    /// The number of another type that has the same bits.
    AsInteger,
    AsFloat,
}

impl Functor {
    /// The functor that a plan calls by this name; `Concatenate` for `+` of symbols.
    pub fn named(name: &str, kind: &Type) -> Option<Self> {
        Some(match name {
            "+" if *kind == Type::Symbol => Functor::Concatenate,
            "+" => Functor::Add,
            "-" => Functor::Subtract,
            "*" => Functor::Multiply,
            "/" => Functor::Divide,
            "%" => Functor::Remainder,
            "^" => Functor::Power,
            "neg" => Functor::Negate,
            "band" => Functor::BitAnd,
            "bor" => Functor::BitOr,
            "bxor" => Functor::BitXor,
            "bnot" => Functor::BitNot,
            "bshl" => Functor::ShiftLeft,
            "bshr" => Functor::ShiftRight,
            "bshru" => Functor::ShiftRightUnsigned,
            "land" => Functor::And,
            "lor" => Functor::Or,
            "lxor" => Functor::Xor,
            "lnot" => Functor::Not,
            "min" => Functor::Min,
            "max" => Functor::Max,
            "cat" => Functor::Concatenate,
            "strlen" => Functor::Length,
            "substr" => Functor::Substring,
            "ord" => Functor::Ordinal,
            "to_number" => Functor::ToNumber,
            "to_unsigned" => Functor::ToUnsigned,
            "to_float" => Functor::ToFloat,
            "to_string" => Functor::ToText,
            "as_number" | "as_unsigned" => Functor::AsInteger,
            "as_float" => Functor::AsFloat,
            _ => return None,
        })
    }

    /// True for functors of any number of arguments, which are folded from the left.
    pub fn folds(self) -> bool {
        matches!(self, Functor::Min | Functor::Max | Functor::Concatenate)
    }

    /// How many of the first arguments are texts, where they are of type `kind`.
    pub fn texts(self, kind: &Type) -> usize {
        match self {
            Functor::Concatenate => 2,
            Functor::Length | Functor::Substring => 1,
            Functor::Min | Functor::Max if *kind == Type::Symbol => 2,
            Functor::Ordinal
            | Functor::ToNumber
            | Functor::ToUnsigned
            | Functor::ToFloat
            | Functor::ToText
                if *kind == Type::Symbol =>
            {
                1
            }
            _ => 0,
        }
    }

    /// The result for up to three arguments of type `kind` (unused ones are 0).
    pub fn apply(self, kind: &Type, args: [i64; 3], values: &mut Values) -> Result<i64, Fault> {
        let [a, b, _] = args;
        match (self, kind) {
            (Functor::Concatenate, _) => {
                let (left, right) = (values.text(a), values.text(b));
                values.room(left.len() + right.len())?;
                let mut text = String::new();
                text.try_reserve_exact(left.len() + right.len()).map_err(|_| Fault::OutOfMemory)?;
                text.push_str(left);
                text.push_str(right);
                Ok(values.symbol(&text))
            }
            (Functor::Length, _) => Ok(values.text(a).chars().count() as i64),
            (Functor::Substring, _) => Ok(substring(args, values)),
            (Functor::Ordinal, Type::Symbol) => Ok(values.ordinal(a)),
            (Functor::Min | Functor::Max, _) => {
                let order = values.compare(kind, &[], a, b);
                Ok(
                    if order == Ordering::Greater && self == Functor::Min
                        || order == Ordering::Less && self == Functor::Max
                    {
                        b
                    } else {
                        a
                    },
                )
            }
            (Functor::AsInteger, _) => Ok(a),
            (Functor::AsFloat, _) => Ok(float_word(float(a))),
            (Functor::ToNumber | Functor::ToUnsigned | Functor::ToFloat | Functor::ToText, _)
            | (Functor::Ordinal, _) => self.convert(kind, a, values),
            (_, Type::Float) => Ok(float_word(self.float(float(a), float(b)))),
            (_, Type::Unsigned) => self.unsigned(a as u64, b as u64).map(|value| value as i64),
            _ => self.number(a, b),
        }
    }

    fn number(self, a: i64, b: i64) -> Result<i64, Fault> {
        Ok(match self {
            Functor::Add => a.wrapping_add(b),
            Functor::Subtract => a.wrapping_sub(b),
            Functor::Multiply => a.wrapping_mul(b),
            Functor::Divide | Functor::Remainder if b == 0 => return Err(Fault::DivisionByZero),
            Functor::Divide => a.wrapping_div(b),
            Functor::Remainder => a.wrapping_rem(b),
            Functor::Power => power(a, b),
            Functor::Negate => a.wrapping_neg(),
            Functor::ShiftRight => a.wrapping_shr(b as u32),
            Functor::ShiftRightUnsigned => (a as u64).wrapping_shr(b as u32) as i64,
            _ => self.unsigned(a as u64, b as u64)? as i64,
        })
    }

    fn unsigned(self, a: u64, b: u64) -> Result<u64, Fault> {
        Ok(match self {
            Functor::Add => a.wrapping_add(b),
            Functor::Subtract => a.wrapping_sub(b),
            Functor::Multiply => a.wrapping_mul(b),
            Functor::Divide | Functor::Remainder if b == 0 => return Err(Fault::DivisionByZero),
            Functor::Divide => a / b,
            Functor::Remainder => a % b,
            Functor::Power => wrapping_power(a, b),
            Functor::Negate => a.wrapping_neg(),
            Functor::BitAnd => a & b,
            Functor::BitOr => a | b,
            Functor::BitXor => a ^ b,
            Functor::BitNot => !a,
            Functor::ShiftLeft => a.wrapping_shl(b as u32),
            Functor::ShiftRight | Functor::ShiftRightUnsigned => a.wrapping_shr(b as u32),
            Functor::And => u64::from(a != 0 && b != 0),
            Functor::Or => u64::from(a != 0 || b != 0),
            Functor::Xor => u64::from((a != 0) != (b != 0)),
            _ => u64::from(a == 0), // Not: the others do not come here
        })
    }

    fn float(self, a: f64, b: f64) -> f64 {
        match self {
            Functor::Add => a + b,
            Functor::Subtract => a - b,
            Functor::Multiply => a * b,
            Functor::Divide => a / b,
            Functor::Power => a.powf(b),
            _ => -a, // Negate: the others have no floats
        }
    }

    fn convert(self, kind: &Type, a: i64, values: &mut Values) -> Result<i64, Fault> {
        Ok(match (self, kind) {
            (Functor::ToText, Type::Number) => values.symbol(&a.to_string()),
            (Functor::ToText, Type::Unsigned) => values.symbol(&(a as u64).to_string()),
            (Functor::ToText, Type::Float) if float(a).is_nan() => values.symbol("nan"),
            (Functor::ToText, Type::Symbol) => a,
            (Functor::ToText, Type::Float) => values.symbol(&format!("{:.6}", float(a))),
            (Functor::ToUnsigned, Type::Symbol) => {
                let value = integer(values.text(a)).and_then(|value| u64::try_from(value).ok());
                value.ok_or(Fault::NotANumber("unsigned"))? as i64
            }
            (Functor::ToFloat, Type::Symbol) => {
                let text = values.text(a);
                let value = text.parse().map_err(|_| Fault::NotANumber("float"))?;
                float_word(value)
            }
            (_, Type::Symbol) => {
                let value = integer(values.text(a)).and_then(|value| i64::try_from(value).ok());
                value.ok_or(Fault::NotANumber("number"))?
            }
            (Functor::ToFloat, Type::Number) => float_word(a as f64),
            (Functor::ToFloat, Type::Unsigned) => float_word(a as u64 as f64),
            (Functor::ToUnsigned, Type::Float) => float(a) as u64 as i64,
            (Functor::ToNumber | Functor::Ordinal, Type::Float) => float(a) as i64,
            _ => a,
        })
    }
}

pub fn float(word: i64) -> f64 {
    f64::from_bits(word as u64)
}

/// The word of a float. There is one NaN, and two zeros, which comparisons take for equal.
pub fn float_word(value: f64) -> i64 {
    let value = if value.is_nan() { f64::NAN } else { value };
    value.to_bits() as i64
}

/// Whether two values of a type are equal to a rule.
fn same(kind: &Type, a: i64, b: i64) -> bool {
    a == b || *kind == Type::Float && float(a) == float(b)
}

/// An integer in decimal, hexadecimal (0x) or binary (0b) digits, with or without a sign.
fn integer(text: &str) -> Option<i128> {
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (1, text),
    };
    let (radix, digits) = match digits.get(..2) {
        Some("0x") => (16, &digits[2..]),
        Some("0b") => (2, &digits[2..]),
        _ => (10, digits),
    };
    let plain = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let value = i128::from_str_radix(digits, radix).ok().filter(|_| plain)?;
    Some(sign * value)
}

fn wrapping_power(mut base: u64, mut exponent: u64) -> u64 {
    let mut result = 1_u64;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = result.wrapping_mul(base);
        }
        base = base.wrapping_mul(base);
        exponent >>= 1;
    }
    result
}

/// With a negative exponent, the fraction is truncated to an integer.
fn power(base: i64, exponent: i64) -> i64 {
    match (base, exponent) {
        (_, 0..) => wrapping_power(base as u64, exponent as u64) as i64,
        (1, _) => 1,
        (-1, _) => 1 - 2 * (exponent & 1),
        _ => 0,
    }
}

/// `length` characters from `start`, all where it is negative; nothing where `start` is outside of the text.
fn substring([text, start, length]: [i64; 3], values: &mut Values) -> i64 {
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    let part: String = match usize::try_from(start) {
        Ok(start) => values.text(text).chars().skip(start).take(length).collect(),
        Err(_) => String::new(),
    };
    values.symbol(&part)
}

/// A comparison of two values of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    Equal,
    Unequal,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Contains,
    ContainsNot,
    Match,
    MatchesNot,
}

impl Comparison {
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "=" => Comparison::Equal,
            "!=" => Comparison::Unequal,
            "<" => Comparison::Less,
            "<=" => Comparison::LessEqual,
            ">" => Comparison::Greater,
            ">=" => Comparison::GreaterEqual,
            "contains" => Comparison::Contains,
            "!contains" => Comparison::ContainsNot,
            "match" => Comparison::Match,
            "!match" => Comparison::MatchesNot,
            _ => return None,
        })
    }

    pub fn holds(self, kind: &Type, a: i64, b: i64, values: &Values) -> bool {
        let order = || match kind {
            Type::Float => float(a).partial_cmp(&float(b)),
            _ => Some(values.compare(kind, &[], a, b)),
        };
        match self {
            Comparison::Equal => same(kind, a, b),
            Comparison::Unequal => !same(kind, a, b),
            Comparison::Less => order() == Some(Ordering::Less),
            Comparison::LessEqual => order().is_some_and(Ordering::is_le),
            Comparison::Greater => order() == Some(Ordering::Greater),
            Comparison::GreaterEqual => order().is_some_and(Ordering::is_ge),
            Comparison::Contains => values.text(b).contains(&**values.text(a)),
            Comparison::ContainsNot => !values.text(b).contains(&**values.text(a)),
            Comparison::Match => matches(values.text(a), values.text(b)) == Some(true),
            Comparison::MatchesNot => matches(values.text(a), values.text(b)) == Some(false),
        }
    }
}

/// Whether the pattern matches the whole text; None where it is no regular expression.
fn matches(pattern: &str, text: &str) -> Option<bool> {
    Regex::new(&format!("^(?:{pattern})$")).ok().map(|pattern| pattern.is_match(text))
}

//! Facts as lines of fields, as Soufflé reads and writes them. Columns have any type but records.

use std::borrow::Cow;

use crate::error::Fault;
use crate::machine::functor::{float, float_word};
use crate::relation::rows::{narrow, Rows};
use crate::values::{Type, Values};

/// Digits of a float: as many as tell any two apart.
const DIGITS: i32 = 17;

/// How fields are told apart.
#[derive(Clone, Copy)]
pub struct Format<'a> {
    pub delimiter: &'a str,
    /// Fields may be quoted as in RFC 4180.
    pub quoted: bool,
}

/// Append the facts of whole lines to `rows`. False if a line does not fit: it has too few fields, or one is no value
/// of its column, or goes on in the next line, or its brackets may hold delimiters. Fields after the last column are
/// ignored.
pub fn read(
    kinds: &[Type],
    format: Format,
    lines: &[u8],
    values: &mut Values,
    rows: &mut Rows,
) -> Result<bool, Fault> {
    let Ok(mut text) = std::str::from_utf8(lines) else { return Ok(false) };
    if !format.quoted && format.delimiter.contains(',') && text.contains(['[', ']']) {
        return Ok(false);
    }
    let mut tuple = vec![0; kinds.len()];
    while !text.is_empty() {
        let (line, rest) = split(text, "\n").unwrap_or((text, ""));
        text = rest;
        let mut fields = Some(line.strip_suffix('\r').unwrap_or(line));
        for (word, kind) in tuple.iter_mut().zip(kinds) {
            let Some((field, rest)) = fields.and_then(|left| next_field(left, format)) else {
                return Ok(false);
            };
            fields = rest;
            match value(kind, &field, values) {
                Some(value) => *word = value,
                None => return Ok(false),
            }
        }
        if rows.is_narrow() && !tuple.iter().all(|&word| narrow(word).is_some()) {
            rows.widen()?;
        }
        rows.push(&tuple)?;
    }
    Ok(true)
}

/// The first field, and the text of the others, if there are more. None if a quoted field does not end, or its end is
/// not that of the field.
#[inline]
fn next_field<'t>(text: &'t str, format: Format) -> Option<(Cow<'t, str>, Option<&'t str>)> {
    if format.quoted && text.starts_with('"') {
        return quoted_field(&text[1..], format.delimiter);
    }
    let (field, rest) =
        split(text, format.delimiter).map_or((text, None), |(field, rest)| (field, Some(rest)));
    Some((field.into(), rest))
}

fn quoted_field<'t>(text: &'t str, delimiter: &str) -> Option<(Cow<'t, str>, Option<&'t str>)> {
    let (mut end, mut doubled) = (text.find('"')?, false);
    while text[end + 1..].starts_with('"') {
        end += 2 + text[end + 2..].find('"')?;
        doubled = true;
    }
    let field = if doubled { text[..end].replace("\"\"", "\"").into() } else { text[..end].into() };
    match &text[end + 1..] {
        "" => Some((field, None)),
        rest => Some((field, Some(rest.strip_prefix(delimiter)?))),
    }
}

/// What is before and behind the first `separator`.
#[inline]
fn split<'t>(text: &'t str, separator: &str) -> Option<(&'t str, &'t str)> {
    match separator.as_bytes() {
        // For a few bytes this is faster than a search.
        &[byte] => {
            let at = text.as_bytes().iter().position(|&found| found == byte)?;
            Some((&text[..at], &text[at + 1..]))
        }
        _ => text.split_once(separator),
    }
}

/// The word of a field; None if it is no value of the type.
fn value(kind: &Type, field: &str, values: &mut Values) -> Option<i64> {
    let trimmed = || field.trim_start_matches([' ', '\t', '\n', '\x0b', '\x0c', '\r']);
    match kind {
        Type::Number => trimmed().parse().ok(),
        Type::Unsigned => {
            let digits = |prefix| field.strip_prefix(prefix).filter(|digits: &&str| !digits.starts_with('+'));
            let word = match (digits("0x"), digits("0b")) {
                (Some(digits), _) => u64::from_str_radix(digits, 16),
                (_, Some(digits)) => u64::from_str_radix(digits, 2),
                _ => trimmed().parse(),
            };
            word.ok().map(|word| word as i64)
        }
        Type::Float => trimmed().parse().ok().map(float_word),
        Type::Symbol => Some(values.symbol(field)),
        Type::Record(_) => None,
    }
}

/// Append the field of a value to `line`; symbols in quotes as in RFC 4180, if they are `quoted`.
pub fn write(kind: &Type, word: i64, values: &Values, quoted: bool, line: &mut Vec<u8>) {
    match kind {
        Type::Number => write_number(word < 0, word.unsigned_abs(), line),
        Type::Unsigned => write_number(false, word as u64, line),
        Type::Float => write_float(float(word), line),
        Type::Symbol if quoted => {
            line.push(b'"');
            line.extend_from_slice(values.text(word).replace('"', "\"\"").as_bytes());
            line.push(b'"');
        }
        Type::Symbol => line.extend_from_slice(values.text(word).as_bytes()),
        Type::Record(_) => {} // written by Python
    }
}

fn write_number(negative: bool, mut rest: u64, line: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if negative {
        line.push(b'-');
    }
    line.extend_from_slice(&digits[first..]);
}

/// As `%.17g` in C.
fn write_float(value: f64, line: &mut Vec<u8>) {
    if !value.is_finite() {
        let text = if value.is_nan() {
            "nan"
        } else if value > 0.0 {
            "inf"
        } else {
            "-inf"
        };
        return line.extend_from_slice(text.as_bytes());
    }
    let scientific = format!("{:.*e}", DIGITS as usize - 1, value.abs());
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let digits = digits.replace('.', "");
    let digits = digits.trim_end_matches('0');
    let digits = if digits.is_empty() { "0" } else { digits };
    let mut text = String::from(if value.is_sign_negative() { "-" } else { "" });
    if (-4..DIGITS).contains(&exponent) {
        // The point is behind so many digits; noughts are on both sides as needed.
        let point = usize::try_from(exponent + 1).unwrap_or(0);
        let (whole, fraction) = digits.split_at(point.min(digits.len()));
        text += if whole.is_empty() { "0" } else { whole };
        text.extend(std::iter::repeat_n('0', point - whole.len()));
        if !fraction.is_empty() {
            text.push('.');
            text.extend(std::iter::repeat_n('0', usize::try_from(-1 - exponent).unwrap_or(0)));
            text += fraction;
        }
    } else {
        let (first, others) = digits.split_at(1);
        text += first;
        if !others.is_empty() {
            text.push('.');
            text += others;
        }
        let sign = if exponent < 0 { '-' } else { '+' };
        text += &format!("e{sign}{:02}", exponent.abs());
    }
    line.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_words(kinds: &[Type], delimiter: &str, lines: &str) -> Option<Vec<i64>> {
        let mut rows = Rows::default();
        let format = Format { delimiter, quoted: delimiter == ";" };
        let fit = read(kinds, format, lines.as_bytes(), &mut Values::default(), &mut rows).unwrap();
        fit.then(|| (0..rows.len()).map(|at| rows.word(at)).collect())
    }

    #[test]
    fn numbers_of_any_size_are_read() {
        let two = [Type::Number, Type::Number];
        assert_eq!(read_words(&two, "\t", "1\t-2\r\n +3\t04\tmore"), Some(vec![1, -2, 3, 4]));
        assert_eq!(read_words(&two, "::", "1::9223372036854775807\n"), Some(vec![1, i64::MAX]));
        for misfit in ["1", "1\t", "1\tx", "1\t2 ", "1\t9223372036854775808", "1\t2\n\n", "1\t+-2"] {
            assert_eq!(read_words(&two, "\t", misfit), None, "{misfit:?}");
        }
    }

    #[test]
    fn unsigned_numbers_have_prefixes() {
        let words = read_words(&[Type::Unsigned], "\t", "0x1F\n0b101\n18446744073709551615\n");
        assert_eq!(words, Some(vec![31, 5, -1]));
        for misfit in ["-1", "0x", "0x+1", " 0x1", "18446744073709551616"] {
            assert_eq!(read_words(&[Type::Unsigned], "\t", misfit), None, "{misfit:?}");
        }
    }

    #[test]
    fn brackets_may_hold_commas() {
        assert_eq!(read_words(&[Type::Symbol], ",", "[a"), None);
        assert_eq!(read_words(&[Type::Symbol], "\t", "a\n\na\n"), Some(vec![0, 1, 0]));
    }

    #[test]
    fn quoted_fields_end_in_their_line() {
        let kinds = [Type::Number, Type::Symbol];
        let words = read_words(&kinds, ";", "1;\"a\"\"b\"\n\"2\";a\"\"b\n3;\"a;b\";x\r\n4;\"a;b\"\r\n5;\n");
        assert_eq!(words, Some(vec![1, 0, 2, 1, 3, 2, 4, 2, 5, 3]));
        for misfit in ["1;\"a\n\"\n", "1;\"a\"b\n", "1;\"a\"\"\n"] {
            assert_eq!(read_words(&kinds, ";", misfit), None, "{misfit:?}");
        }
    }

    #[test]
    fn floats_are_written_as_in_c() {
        let written = |value: f64| {
            let mut line = Vec::new();
            write_float(value, &mut line);
            String::from_utf8(line).unwrap()
        };
        let cases = [
            (0.0, "0"),
            (-0.0, "-0"),
            (-2.5, "-2.5"),
            (0.1, "0.10000000000000001"),
            (100.0, "100"),
            (1e16, "10000000000000000"),
            (1e17, "1e+17"),
            (0.0001, "0.0001"),
            (0.00001, "1.0000000000000001e-05"),
            (1e300, "1.0000000000000001e+300"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (f64::NAN, "nan"),
        ];
        for (value, expected) in cases {
            assert_eq!(written(value), expected);
        }
    }

    #[test]
    fn numbers_are_written_in_full() {
        let mut line = Vec::new();
        for (kind, word) in [(Type::Number, i64::MIN), (Type::Unsigned, -1), (Type::Number, 0)] {
            write(&kind, word, &Values::default(), false, &mut line);
            line.push(b' ');
        }
        assert_eq!(line, b"-9223372036854775808 18446744073709551615 0 ");
    }
}

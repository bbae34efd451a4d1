//! From the plan's JSON to rules that run.

pub(crate) mod clauses;
pub(crate) mod plan;
pub mod step;

use std::sync::Arc;

use serde_json::Value;

use crate::compile::step::{cut, emitted, patterns};
use crate::compile::step::{Aggregate, Expression, Function, Pattern, Register, RelationId, Rule, Step};
use crate::error::Error;
use crate::machine::functor::{float_word, Comparison, Functor};
use crate::machine::threads::is_plain;
use crate::relation::{IndexId, Version};
use crate::values::{Type, Values, NIL};

type Compiled<T> = Result<T, Error>;

fn unexpected<T>(what: &str, found: &Value) -> Compiled<T> {
    Err(Error::Plan(format!("expected {what}, found {found}")))
}

fn list<'a>(value: &'a Value, what: &str) -> Compiled<&'a [Value]> {
    value.as_array().map_or_else(|| unexpected(what, value), |items| Ok(items.as_slice()))
}

fn number(value: &Value) -> Compiled<usize> {
    value.as_u64().map_or_else(|| unexpected("an index", value), |n| Ok(n as usize))
}

fn text<'a>(value: &'a Value, what: &str) -> Compiled<&'a str> {
    value.as_str().map_or_else(|| unexpected(what, value), Ok)
}

fn register(value: &Value) -> Compiled<Register> {
    number(value).map(Register)
}

/// The type of an operation. Operations look at no fields, so that all record types are alike.
fn kind(value: &Value) -> Compiled<Type> {
    operation_type(text(value, "a type")?)
}

pub fn operation_type(name: &str) -> Compiled<Type> {
    Ok(match name {
        "number" => Type::Number,
        "unsigned" => Type::Unsigned,
        "float" => Type::Float,
        "symbol" => Type::Symbol,
        "record" => Type::Record(None),
        _ => return Err(Error::Plan(format!("unknown type {name}"))),
    })
}

/// The word of a constant.
fn constant(name: &str, value: &Value, values: &mut Values) -> Compiled<i64> {
    let word = match name {
        "number" => value.as_i64(),
        "unsigned" => value.as_u64().map(|n| n as i64),
        "float" => value.as_f64().map(float_word),
        "symbol" => value.as_str().map(|text| values.symbol(text)),
        _ => value.is_null().then_some(NIL),
    };
    word.map_or_else(|| unexpected(name, value), Ok)
}

fn version(value: &Value) -> Compiled<Version> {
    match value.as_str() {
        Some("all") => Ok(Version::All),
        Some("delta") => Ok(Version::Delta),
        Some("old") => Ok(Version::Old),
        _ => unexpected("a version", value),
    }
}

fn function(value: &Value) -> Compiled<Function> {
    match value.as_str() {
        Some("count") => Ok(Function::Count),
        Some("sum") => Ok(Function::Sum),
        Some("min") => Ok(Function::Min),
        Some("max") => Ok(Function::Max),
        Some("mean") => Ok(Function::Mean),
        _ => unexpected("an aggregate function", value),
    }
}

/// The columns that are free, and the registers that they are loaded into.
fn loads(value: &Value) -> Compiled<Box<[(usize, Register)]>> {
    let pairs = list(value, "free columns")?.iter().map(|pair| match list(pair, "a free column")? {
        [column, target] => Ok((number(column)?, register(target)?)),
        _ => unexpected("a free column", pair),
    });
    pairs.collect()
}

/// Compiles the rules of one plan. `index_on` makes an index of a relation on some columns.
pub struct Compiler<'a> {
    pub values: &'a mut Values,
    pub index_on: &'a mut dyn FnMut(RelationId, &[usize]) -> IndexId,
    pub registers: usize,
    /// Whether something asks for the ordinals of symbols.
    pub ordinals: bool,
}

impl Compiler<'_> {
    /// The rule of this number in the plan, with its joins in one of its orders; 0 is its own.
    pub fn rule(&mut self, rule: &plan::Rule, number: usize, order: usize) -> Compiled<Arc<Rule>> {
        self.registers = rule.registers;
        let steps = self.steps(&rule.steps)?;
        let args = self.expressions(&rule.args)?;
        let needs = steps.iter().filter_map(|step| match step {
            Step::Scan(pattern, _) | Step::Exists(pattern) => Some((pattern.relation, pattern.version)),
            _ => None,
        });
        let mut searches = Vec::new();
        patterns(&steps, true, &mut |pattern, _| {
            searches.extend(pattern.index.map(|index| (pattern.relation, pattern.version, index)));
        });
        let registers = self.registers;
        Ok(Arc::new(Rule {
            head: RelationId(rule.head),
            emit: emitted(&args, &steps),
            cut: cut(&args, &steps),
            plain: is_plain(&args, &steps),
            orders: (1..)
                .zip(&rule.orders)
                .map(|(i, order)| self.rule(order, number, i))
                .collect::<Compiled<_>>()?,
            searches: searches.into(),
            args,
            needs: needs.collect(),
            steps,
            registers,
            source: rule.source,
            number,
            order,
        }))
    }

    fn steps(&mut self, steps: &[Value]) -> Compiled<Box<[Step]>> {
        steps.iter().map(|step| self.step(step)).collect()
    }

    fn expressions(&mut self, expressions: &[Value]) -> Compiled<Box<[Expression]>> {
        expressions.iter().map(|expression| self.expression(expression)).collect()
    }

    pub fn expression(&mut self, value: &Value) -> Compiled<Expression> {
        let parts = list(value, "an expression")?;
        let Some((tag, rest)) = parts.split_first() else {
            return unexpected("an expression", value);
        };
        Ok(match (tag.as_str(), rest) {
            (Some("reg"), [index]) => Expression::Register(register(index)?),
            (Some("const"), [name, constant_value]) => {
                Expression::Word(constant(text(name, "a type")?, constant_value, self.values)?)
            }
            (Some("record"), fields) => Expression::Record(self.expressions(fields)?),
            (Some("call"), [name, kind_name, args @ ..]) => {
                let kind = kind(kind_name)?;
                let Some(functor) = Functor::named(text(name, "a functor")?, &kind) else {
                    return unexpected("a functor", name);
                };
                self.call(functor, kind, args)?
            }
            _ => return unexpected("an expression", value),
        })
    }

    fn call(&mut self, functor: Functor, kind: Type, args: &[Value]) -> Compiled<Expression> {
        let args = self.expressions(args)?.into_vec();
        self.ordinals |= functor == Functor::Ordinal && kind == Type::Symbol;
        if functor.folds() {
            let fold = |left, right| Expression::Call(functor, kind.clone(), Box::new([left, right]));
            return match args.into_iter().reduce(fold) {
                Some(folded) => Ok(folded),
                None => Err(Error::Plan("a functor without arguments".into())),
            };
        }
        if args.len() > 3 {
            return Err(Error::Plan("a functor with more than three arguments".into()));
        }
        Ok(Expression::Call(functor, kind, args.into()))
    }

    /// The columns that are bound, in ascending order, and the values that they are bound to.
    fn pattern(&mut self, relation: &Value, version: Version, bound: &Value) -> Compiled<Pattern> {
        let relation = RelationId(number(relation)?);
        let mut pairs = Vec::new();
        for pair in list(bound, "bound columns")? {
            match list(pair, "a bound column")? {
                [column, value] => pairs.push((number(column)?, self.expression(value)?)),
                _ => return unexpected("a bound column", pair),
            }
        }
        pairs.sort_by_key(|&(column, _)| column);
        let (columns, values): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        let keys = Register(self.registers);
        self.registers += columns.len();
        let index = (!columns.is_empty()).then(|| (self.index_on)(relation, &columns));
        Ok(Pattern { relation, version, index, values: values.into(), keys })
    }

    fn step(&mut self, value: &Value) -> Compiled<Step> {
        let parts = list(value, "a step")?;
        let Some((tag, rest)) = parts.split_first() else {
            return unexpected("a step", value);
        };
        Ok(match (tag.as_str(), rest) {
            (Some("scan"), [relation, version, bound, free]) => {
                let pattern = self.pattern(relation, self::version(version)?, bound)?;
                let loads = loads(free)?;
                if loads.is_empty() {
                    Step::Exists(pattern)
                } else {
                    Step::Scan(pattern, loads)
                }
            }
            (Some("absent"), [relation, bound]) => {
                Step::Absent(self.pattern(relation, Version::All, bound)?)
            }
            (Some("test"), [operator, kind_name, left, right]) => {
                let Some(comparison) = Comparison::named(text(operator, "an operator")?) else {
                    return unexpected("an operator", operator);
                };
                Step::Test(comparison, kind(kind_name)?, self.expression(left)?, self.expression(right)?)
            }
            (Some("let"), [target, expression]) => Step::Let(register(target)?, self.expression(expression)?),
            (Some("next"), [target]) => Step::Next(register(target)?),
            (Some("round"), [target]) => Step::Round(register(target)?),
            (Some("unpack"), [record, targets]) => {
                let targets = list(targets, "registers")?;
                let targets = targets.iter().map(|target| match target.as_i64() {
                    Some(-1) => Ok(None),
                    _ => register(target).map(Some),
                });
                Step::Unpack(self.expression(record)?, targets.collect::<Compiled<_>>()?)
            }
            (Some("range"), [target, kind_name, from, to, step]) => Step::Range(
                register(target)?,
                kind(kind_name)?,
                [self.expression(from)?, self.expression(to)?],
                if step.is_null() { None } else { Some(self.expression(step)?) },
            ),
            (Some("aggregate"), [target_register, name, kind_name, target, steps]) => {
                let function = function(name)?;
                let target = if target.is_null() { None } else { Some(self.expression(target)?) };
                let steps = self.steps(list(steps, "steps")?)?;
                let kind = kind(kind_name)?;
                Step::Aggregate(register(target_register)?, Aggregate { function, kind, target, steps })
            }
            _ => return unexpected("a step", value),
        })
    }
}

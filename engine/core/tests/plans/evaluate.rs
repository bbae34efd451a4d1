//! Programs as plans, and their results.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::common::{evaluate, program, relation, rule, tuples, LIMITS};
use datalog::budget::Limits;
use datalog::error::{Error, Fault};
use serde_json::json;

/// path(x, y) :- edge(x, y).  path(x, z) :- path(x, y), edge(y, z).
fn paths() -> std::sync::Arc<datalog::program::Program> {
    program(
        &[relation("edge", &["number", "number"]), relation("path", &["number", "number"])],
        &[
            rule(1, json!([["reg", 0], ["reg", 1]]), json!([["scan", 0, "all", [], [[0, 0], [1, 1]]]])),
            rule(
                1,
                json!([["reg", 0], ["reg", 2]]),
                json!([
                    ["scan", 1, "delta", [], [[0, 0], [1, 1]]],
                    ["scan", 0, "all", [[0, ["reg", 1]]], [[1, 2]]]
                ]),
            ),
        ],
        json!([{"relations": [1], "rules": [0], "recursive": [1]}]),
    )
}

#[test]
fn recursion_reaches_the_fixpoint_in_small_and_in_large_relations() {
    let paths = paths();
    for length in [3, 60] {
        let edges: Vec<[i64; 2]> = (0..length).map(|x| [x, (x + 1) % length]).collect();
        let facts: Vec<(&str, &[i64])> = edges.iter().map(|edge| ("edge", &edge[..])).collect();
        let database = evaluate(&paths, &facts, &LIMITS).unwrap();
        let all: Vec<Vec<i64>> = (0..length).flat_map(|x| (0..length).map(move |y| vec![x, y])).collect();
        assert_eq!(tuples(&paths, &database, "path"), all, "a cycle of {length}");
    }
}

#[test]
fn facts_of_a_derived_relation_take_part_in_recursion() {
    let paths = paths();
    let database = evaluate(&paths, &[("path", &[7, 1]), ("edge", &[1, 2])], &LIMITS).unwrap();
    assert_eq!(tuples(&paths, &database, "path"), [[1, 2], [7, 1], [7, 2]]);
}

#[test]
fn a_limit_on_tuples_or_time_names_the_rule() {
    let edges: Vec<[i64; 2]> = (0..400).map(|x| [x, (x + 1) % 400]).collect();
    let facts: Vec<(&str, &[i64])> = edges.iter().map(|edge| ("edge", &edge[..])).collect();
    let fault = |limits| match evaluate(&paths(), &facts, &limits) {
        Err(Error::Rule { place, fault, .. }) => (place, fault),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("no limit was reached"),
    };
    let few = Limits { tuples: 1000, ..LIMITS };
    assert_eq!(fault(few), ("rules.dl:7".to_string(), Fault::TooManyTuples(1000)));
    let slow = Limits { time: Some((Duration::ZERO, Instant::now())), ..LIMITS };
    assert_eq!(fault(slow).1, Fault::TooSlow(Duration::ZERO));
}

#[test]
fn ctrl_c_stops_an_evaluation() {
    let stop = Limits { interrupted: &|| true, ..LIMITS };
    assert_eq!(evaluate(&paths(), &[("edge", &[1, 2])], &stop).err(), Some(Error::Interrupted));
}

#[test]
fn absence_and_tests_filter() {
    // lonely(x) :- node(x), x > 1, !edge(x, _).
    let lonely = program(
        &[
            relation("node", &["number"]),
            relation("edge", &["number", "number"]),
            relation("lonely", &["number"]),
        ],
        &[rule(
            2,
            json!([["reg", 0]]),
            json!([
                ["scan", 0, "all", [], [[0, 0]]],
                ["test", ">", "number", ["reg", 0], ["const", "number", 1]],
                ["absent", 1, [[0, ["reg", 0]]]]
            ]),
        )],
        json!([{"relations": [2], "rules": [0]}]),
    );
    let facts: [(&str, &[i64]); 4] = [("node", &[1]), ("node", &[2]), ("node", &[3]), ("edge", &[3, 1])];
    let database = evaluate(&lonely, &facts, &LIMITS).unwrap();
    assert_eq!(tuples(&lonely, &database, "lonely"), [[2]]);
}

#[test]
fn aggregates_of_nothing_fail_or_are_zero() {
    // out(i, v) :- v = f y : { item(y) }, for each function f.
    let functions = ["count", "sum", "min", "max"];
    let rules: Vec<_> = functions
        .iter()
        .enumerate()
        .map(|(i, function)| {
            rule(
                1,
                json!([["const", "number", i], ["reg", 0]]),
                json!([["aggregate", 0, function, "number", ["reg", 1], [["scan", 0, "all", [], [[0, 1]]]]]]),
            )
        })
        .collect();
    let relations = [relation("item", &["number"]), relation("out", &["number", "number"])];
    let totals = program(&relations, &rules, json!([{"relations": [1], "rules": [0, 1, 2, 3]}]));
    let out = |facts: &[(&str, &[i64])]| tuples(&totals, &evaluate(&totals, facts, &LIMITS).unwrap(), "out");
    assert_eq!(out(&[("item", &[5]), ("item", &[-2])]), [[0, 2], [1, 3], [2, -2], [3, 5]]);
    assert_eq!(out(&[]), [[0, 0], [1, 0]]);
}

#[test]
fn arithmetic_wraps_and_truncates() {
    let call = |name: &str, a: i64, b: i64| {
        let args = json!([["call", name, "number", ["const", "number", a], ["const", "number", b]]]);
        let one = program(
            &[relation("out", &["number"])],
            &[rule(0, args, json!([]))],
            json!([{"relations": [0], "rules": [0]}]),
        );
        evaluate(&one, &[], &LIMITS).map(|database| tuples(&one, &database, "out")[0][0])
    };
    assert_eq!(call("+", i64::MAX, 1), Ok(i64::MIN));
    assert_eq!(call("/", -7, 2), Ok(-3));
    assert_eq!(call("%", -7, 2), Ok(-1));
    assert_eq!(call("/", i64::MIN, -1), Ok(i64::MIN));
    assert_eq!(call("^", 3, 4), Ok(81));
    assert_eq!(call("^", 2, -1), Ok(0));
    let place = "rules.dl:7".to_string();
    assert_eq!(call("/", 1, 0), Err(Error::Rule { place, fault: Fault::DivisionByZero, made: Vec::new() }));
}

#[test]
fn an_eqrel_is_closed() {
    // same(x, y) :- edge(x, y), where same is an equivalence; checked against reachability on random edges.
    let mut same = relation("same", &["number", "number"]);
    same["eqrel"] = json!(true);
    let closure = program(
        &[relation("edge", &["number", "number"]), same],
        &[rule(1, json!([["reg", 0], ["reg", 1]]), json!([["scan", 0, "all", [], [[0, 0], [1, 1]]]]))],
        json!([{"relations": [1], "rules": [0]}]),
    );
    let mut seed = 1_u64;
    let mut random = |bound: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        ((seed >> 33) % bound) as i64
    };
    for count in [1, 5, 12, 30] {
        let edges: Vec<[i64; 2]> = (0..count).map(|_| [random(20), random(20)]).collect();
        let facts: Vec<(&str, &[i64])> = edges.iter().map(|edge| ("edge", &edge[..])).collect();
        let mut pairs: BTreeSet<(i64, i64)> =
            edges.iter().flat_map(|&[x, y]| [(x, y), (y, x), (x, x), (y, y)]).collect();
        loop {
            let joined: Vec<_> = pairs
                .iter()
                .flat_map(|&(x, y)| pairs.iter().filter(move |pair| pair.0 == y).map(move |pair| (x, pair.1)))
                .filter(|pair| !pairs.contains(pair))
                .collect();
            if joined.is_empty() {
                break;
            }
            pairs.extend(joined);
        }
        let expected: Vec<Vec<i64>> = pairs.into_iter().map(|(x, y)| vec![x, y]).collect();
        let database = evaluate(&closure, &facts, &LIMITS).unwrap();
        assert_eq!(tuples(&closure, &database, "same"), expected);
    }
}

#[test]
fn records_are_equal_where_their_fields_are() {
    // list([1, nil]), twice.  head(x) :- list([x, _]).  head(x) :- list(l), [x, [_, _]] = [2, l].
    let cons = json!(["record", ["const", "number", 2], ["reg", 0]]);
    let lists = program(
        &[relation("list", &["record"]), relation("head", &["number"])],
        &[
            rule(0, json!([["record", ["const", "number", 1], ["const", "record", null]]]), json!([])),
            rule(0, json!([["record", ["const", "number", 1], ["const", "record", null]]]), json!([])),
            rule(
                1,
                json!([["reg", 1]]),
                json!([["scan", 0, "all", [], [[0, 0]]], ["unpack", ["reg", 0], [1, -1]]]),
            ),
            rule(
                1,
                json!([["reg", 2]]),
                json!([
                    ["scan", 0, "all", [], [[0, 0]]],
                    ["unpack", cons, [2, 3]],
                    ["unpack", ["reg", 3], [-1, -1]]
                ]),
            ),
        ],
        json!([{"relations": [0], "rules": [0, 1]}, {"relations": [1], "rules": [2, 3]}]),
    );
    let database = evaluate(&lists, &[], &LIMITS).unwrap();
    assert_eq!(tuples(&lists, &database, "list").len(), 1);
    assert_eq!(tuples(&lists, &database, "head"), [[1], [2]]);
}

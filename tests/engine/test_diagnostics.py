"""Every error that a program can have, with its whole message."""

# ruff: noqa: E501  (messages stand as they are read)

from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent

import pytest
import shardlog.engine
from shardlog.engine import DatalogError, load

# What is wrong, the program, and the message: both stand as they are read and written.
ERRORS = {
    "string that is not closed": (
        """
        .decl r(x:symbol)
        r("a).
        """,
        """
        t.dl:2:3: error[E0101]: this string is not closed
            r("a).
              ^
          hint: close it with " on the same line
        t.dl:2:7: error[E0102]: expected `,` or `)`, found the end of the file
            r("a).
                  ^
        """,
    ),
    "comment that is not closed": (
        "/* no end",
        """
        t.dl:1:1: error[E0101]: this comment is not closed
            /* no end
            ^
          hint: close it with */
        """,
    ),
    "casts": (
        """
        .type Pair = [a:number, b:number]
        .decl r(x:number, s:symbol, p:Pair, u:unsigned)
        r(1, as(1, symbol), nil, as(-1, unsigned)).
        r(as(p, number), as(x, symbol), as(s, Pair), as(1.5, unsigned)) :- r(x, s, p, _).
        """,
        """
        t.dl:3:9: error[E0301]: `1` is a number, but a symbol is expected here
            r(1, as(1, symbol), nil, as(-1, unsigned)).
                    ^
        t.dl:3:29: error[E0103]: -1 does not fit into an unsigned
            r(1, as(1, symbol), nil, as(-1, unsigned)).
                                        ^
        t.dl:4:3: error[E0301]: a record of type `Pair` cannot be used as a number
            r(as(p, number), as(x, symbol), as(s, Pair), as(1.5, unsigned)) :- r(x, s, p, _).
              ^
        t.dl:4:18: error[E0301]: a number cannot be used as a symbol
            r(as(p, number), as(x, symbol), as(s, Pair), as(1.5, unsigned)) :- r(x, s, p, _).
                             ^
        t.dl:4:33: error[E0301]: a symbol cannot be used as a record of type `Pair`
            r(as(p, number), as(x, symbol), as(s, Pair), as(1.5, unsigned)) :- r(x, s, p, _).
                                            ^
        t.dl:4:49: error[E0301]: `1.5` is a float, but an unsigned is expected here
            r(as(p, number), as(x, symbol), as(s, Pair), as(1.5, unsigned)) :- r(x, s, p, _).
                                                            ^
        """,
    ),
    "character that means nothing": (
        ".decl r(x:number) & .decl q(x:number)",
        """
        t.dl:1:19: error[E0101]: unexpected character `&`
            .decl r(x:number) & .decl q(x:number)
                              ^
        """,
    ),
    "unknown escape": (
        """
        .decl r(x:symbol)
        r("a\\qb").
        """,
        """
        t.dl:2:5: error[E0102]: unknown escape sequence `\\q`
            r("a\\qb").
                ^
          hint: write \\\\ for a backslash; known are \\" \\' \\\\ \\a \\b \\f \\n \\r \\t \\v
        """,
    ),
    "several syntax errors": (
        """
        .decl r(x:number)
        r(1)
        r(2).
        r(x) :- r(x), .
        r(x) :- r(x), x.
        r(count) :- r(x).
        """,
        """
        t.dl:2:5: error[E0102]: expected `:-` or `.` after the head, found `r`
            r(1)
                ^
        t.dl:4:15: error[E0102]: expected a term, found `.`
            r(x) :- r(x), .
                          ^
        t.dl:5:16: error[E0102]: expected a comparison after the variable `x`, found `.`
            r(x) :- r(x), x.
                           ^
        t.dl:6:8: error[E0102]: expected `:` and the body of the aggregate, found `)`
            r(count) :- r(x).
                   ^
        """,
    ),
    "reserved word": (
        """
        .decl r(x:number, max:number)
        r(1, 2).
        """,
        """
        t.dl:1:19: error[E0102]: expected the name of a column, found `max`
            .decl r(x:number, max:number)
                              ^
          hint: `max` is a reserved word
        """,
    ),
    "unknown directive": (
        ".outptu r",
        """
        t.dl:1:1: error[E0102]: unknown directive `.outptu`
            .outptu r
            ^
          hint: did you mean `output`?
        """,
    ),
    "unknown functor": (
        """
        .decl r(x:number)
        r(strln("a")).
        """,
        """
        t.dl:2:3: error[E0102]: `strln` is not a functor
            r(strln("a")).
              ^
          hint: did you mean `strlen`?
        """,
    ),
    "numbers that do not fit": (
        """
        .decl r(x:number)
        .decl u(x:unsigned)
        r(9223372036854775808).
        u(-1).
        r(99999999999999999999).
        """,
        """
        t.dl:3:3: error[E0103]: 9223372036854775808 does not fit into a number
            r(9223372036854775808).
              ^
        t.dl:4:3: error[E0103]: -1 does not fit into an unsigned
            u(-1).
              ^
        t.dl:5:3: error[E0103]: 99999999999999999999 does not fit into 64 bits
            r(99999999999999999999).
              ^
        """,
    ),
    "what is not supported yet": (
        """
        .decl p(x:number)
        .decl q(x:number)
        q(x) :- x = count : { q(1) ; q(2) }.
        """,
        """
        t.dl:3:13: error[E0104]: disjunctions in aggregates are not supported yet
            q(x) :- x = count : { q(1) ; q(2) }.
                        ^
        """,
    ),
    "lattices": (
        """
        .type N <: number
        .lattice N<> { Lub -> max(_, _), Lub -> min(_, _), Best -> 1 }
        .lattice Q<> { Glb -> cat(_, _), Bottom -> 1 }
        .decl r(n: N<>, x: number) eqrel
        .decl s(m: number<>)
        .decl t(x: number, n: N<>)
        t(x, a) <= t(x, b) :- a < b.
        """,
        """
        t.dl:2:34: error[E0202]: `Lub` is given twice
            .lattice N<> { Lub -> max(_, _), Lub -> min(_, _), Best -> 1 }
                                             ^
        t.dl:2:52: error[E0201]: unknown operator `Best` of a lattice
            .lattice N<> { Lub -> max(_, _), Lub -> min(_, _), Best -> 1 }
                                                               ^
          hint: it is one of Bottom, Top, Lub, Glb
        t.dl:3:10: error[E0201]: unknown type `Q`
            .lattice Q<> { Glb -> cat(_, _), Bottom -> 1 }
                     ^
        t.dl:3:10: error[E0303]: the lattice `Q<>` has no `Lub`
            .lattice Q<> { Glb -> cat(_, _), Bottom -> 1 }
                     ^
          hint: as in .lattice Q<> { Lub -> max(_, _) }
        t.dl:3:16: error[E0105]: `Glb` is a functor that is not supported here
            .lattice Q<> { Glb -> cat(_, _), Bottom -> 1 }
                           ^
          hint: it may be max(_, _), min(_, _), _ bor _ or _ band _
        t.dl:4:7: error[E0303]: `r` has lattices, and cannot be eqrel
            .decl r(n: N<>, x: number) eqrel
                  ^
        t.dl:4:17: error[E0303]: the column `x` follows a column of a lattice
            .decl r(n: N<>, x: number) eqrel
                            ^
        t.dl:5:9: error[E0201]: there is no lattice for the type `number`
            .decl s(m: number<>)
                    ^
        t.dl:7:1: error[E0303]: `t` has lattices, which already merge its tuples
            t(x, a) <= t(x, b) :- a < b.
            ^
        """,
    ),
    "lattices in rules": (
        """
        .type N <: number
        .lattice N<> { Lub -> max(_, _), Glb -> min(_, _), Bottom -> 0 }
        .decl r(x: number, n: N<>)
        .decl s(n: N)
        s(n) :- r(1, n), r(2, n), n > 5.
        s(n) :- r(n, m + 1).
        """,
        """
        t.dl:5:29: error[E0401]: `n` is the bound of what several atoms have: only the head may use it
            s(n) :- r(1, n), r(2, n), n > 5.
                                        ^
        t.dl:6:16: error[E0401]: this has no value with which that of the lattice could be compared
            s(n) :- r(n, m + 1).
                           ^
        """,
    ),
    "rules that deny too much of lattices": (
        """
        .type N <: number
        .lattice N<> { Lub -> max(_, _), Glb -> min(_, _), Bottom -> 0 }
        .decl r(x: number, n: N<>)
        .decl s(n: N)
        s(1) :- !r(1, 2), !r(1, 2), !r(1, 2), !r(1, 2), !r(1, 2), !r(1, 2), !r(1, 2), !r(1, 2), !r(1, 2), !r(1, 2), !r(1, 2), !r(1, 2), !r(1, 2), !r(1, 2).
        """,
        """
        t.dl:5:1: error[E0107]: this rule denies too much of lattices
            s(1) :- !r(1, 2), !r(1, 2), !r(1, 2), !r(1, 2), !r(1, 2), !r(1, 2), !r(1, 2), !r(1, 2), !r(1, 2), !r(1, 2), !r(1, 2), !r
            ^
          hint: give some of them a relation of their own
        """,
    ),
    "what needs code": (
        """
        .type N = Least {} | Of {x: number}
        .lattice N<> { Bottom -> $Least(), Lub -> @lub(_, _), Glb -> @glb(_, _) }
        .decl r(x: number, n: N<>)
        r(1, @f(2)).
        """,
        """
        t.dl:2:43: error[E0105]: user functors are not supported
            .lattice N<> { Bottom -> $Least(), Lub -> @lub(_, _), Glb -> @glb(_, _) }
                                                      ^
          hint: a bound may be max(_, _), min(_, _), _ bor _ or _ band _
        t.dl:4:6: error[E0105]: user functors are not supported
            r(1, @f(2)).
                 ^
          hint: a rule file never runs code; in Python Program(functors={...}) names functions
        """,
    ),
    "what notes no rounds": (
        """
        .decl r(x:number)
        .decl a = debug_delta(q)
        .decl b = debug_delta(r)
        .input b
        b(1, 2).
        .decl c = debug_delta(b)
        .decl i(x:number) inline
        i(x) :- x = 1.
        .decl d = debug_delta(i)
        r(recursive_iteration_cnt()).
        """,
        """
        t.dl:2:23: error[E0201]: unknown relation `q`
            .decl a = debug_delta(q)
                                  ^
        t.dl:4:8: error[E0303]: `b` has the tuples of `r`, and no others
            .input b
                   ^
        t.dl:5:1: error[E0303]: `b` has the tuples of `r`, and no others
            b(1, 2).
            ^
        t.dl:6:23: error[E0303]: `b` records the rounds of another relation, and has no rules
            .decl c = debug_delta(b)
                                  ^
        t.dl:9:23: error[E0206]: `i` is inlined, so it has no rounds
            .decl d = debug_delta(i)
                                  ^
        """,
    ),
    "what notes rounds is declared twice": (
        """
        .decl r(x:number)
        .decl d = debug_delta(r)
        .decl d = debug_delta(r)
        """,
        """
        t.dl:3:7: error[E0202]: the relation `d` is declared twice
            .decl d = debug_delta(r)
                  ^
          hint: it is declared first at t.dl:2
        """,
    ),
    "what depends on its own rounds": (
        """
        .decl r(x:number, n:number)
        .decl d = debug_delta(r)
        r(1, recursive_iteration_cnt()).
        r(x, 1) :- d(x, _, 3).
        r(x, 2) :- r(x, recursive_iteration_cnt()).
        """,
        """
        t.dl:2:23: error[E0403]: `r` depends on `d`, which notes its rounds
            .decl d = debug_delta(r)
                                  ^
        t.dl:3:6: error[E0301]: `recursive_iteration_cnt()` is an unsigned, but a number is expected here
            r(1, recursive_iteration_cnt()).
                 ^
        t.dl:3:6: error[E0406]: a fact counts nothing
            r(1, recursive_iteration_cnt()).
                 ^
          hint: write the number itself
        t.dl:5:17: error[E0301]: `recursive_iteration_cnt()` is an unsigned, but a number is expected here
            r(x, 2) :- r(x, recursive_iteration_cnt()).
                            ^
        """,
    ),
    "components": (
        """
        .comp A { .decl r(x:number) r(1). }
        .comp B : A { .override r r(2). }
        .comp C : C { }
        .init a = A<number>
        .init b = D
        .init A = A
        """,
        """
        t.dl:2:25: error[E0203]: `r` of `A` is not overridable
            .comp B : A { .override r r(2). }
                                    ^
          hint: declare it so: .decl r(...) overridable
        t.dl:3:7: error[E0203]: the component `C` is derived from itself
            .comp C : C { }
                  ^
        t.dl:4:7: error[E0302]: the component `A` has 0 parameters, not 1
            .init a = A<number>
                  ^
        t.dl:5:7: error[E0201]: unknown component `D`
            .init b = D
                  ^
        t.dl:6:7: error[E0202]: the name `A` is taken already
            .init A = A
                  ^
        """,
    ),
    "aggregates that need one another, plans and choices": (
        """
        .decl a(x:number, y:number)
        a(1, 2).
        .decl r(x:number)
        r(n) :- a(x, y), n = count : { a(x, u), v < 3 }, 1 = count : { a(v, y), u < 3 }.
        r(x) :- r(x), r(y), x < y.  .plan 0: (2, 1), 3: (1, 1)
        .decl p(x:number) choice-domain y
        """,
        """
        t.dl:4:22: error[E0405]: two aggregates of this rule each use a variable of the other
            r(n) :- a(x, y), n = count : { a(x, u), v < 3 }, 1 = count : { a(v, y), u < 3 }.
                                 ^
          hint: give the variables of one of them other names
        t.dl:4:41: error[E0401]: the variable `v` has no value: no positive atom of the body holds it
            r(n) :- a(x, y), n = count : { a(x, u), v < 3 }, 1 = count : { a(v, y), u < 3 }.
                                                    ^
        t.dl:4:54: error[E0405]: two aggregates of this rule each use a variable of the other
            r(n) :- a(x, y), n = count : { a(x, u), v < 3 }, 1 = count : { a(v, y), u < 3 }.
                                                                 ^
          hint: give the variables of one of them other names
        t.dl:4:73: error[E0401]: the variable `u` has no value: no positive atom of the body holds it
            r(n) :- a(x, y), n = count : { a(x, u), v < 3 }, 1 = count : { a(v, y), u < 3 }.
                                                                                    ^
        t.dl:5:46: error[E0102]: this is not an order of the rule's atoms
            r(x) :- r(x), r(y), x < y.  .plan 0: (2, 1), 3: (1, 1)
                                                         ^
          hint: once relations are inlined it has 2, which are numbered from 1 on
        t.dl:6:33: error[E0201]: `p` has no column `y`
            .decl p(x:number) choice-domain y
                                            ^
        """,
    ),
    "a counter in a fact": (
        """
        .decl r(x:number)
        r(autoinc() + 1).
        """,
        """
        t.dl:2:3: error[E0406]: a fact counts nothing
            r(autoinc() + 1).
              ^
          hint: write the number itself
        """,
    ),
    "counters and plans in recursion": (
        """
        .decl r(x:number, n:number)
        r(1, 1).
        r(x, $) :- r(x, _), x < 3.
        .decl s(x:number)
        s(x) :- r(x, _). .plan 0: (1)
        """,
        """
        t.dl:3:6: error[E0403]: a recursive rule cannot count: its solutions come round by round
            r(x, $) :- r(x, _), x < 3.
                 ^
        t.dl:5:24: error[E0102]: this rule has no version 0 to plan: it has none, for it is not recursive
            s(x) :- r(x, _). .plan 0: (1)
                                   ^
        """,
    ),
    "inlined relations": (
        """
        .decl a(x:number)
        a(1).
        .decl near(x:number, y:number) inline
        near(x, y) :- y = x + 1.
        near(x, y) :- a(z), y = x * z.
        .decl b(x:number) inline
        b(x) :- a(x), b(x).
        .decl r(x:number)
        r(x) :- a(x), !near(x, 2).
        r(x) :- a(x), !near(_, x).
        .output near
        """,
        """
        t.dl:3:7: error[E0206]: `near` is inlined, so that it is neither read nor written
            .decl near(x:number, y:number) inline
                  ^
          hint: `.output` or `inline`, not both
        t.dl:6:7: error[E0206]: these relations are inlined into one another: b
            .decl b(x:number) inline
                  ^
          hint: let one of them not be `inline`
        t.dl:9:15: error[E0206]: `near` is inlined, and a rule of it has more variables than its head: no negation
            r(x) :- a(x), !near(x, 2).
                          ^
          hint: let `near` not be `inline`
        t.dl:10:15: error[E0206]: `near` is inlined: where it is negated its arguments have names
            r(x) :- a(x), !near(_, x).
                          ^
        """,
    ),
    "algebraic data types": (
        """
        .type T = Leaf {} | Node {l:T, n:number} | Leaf {x:number}
        .decl r(t:T)
        r($Nod($Leaf(), 1)).
        r($Node(1)).
        r($Node(1, 1)).
        """,
        """
        t.dl:1:44: error[E0202]: the branch `Leaf` is declared twice
            .type T = Leaf {} | Node {l:T, n:number} | Leaf {x:number}
                                                       ^
        t.dl:3:3: error[E0201]: unknown branch `Nod`
            r($Nod($Leaf(), 1)).
              ^
          hint: did you mean `Node`?
        t.dl:4:3: error[E0302]: the branch `Node` has 2 fields, not 1
            r($Node(1)).
              ^
        t.dl:5:9: error[E0301]: `1` is a number, but a record of type `T` is expected here
            r($Node(1, 1)).
                    ^
        """,
    ),
    "what runs code": (
        """
        .functor f(x:number):number
        .decl r(x:number)
        r(@f(1)). r(@g(1)).
        """,
        """
        t.dl:1:1: error[E0105]: user functors are not supported
            .functor f(x:number):number
            ^
          hint: a rule file never runs code; in Python Program(functors={...}) names functions
        t.dl:3:13: error[E0105]: user functors are not supported
            r(@f(1)). r(@g(1)).
                        ^
          hint: a rule file never runs code; in Python Program(functors={...}) names functions
        """,
    ),
    "rules that are too large": (
        f"""
        .decl r(x:number)
        r({"(" * 1000}1{")" * 1000}).
        r(x) :- r(x), {", ".join(["(x = 1 ; x = 2)"] * 14)}.
        r({" + ".join(["1"] * 2000)}).
        """,
        f"""
        t.dl:2:103: error[E0107]: this rule is nested more than 100 levels deep
            {"(" * 120}
            {" " * 60}^
          hint: give parts of it a relation of their own
        t.dl:3:251: error[E0107]: the disjunctions of this rule have more than 10000 combinations
             ; x = 2), (x = 1 ; x = 2), (x = 1 ; x = 2), (x = 1 ; x = 2).
                                                                        ^
          hint: give some of them a relation of their own
        t.dl:4:1: error[E0107]: this rule is nested more than 100 levels deep
            r({" + ".join(["1"] * 30)}
            ^
          hint: give parts of it a relation of their own
        """,
    ),
    "file that is not there": (
        '.include "nowhere.dl"',
        """
        t.dl:1:10: error[E0106]: cannot read "nowhere.dl": No such file or directory
            .include "nowhere.dl"
                     ^
          hint: looked for nowhere.dl
        """,
    ),
    "unknown names": (
        """
        .type small <: numbr
        .decl maps(o:number, f:nubmer)
        .decl r(x:number)
        r(x) :- mapps(x, _), other(x).
        .output mapz
        r(as(x, symbl)) :- maps(x, _).
        """,
        """
        t.dl:1:16: error[E0201]: unknown type `numbr`
            .type small <: numbr
                           ^
          hint: did you mean `number`?
        t.dl:2:22: error[E0201]: unknown type `nubmer`
            .decl maps(o:number, f:nubmer)
                                 ^
          hint: did you mean `number`?
        t.dl:4:9: error[E0201]: unknown relation `mapps`
            r(x) :- mapps(x, _), other(x).
                    ^
          hint: did you mean `maps`?
        t.dl:4:22: error[E0201]: unknown relation `other`
            r(x) :- mapps(x, _), other(x).
                                 ^
          hint: declare it: .decl other(...)
        t.dl:5:9: error[E0201]: unknown relation `mapz`
            .output mapz
                    ^
          hint: did you mean `maps`?
        t.dl:6:3: error[E0201]: unknown type `symbl`
            r(as(x, symbl)) :- maps(x, _).
              ^
          hint: did you mean `symbol`?
        """,
    ),
    "columns of unknown types": (
        """
        .decl r(x:nubmer)
        r("a").
        .decl s(x:symbol)
        s(x) :- r(x), x < 2.
        s(y) :- r(x).
        """,
        """
        t.dl:1:9: error[E0201]: unknown type `nubmer`
            .decl r(x:nubmer)
                    ^
          hint: did you mean `number`?
        t.dl:5:3: error[E0401]: the variable `y` has no value: no positive atom of the body holds it
            s(y) :- r(x).
              ^
        """,
    ),
    "names declared twice": (
        """
        .type t <: number
        .type t <: symbol
        .decl r(x:number)
        .decl r(x:symbol)
        .decl t(x:number)
        """,
        """
        t.dl:2:7: error[E0202]: the type `t` is declared twice
            .type t <: symbol
                  ^
        t.dl:4:7: error[E0202]: the relation `r` is declared twice
            .decl r(x:symbol)
                  ^
          hint: it is declared first at t.dl:3
        t.dl:5:7: error[E0202]: `t` is a type already
            .decl t(x:number)
                  ^
          hint: give the relation another name
        """,
    ),
    "types that do not agree": (
        """
        .type pair = [a:number, b:number]
        .decl n(x:number)
        .decl s(x:symbol)
        .decl p(x:pair)
        n(x) :- s(x).
        n("one").
        n(x) :- n(x), s(y), x = y.
        n(x) :- n(x), x = 1.5.
        s(cat(x, "a")) :- n(x).
        n(strlen(x)) :- n(x).
        p(1).
        s(nil).
        p([1, "b"]).
        """,
        """
        t.dl:5:3: error[E0301]: `x` is a symbol, but a number is expected here
            n(x) :- s(x).
              ^
        t.dl:6:3: error[E0301]: `"one"` is a symbol, but a number is expected here
            n("one").
              ^
        t.dl:7:25: error[E0301]: `y` is a symbol, but a number is expected here
            n(x) :- n(x), s(y), x = y.
                                    ^
        t.dl:8:19: error[E0301]: `1.5` is a float, but a number is expected here
            n(x) :- n(x), x = 1.5.
                              ^
        t.dl:9:7: error[E0301]: `x` is a number, but a symbol is expected here
            s(cat(x, "a")) :- n(x).
                  ^
        t.dl:10:10: error[E0301]: `x` is a number, but a symbol is expected here
            n(strlen(x)) :- n(x).
                     ^
        t.dl:11:3: error[E0301]: `1` is a number, but a record of type `pair` is expected here
            p(1).
              ^
        t.dl:12:3: error[E0301]: `nil` is a record, but a symbol is expected here
            s(nil).
              ^
        t.dl:13:7: error[E0301]: `"b"` is a symbol, but a number is expected here
            p([1, "b"]).
                  ^
        """,
    ),
    "wrong number of arguments": (
        """
        .type pair = [a:number, b:number]
        .decl r(x:number, y:symbol)
        .decl one(x:number)
        .decl p(x:pair)
        r(1).
        one(x) :- one(x, _).
        p([1]).
        one(strlen("a", "b")).
        one(x) :- x = range(1).
        """,
        """
        t.dl:5:1: error[E0302]: `r` has 2 columns, not 1
            r(1).
            ^
          hint: it is declared as r(x:number, y:symbol)
        t.dl:6:11: error[E0302]: `one` has 1 column, not 2
            one(x) :- one(x, _).
                      ^
          hint: it is declared as one(x:number)
        t.dl:7:3: error[E0302]: a record of type `pair` has 2 fields, not 1
            p([1]).
              ^
        t.dl:8:5: error[E0302]: `strlen` takes 1 argument, not 2
            one(strlen("a", "b")).
                ^
        t.dl:9:15: error[E0302]: `range` takes 2 or 3 arguments, not 1
            one(x) :- x = range(1).
                          ^
        """,
    ),
    "functors that do not take a type": (
        """
        .decl f(x:float)
        .decl s(x:symbol)
        .decl n(x:number)
        f(x % 2) :- f(x).
        s(x - y) :- s(x), s(y).
        s(m) :- m = max x : { s(x) }.
        n(m) :- m = mean x : { n(x) }.
        .decl e(x:number, y:symbol) eqrel
        """,
        """
        t.dl:4:5: error[E0303]: `%` does not take a float
            f(x % 2) :- f(x).
                ^
          hint: it takes: number, unsigned
        t.dl:5:5: error[E0303]: `-` does not take a symbol
            s(x - y) :- s(x), s(y).
                ^
          hint: it takes: number, unsigned, float
        t.dl:6:13: error[E0303]: `max` does not take a symbol
            s(m) :- m = max x : { s(x) }.
                        ^
          hint: it takes: number, unsigned, float
        t.dl:6:23: error[E0403]: `s` depends on an aggregate over itself
            s(m) :- m = max x : { s(x) }.
                                  ^
          hint: break the cycle: compute one of them from relations that do not depend on it
        t.dl:7:13: error[E0301]: `mean` is a float, but a number is expected here
            n(m) :- m = mean x : { n(x) }.
                        ^
        t.dl:7:18: error[E0301]: `x` is a number, but a float is expected here
            n(m) :- m = mean x : { n(x) }.
                             ^
        t.dl:7:24: error[E0403]: `n` depends on an aggregate over itself
            n(m) :- m = mean x : { n(x) }.
                                   ^
          hint: break the cycle: compute one of them from relations that do not depend on it
        t.dl:8:7: error[E0303]: the eqrel `e` needs two columns of one type
            .decl e(x:number, y:symbol) eqrel
                  ^
        """,
    ),
    "types that mean nothing": (
        """
        .type a <: b
        .type b <: a
        .type u = number | symbol
        """,
        """
        t.dl:1:7: error[E0304]: the type `a` is defined by itself
            .type a <: b
                  ^
        t.dl:2:7: error[E0304]: the type `b` is defined by itself
            .type b <: a
                  ^
        t.dl:3:7: error[E0304]: the type `u` mixes `number` (a number) and `symbol` (a symbol)
            .type u = number | symbol
                  ^
        """,
    ),
    "record of unknown type": (
        """
        .decl n(x:number)
        n(x) :- n(x), y = [x], z = y.
        """,
        """
        t.dl:2:19: error[E0305]: the type of this record is not known
            n(x) :- n(x), y = [x], z = y.
                              ^
          hint: name it with as([...], type)
        """,
    ),
    "preprocessing": (
        """
        #define f(x) x
        .decl r(x:number)
        r(f(1, 2)).
        #if 1 +
        #endif
        #endif
        #ifdef A
        """,
        """
        t.dl:3:1: error[E0108]: the macro `f` takes 1 arguments, not 2
        t.dl:4:1: error[E0108]: this condition cannot be read
        t.dl:6:1: error[E0108]: `#endif` without `#if`
        t.dl:7:1: error[E0108]: an `#if` is not closed with `#endif`
        """,
    ),
    "unrelated subtypes": (
        """
        .type node <: number
        .type edge <: number
        .decl n(x:node)
        .decl e(x:edge)
        .decl r(x:number)
        n(x) :- e(x).
        n(x) :- r(x).
        r(x) :- n(x), e(x).
        r(x) :- n(x), e(y), x < y.
        n(m) :- m = max x : { e(x) }.
        """,
        """
        t.dl:6:3: error[E0306]: `x` is a `edge`, but a `node` is expected here
            n(x) :- e(x).
              ^
          hint: if it is one, say so: as(x, node)
        t.dl:7:3: error[E0306]: `x` is a `number`, but a `node` is expected here
            n(x) :- r(x).
              ^
          hint: if it is one, say so: as(x, node)
        t.dl:8:17: error[E0306]: `x` meets `node` and `edge`, which have no value in common
            r(x) :- n(x), e(x).
                            ^
        t.dl:9:25: error[E0306]: `y` meets `node` and `edge`, which have no value in common
            r(x) :- n(x), e(y), x < y.
                                    ^
        t.dl:10:3: error[E0306]: `m` is a `edge`, but a `node` is expected here
            n(m) :- m = max x : { e(x) }.
              ^
          hint: if it is one, say so: as(m, node)
        """,
    ),
    "variables without a value": (
        """
        .decl p(name:symbol, x:number)
        .decl r(x:number)
        r(y) :- p(_, x).
        r(x) :- p(name, x), !p(nmae, 1).
        r(x) :- p(_, x), y > x, y != 3.
        r(n) :- n = count : { p(_, x), x > z }.
        r(x + 1) :- p(_, x + 1).
        r(x) :- x = y, y = x.
        """,
        """
        t.dl:3:3: error[E0401]: the variable `y` has no value: no positive atom of the body holds it
            r(y) :- p(_, x).
              ^
        t.dl:4:24: error[E0401]: the variable `nmae` has no value: no positive atom of the body holds it
            r(x) :- p(name, x), !p(nmae, 1).
                                   ^
          hint: did you mean `name`?
        t.dl:5:18: error[E0401]: the variable `y` has no value: no positive atom of the body holds it
            r(x) :- p(_, x), y > x, y != 3.
                             ^
        t.dl:6:36: error[E0401]: the variable `z` has no value: no positive atom of the body holds it
            r(n) :- n = count : { p(_, x), x > z }.
                                               ^
        t.dl:7:3: error[E0401]: the variable `x` has no value: no positive atom of the body holds it
            r(x + 1) :- p(_, x + 1).
              ^
        t.dl:8:3: error[E0401]: the variable `x` has no value: no positive atom of the body holds it
            r(x) :- x = y, y = x.
              ^
        t.dl:8:13: error[E0401]: the variable `y` has no value: no positive atom of the body holds it
            r(x) :- x = y, y = x.
                        ^
        """,
    ),
    "unnamed variables that need a value": (
        """
        .decl r(x:number)
        r(_).
        r(x) :- r(x), x < _.
        r(x + _) :- r(x).
        """,
        """
        t.dl:2:3: error[E0402]: an unnamed variable `_` has no value here
            r(_).
              ^
        t.dl:3:19: error[E0402]: an unnamed variable `_` has no value here
            r(x) :- r(x), x < _.
                              ^
        t.dl:4:7: error[E0402]: an unnamed variable `_` has no value here
            r(x + _) :- r(x).
                  ^
        """,
    ),
    "negation and aggregates in a cycle": (
        """
        .decl p(x:number)
        .decl q(x:number)
        .decl r(x:number)
        p(x) :- q(x), !r(x).
        q(x) :- p(x).
        r(x) :- x = count : { q(_) }.
        """,
        """
        t.dl:4:15: error[E0403]: `p` depends on the negation of `r`, which depends on `p`: p -> r -> q -> p
            p(x) :- q(x), !r(x).
                          ^
          hint: break the cycle: compute one of them from relations that do not depend on it
        t.dl:6:23: error[E0403]: `r` depends on an aggregate over `q`, which depends on `r`: r -> q -> p -> r
            r(x) :- x = count : { q(_) }.
                                  ^
          hint: break the cycle: compute one of them from relations that do not depend on it
        """,
    ),
    "rules that are not about one key": (
        """
        .type sig <: number
        .decl op(s:sig, name:symbol)
        .decl n(x:number)
        .decl factor(s:sig, f:number)
        factor(1, 2).
        factor(s, 1) :- op(t, _), n(s).
        factor(s, 1) :- op(s, _), op(t, _).
        n(1) :- op(_, _).
        factor(s, s) :- op(s, _).
        factor(s, 1) :- op(s, _), n(x), x > s.
        factor(s, n) :- op(s, _), n = count : { op(t, _) }.
        factor(s, n) :- op(s, _), n = count : { op(s, _) }, !factor(s + 1, _).
        """,
        """
        t.dl:5:1: error[E0404]: this rule is not about one `sig`: `factor` is keyed, but no atom of its body is
            factor(1, 2).
            ^
          hint: every `sig` in the first column is the same variable, which is in no other place
        t.dl:6:8: error[E0306]: `s` is a `number`, but a `sig` is expected here
            factor(s, 1) :- op(t, _), n(s).
                   ^
          hint: if it is one, say so: as(s, sig)
        t.dl:6:20: error[E0404]: this rule is not about one `sig`: the key of `op` is `t`, that of `factor` is `s`
            factor(s, 1) :- op(t, _), n(s).
                               ^
          hint: every `sig` in the first column is the same variable, which is in no other place
        t.dl:7:30: error[E0404]: this rule is not about one `sig`: the key of `op` is `t`, that of `factor` is `s`
            factor(s, 1) :- op(s, _), op(t, _).
                                         ^
          hint: every `sig` in the first column is the same variable, which is in no other place
        t.dl:8:1: error[E0404]: this rule is not about one `sig`: `n` is not keyed, but `op` is
            n(1) :- op(_, _).
            ^
          hint: every `sig` in the first column is the same variable, which is in no other place
        t.dl:9:11: error[E0404]: this rule is not about one `sig`: its key `s` is used as a value
            factor(s, s) :- op(s, _).
                      ^
          hint: every `sig` in the first column is the same variable, which is in no other place
        t.dl:10:37: error[E0404]: this rule is not about one `sig`: its key `s` is used as a value
            factor(s, 1) :- op(s, _), n(x), x > s.
                                                ^
          hint: every `sig` in the first column is the same variable, which is in no other place
        t.dl:11:44: error[E0404]: this rule is not about one `sig`: the key of `op` is `t`, that of `factor` is `s`
            factor(s, n) :- op(s, _), n = count : { op(t, _) }.
                                                       ^
          hint: every `sig` in the first column is the same variable, which is in no other place
        t.dl:12:53: error[E0403]: `factor` depends on the negation of itself
            factor(s, n) :- op(s, _), n = count : { op(s, _) }, !factor(s + 1, _).
                                                                ^
          hint: break the cycle: compute one of them from relations that do not depend on it
        t.dl:12:63: error[E0404]: this rule is not about one `sig`: the key of `factor` is not a variable
            factor(s, n) :- op(s, _), n = count : { op(s, _) }, !factor(s + 1, _).
                                                                          ^
          hint: every `sig` in the first column is the same variable, which is in no other place
        """,
    ),
    "a word that its type does not have": (
        """
        .type colour <: symbol
        .decl domain(type: symbol, value: symbol)
        domain("colour", "green").
        domain("colour", "red").
        .decl painted(n: number, c: colour)
        painted(1, "grene").
        painted(2, c) :- painted(_, c), c != "blue", c != "green".
        """,
        """
        t.dl:6:12: error[E0307]: "grene" is not a `colour`
            painted(1, "grene").
                       ^
          hint: did you mean `green`? There are: "green", "red"
        t.dl:7:38: error[E0307]: "blue" is not a `colour`
            painted(2, c) :- painted(_, c), c != "blue", c != "green".
                                                 ^
          hint: there are: "green", "red"
        """,
    ),
}


def message(program: str, key: str | None = None) -> str:
    with pytest.raises(DatalogError) as error:
        load(key=key, texts={"t.dl": dedent(program).strip()})
    return str(error.value)


@pytest.mark.parametrize("name", ERRORS)
def test_message(name: str) -> None:
    program, expected = ERRORS[name]
    assert message(program, "sig" if "key" in name else None) == dedent(expected).strip()


def test_every_code_is_shown() -> None:
    """No error is without its example above."""
    sources = Path(shardlog.engine.__file__).parent.rglob("*.py")
    codes = {code for source in sources for code in re.findall(r'"(E\d{4})"', source.read_text())}
    assert codes == {
        code for _, expected in ERRORS.values() for code in re.findall(r"\[(E\d{4})\]", expected)
    }


def test_place_in_files(tmp_path: Path) -> None:
    """Errors name the file that they are in, also an included one; a file that is missing is an error."""
    (tmp_path / "part.dl").write_text("r(1, 2).\n")
    main = tmp_path / "main.dl"
    main.write_text('.decl r(x:number)\n.include "part.dl"\n\tr("a").\n')
    with pytest.raises(DatalogError) as error:
        load([main])
    places = [(d.file, d.line, d.column, d.code) for d in error.value.diagnostics]
    assert places == [(str(main), 3, 4, "E0301"), (str(tmp_path / "part.dl"), 1, 1, "E0302")]
    assert '    \tr("a").\n    \t  ^' in str(error.value)
    with pytest.raises(DatalogError, match=r"nowhere\.dl:1:1: error\[E0106\]: cannot read this file"):
        load([tmp_path / "nowhere.dl"])


def test_wrong_declaration_is_reported_once() -> None:
    """Uses of a relation whose declaration does not parse are no errors of their own."""
    assert message(".decl r(x number)\nr(1).\n.output r").count("error") == 1


def test_zeros_before_a_number_are_as_many_as_one_likes(tmp_path: Path) -> None:
    zeros = "0" * 16_000
    text = f".decl a(x: number)\n.output a\na({zeros}7). a(0xb1). a(0b101). a(0x{zeros}b).\n"
    file = tmp_path / "t.dl"
    file.write_text(text)
    program = load([file])
    assert program.evaluate({})["a"] == [(5,), (7,), (11,), (177,)]


def test_line_directives_say_where_lines_come_from(tmp_path: Path) -> None:
    """Errors of generated files name the file that they were generated from, also in an included file."""
    main, part = tmp_path / "main.dl", tmp_path / "part.dl"
    part.write_text('#line 7 "part.tmpl"\n.decl s(x:number)\ns(x).\n')
    main.write_text('#include "part.dl"\n# 20 "main.tmpl" 2\ns(y).\n#line 3\ns(__LINE__, __FILE__).\n')
    with pytest.raises(DatalogError) as error:
        load([main])
    places = [(Path(d.file).name, d.line, d.column) for d in error.value.diagnostics]
    assert places == [("main.tmpl", 20, 3), ("main.tmpl", 3, 1), ("part.tmpl", 8, 3)]


def test_line_directives_alone(tmp_path: Path) -> None:
    for text in ("#line 1\n", '#line 1 "gen.tmpl"\n', "# 1\n", "#define N 9\n#line N\n"):
        program = load(texts={"t.dl": f"{text}.decl r(x:number)\nr(1).\n.output r\n"})
        assert program.evaluate({}) == {"r": [(1,)]}
    with pytest.raises(
        DatalogError, match=r"t.dl:1:1: error\[E0108\]: expected a line, and a file in quotes"
    ):
        load(texts={"t.dl": "#line one\n.decl r(x:number)\n"})


MACROS = """\
#define COUNT(...) PICK(__VA_ARGS__, 3, 2, 1)
#define PICK(a, b, c, n, ...) n
#define JOIN(...) NAMED(COUNT(__VA_ARGS__))(__VA_ARGS__)
#define NAMED(n) PASTED(n)
#define PASTED(n) JOIN ## n
#define JOIN1(a) a
#define JOIN2(a, ...) cat(a, JOIN1(__VA_ARGS__))
#define JOIN3(a, ...) cat(a, JOIN2(__VA_ARGS__))
#define QUOTED(a, ...) #__VA_ARGS__
.decl r(x: symbol)
.output r
r(JOIN("a")). r(JOIN("b", "c")). r(JOIN("d", "e", "f")). r(QUOTED(1, (2, 3), 4)). r(QUOTED(1)).
"""


def test_macros_of_any_number_of_arguments() -> None:
    rows = load(texts={"t.dl": MACROS}).evaluate({})["r"]
    assert [row[0] for row in rows] == ["", "(2, 3), 4", "a", "bc", "def"]
    with pytest.raises(DatalogError, match=r"t\.dl:2:1: .* the macro `F` takes at least 2 arguments, not 1"):
        load(texts={"t.dl": "#define F(a, b, ...) a\nF(1)"})


def test_macros_hold_what_looks_like_a_comment() -> None:
    text = '#define URL "http://x/*y*/" // not this\n.decl r(x:symbol)\nr(URL).\n.output r\n'
    assert load(texts={"t.dl": text}).evaluate({}) == {"r": [("http://x/*y*/",)]}


def test_what_may_follow_from_a_missing_file_is_folded() -> None:
    text = """
        .include "nowhere.dl"
        .decl r(x:number, y:Node)
        r(x, y) :- s(x, y), t(x), !u(y), v(
        r(x, y) :- s(x, y), z = 1.
        """
    with pytest.raises(DatalogError) as error:
        load(texts={"t.dl": dedent(text).lstrip("\n")})
    first, second = error.value.diagnostics
    assert (first.line, first.code, second.line, second.code) == (1, "E0106", 4, "E0102")
    assert "not shown: 1 error that may follow from this" in first.hint


def test_functors_are_told_once_where_they_are_declared(tmp_path: Path) -> None:
    """Also where an included file begins with them: it is a file of rules."""
    (tmp_path / "part.dl").write_text(".functor f(x:number):number stateful\n.decl s(x:number)\n")
    main = tmp_path / "main.dl"
    main.write_text('#include "part.dl"\ns(@f(1)).\ns(@g(1)).\ns(@f(2)) :- s(@f(1)).\n')
    with pytest.raises(DatalogError) as error:
        load([main])
    reported = [(Path(d.file).name, d.line, d.code) for d in error.value.diagnostics]
    assert reported == [("main.dl", 3, "E0105"), ("part.dl", 1, "E0105")]


def test_an_included_file_of_something_else_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("secret words\n")
    main = tmp_path / "main.dl"
    main.write_text('#include "notes.txt"\n')
    with pytest.raises(DatalogError) as error:
        load([main])
    assert "is not a rule file" in str(error.value) and "secret" not in str(error.value)


def test_orders_of_joins_count_atoms_after_inlining() -> None:
    text = """
        .decl e(x:number, y:number)
        e(1, 2).
        .decl two(x:number, z:number) inline
        two(x, z) :- e(x, y), e(y, z).
        .decl r(x:number, y:number)
        r(x, y) :- e(x, y).
        r(x, z) :- r(x, y), two(y, z). .plan 0: (1, 2)
        .decl one(x:number, z:number) inline
        one(x, z) :- e(x, z).
        one(x, z) :- e(x, y), e(y, z).
        r(x, z) :- r(x, y), one(y, z). .plan 0: (2, 1)
        """
    with pytest.raises(DatalogError) as error:
        load(texts={"t.dl": dedent(text).lstrip("\n")})
    assert [(d.line, d.message, d.hint) for d in error.value.diagnostics] == [
        (
            line,
            "this is not an order of the rule's atoms",
            "once relations are inlined it has 3, which are numbered from 1 on",
        )
        for line in (7, 11)
    ]


def test_a_rule_that_is_left_out_takes_its_plan_with_it() -> None:
    text = """
        .functor f(x:number):number
        .decl r(x:number)
        r(x) :- r(y), x = @f(y).
          .plan 0: (1)
        r(1).
        """
    with pytest.raises(DatalogError) as error:
        load(texts={"t.dl": dedent(text).lstrip("\n")})
    assert [(d.line, d.code) for d in error.value.diagnostics] == [(1, "E0105")]


def test_files_that_begin_with_what_is_refused_are_files_of_rules(tmp_path: Path) -> None:
    """What is wrong in them is said, not that they are no files of rules."""
    (tmp_path / "one.dl").write_text("#ifndef ARCH\n#error say which\n#endif\n.decl r(x:number)\n")
    (tmp_path / "two.dl").write_text('#include "nowhere.dl"\n.decl s(x:number)\n')
    (tmp_path / "main.dl").write_text('#include "one.dl"\n#include "two.dl"\nr(1).\ns(1).\n')
    with pytest.raises(DatalogError) as error:
        load([tmp_path / "main.dl"])
    reported = [(Path(d.file).name, d.line, d.code) for d in error.value.diagnostics]
    assert reported == [("one.dl", 2, "E0108"), ("two.dl", 1, "E0106")]

"""``shardlog.jit`` beside ``jax.jit``: what one takes, returns, raises and keeps, the other does."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import partial, wraps
from inspect import Parameter, signature
from itertools import product
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import shardlog
from jax.experimental.layout import Format, Layout
from jax.sharding import NamedSharding

from .support.drawing import by_day
from .support.programs import P, mesh

OWN = {"devices", "partitioner", "options"}  # parameters that jax.jit has not
PAGE = Path(__file__).parents[1] / "docs" / "jit.md"
JITS: dict[str, Callable[..., Any]] = {
    "xla": shardlog.jit,
    "shardlog": partial(shardlog.jit, partitioner="shardlog"),
}


@pytest.fixture(params=JITS)
def jit(request: pytest.FixtureRequest) -> Callable[..., Any]:
    return JITS[request.param]


def sharding(*spec: Any) -> Any:
    return NamedSharding(mesh(), P(*spec))  # type: ignore[no-untyped-call]


def put(values: Any, *spec: Any) -> Any:
    return jax.device_put(jnp.asarray(values), sharding(*spec))


def rows() -> Any:
    return put(np.arange(128, dtype=np.float32).reshape(8, 16) / 100, "data")


def check_equal(ours: Any, theirs: Any) -> None:
    """Asserts that results are the same: values, types, and where and how they lie."""
    same: Any = jax.tree.structure(ours)
    assert same == jax.tree.structure(theirs)
    for mine, other in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-5, atol=1e-6)
        assert (mine.dtype, mine.weak_type) == (other.dtype, other.weak_type)
        assert (mine.sharding, mine.committed) == (other.sharding, other.committed)


def test_parameters_are_those_of_the_installed_jax() -> None:
    ours, theirs = signature(shardlog.jit).parameters, signature(jax.jit).parameters
    assert set(ours) - set(theirs) == OWN
    assert not set(theirs) - set(ours)
    for name, parameter in theirs.items():
        assert ours[name].kind is parameter.kind, name
        assert name in {"fun", "in_shardings", "out_shardings"} or ours[name].default == parameter.default
    assert ours["options"].kind is Parameter.VAR_KEYWORD


def test_the_page_has_a_row_for_all_of_jax_jit() -> None:
    rows = set(re.findall(r"^\| `\.?(\w+)", PAGE.read_text(), re.MULTILINE))
    methods = {name for name in dir(jax.jit(jnp.sin)) if not name.startswith("_")}
    assert {*signature(jax.jit).parameters, *methods, *OWN} <= rows


def test_names() -> None:
    def scaled(x: Any, factor: int = 2) -> Any:
        """Scales."""
        return x * factor

    ours, theirs = shardlog.jit(scaled), jax.jit(scaled)
    assert isinstance(ours, jax.stages.Wrapped)
    for name in ("__name__", "__qualname__", "__module__", "__doc__", "__wrapped__"):
        assert getattr(ours, name) == getattr(theirs, name)
    assert signature(ours) == signature(theirs)
    assert "jit_scaled" in ours.lower(jnp.ones(3)).as_text()


def test_what_wraps_a_function_has_methods_of_its_own() -> None:
    """Wrappers copy what stands in the object that they wrap."""
    inner = shardlog.jit(lambda x: x + 1)
    outer = wraps(inner)(lambda x: inner(x) * 2)
    for jit in (jax.jit, shardlog.jit):
        assert jit(outer).lower(1.0).compile()(1.0) == 4.0


Jit = Callable[..., Any]


def by_kind(x: Any, n: Any) -> Any:
    return x * (10 if n is True else 20 if isinstance(n, int) else 30)


def powers(x: Any, n: int = 1, *, shift: float = 0.0) -> Any:
    for _ in range(n):
        x = x * x
    return x + shift


def both(a: Any, b: Any) -> Any:
    return {"sum": a + b, "rest": (a, [b.T])}


class Layer:
    """Has methods that are compiled."""

    def __init__(self, factor: int) -> None:
        self.factor = factor

    def scaled(self, x: Any) -> Any:
        return x * self.factor


def static(jit: Jit) -> Any:
    f = jit(by_kind, static_argnums=1)
    return [f(rows(), n) for n in (1, True, 1.0, 1)]


def negative(jit: Jit) -> Any:
    return jit(powers, static_argnums=-1)(rows(), 3)


def named(jit: Jit) -> Any:
    f, x = jit(powers, static_argnames=("n", "shift")), rows()
    return [f(x), f(x, 2), f(x, n=2), f(x, 2, shift=1.0), f(shift=2.0, x=x)]


def numbered(jit: Jit) -> Any:
    f, x = jit(powers, static_argnums=[1], static_argnames="shift"), rows()
    return [f(x), f(x, 2), f(x, 2, shift=1.0), f(x, 3, shift=1.0)]


def decorators(jit: Jit) -> Any:
    @jit(static_argnames="n")  # type: ignore[untyped-decorator]
    def one(x: Any, n: int) -> Any:
        return powers(x, n)

    @partial(jit, static_argnums=1)
    def other(x: Any, n: int) -> Any:
        return powers(x, n)

    return one(rows(), n=2), other(rows(), 3), jit(partial(powers, n=2))(rows())


def methods(jit: Jit) -> Any:
    class Jitted(Layer):
        scaled = jit(Layer.scaled, static_argnums=0)

    return Jitted(2).scaled(rows()), Jitted(3).scaled(rows()), jit(Layer(4).scaled)(rows())


def trees(jit: Jit) -> Any:
    return jit(both)(rows(), b=rows()), jit(lambda p: {"none": None, "x": p["x"]})({"x": rows(), "no": None})


def normal_form(jit: Jit) -> Any:
    f = jit(jnp.sin)
    each = (("data",), ("data", None), (None, "model"), (("data", "model"),), (None, None), ())
    return [f(put(np.ones((8, 16)), *spec)) for spec in each]


def in_shardings(jit: Jit) -> Any:
    x = np.ones((8, 16), np.float32)
    one = jit(jnp.sin, in_shardings=sharding("data", None))(x)
    return one, jit(both, in_shardings=(sharding("data"), None))(x, rows())


def out_shardings(jit: Jit) -> Any:
    tree = {"sum": sharding("model", None), "rest": None}
    return jit(powers, out_shardings=sharding("model"))(rows()), jit(both, out_shardings=tree)(rows(), rows())


def formats(jit: Jit) -> Any:
    kind = Format(Layout((1, 0)), sharding("data"))
    formats = jit(jnp.sin, in_shardings=kind, out_shardings=kind)(jax.device_put(jnp.ones((8, 16)), kind))
    assert formats.format.layout.major_to_minor == (1, 0)
    return formats


def host_memory(jit: Jit) -> Any:
    host = sharding("data").with_memory_kind("pinned_host")
    return jit(lambda x: x, out_shardings=host)(jax.device_put(rows(), host))


def donated(jit: Jit) -> Any:
    each = [rows() for _ in range(6)]
    jit(powers, donate_argnums=0)(each[0])
    jit(both, donate_argnames="b")(each[1], each[2])
    jit(both, donate_argnums=(0, -1))(each[3], each[4])
    return [jnp.int32(x.is_deleted()) for x in each]


def unused(jit: Jit) -> Any:
    unused = jit(lambda x, y: x, keep_unused=True)
    text = unused.lower(rows(), rows()).as_text()
    return unused(rows(), rows()), jnp.int32(len(re.findall(r"%arg\d: ", text)))


def weak_types(jit: Jit) -> Any:
    f = jit(lambda x, y: (x * y, x + 1, y))
    return f(2, 3.0), f(jnp.ones(3), 2), f(np.float32(2), True), jit(lambda: 1)(), jit(lambda: jnp.ones(3))()


def wide(jit: Jit) -> Any:
    with jax.enable_x64(True):
        return jit(lambda x: (x + 1, jnp.arange(3)))(np.ones(3))


def devices(jit: Jit) -> Any:
    second = jax.devices()[1]
    return (
        jit(jnp.sin)(jax.device_put(jnp.ones(3), second)),
        jit(jnp.sin)(jnp.ones(3)),
        jit(jnp.sin)(np.ones(3)),
    )


def one_device(jit: Jit) -> Any:
    with pytest.warns(DeprecationWarning, match="backend and device"):
        f, g = jit(jnp.sin, device=jax.devices()[2]), jit(jnp.sin, backend="cpu")
    return f(np.ones(3)), g(np.ones(3))


def options(jit: Jit) -> Any:
    return jit(jnp.sin, compiler_options={"xla_cpu_enable_fast_math": True})(rows())


def keys(jit: Jit) -> Any:
    def f(key: Any, x: Any) -> Any:
        key, used = jax.random.split(key)
        return jax.random.key_data(key), x + jax.random.normal(used, x.shape)

    split = jit(jax.random.split)(jax.random.key(0))
    return jit(f)(jax.random.key(0), rows()), jax.random.key_data(split)


def nested(jit: Jit) -> Any:
    f = jit(powers, static_argnums=1)
    g = jit(lambda x: f(x, 2) + jax.jit(jnp.sin)(x))
    scan = jit(lambda x: jax.lax.scan(lambda c, _: (f(c, 1), c.sum()), x, None, 3))
    return g(rows()), jax.jit(g)(rows()), scan(rows()), jit(f, static_argnums=1)(rows(), 2)


def ahead(jit: Jit) -> Any:
    f, x = jit(both), rows()
    compiled = f.lower(x, x).compile()
    assert compiled.input_shardings[0][0].is_equivalent_to(x.sharding, 2)
    return compiled(x, x), f.trace(x, x).lower().compile()(x, x), f.lower(x, b=x).compile()(x, b=x)


def shapes(jit: Jit) -> Any:
    f, x = jit(both), rows()
    each = f.eval_shape(x, x), f.trace(x, x).out_info, jax.eval_shape(f, x, x), f.lower(x, x).out_info
    jaxpr = jax.make_jaxpr(lambda x: f(x, x))(x)
    return [[jnp.zeros(y.shape, y.dtype) for y in jax.tree.leaves(tree)] for tree in each], jnp.int32(
        [eqn.primitive.name for eqn in jaxpr.eqns] == ["jit"]
    )


def uncompiled(jit: Jit) -> Any:
    seen: list[bool] = []

    @jit
    def f(x: Any) -> Any:
        seen.append(isinstance(x, jax.core.Tracer))
        return x + 1

    with jax.disable_jit():
        x = f(rows())
    return x, f(rows()), jnp.asarray(seen)


def traced_once(jit: Jit) -> Any:
    """Once for a kind of arguments, and again where what JAX kept is cleared."""
    seen: list[int] = []

    @partial(jit, static_argnums=1)
    def f(x: Any, n: int) -> Any:
        seen.append(n)
        return x * n

    each = [f(rows(), 2), f(rows(), 2), f(rows(), 3), f(put(np.ones((8, 16), np.float32)), 3)]
    f.clear_cache()
    return each, f(rows(), 2), jnp.asarray(seen), jnp.int32(f._cache_size())


def effects(jit: Jit) -> Any:
    """Callbacks, in order or not, and arguments that are written to."""
    seen: list[float] = []

    def f(ref: Any, x: Any) -> Any:
        jax.debug.callback(lambda y: seen.append(float(y)), x.sum(), ordered=True)
        ref[...] = x
        return jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x)  # type: ignore[no-untyped-call]

    ref = jax.new_ref(jnp.zeros(3))
    effects = [jit(f)(ref, jnp.full(3, n)) for n in (1.0, 2.0)]
    jax.effects_barrier()  # type: ignore[no-untyped-call]
    return effects, ref[...], jnp.asarray(seen)


def closures(jit: Jit) -> Any:
    w, x = rows(), rows()
    return jit(lambda x: x + w)(x), jax.grad(lambda w: jit(lambda x: (x * w).sum())(x))(w)


def explicit(jit: Jit) -> Any:
    """Shardings in types, and a mesh around the calls."""
    kinds = (jax.sharding.AxisType.Explicit,) * 2
    with jax.set_mesh(jax.make_mesh((2, 4), ("data", "model"), axis_types=kinds)):
        x, w = (
            jax.device_put(np.ones((16, 16), np.float32), sharding(*spec).spec)
            for spec in (("data",), (None, "model"))
        )
        f = jit(lambda x, w: jnp.tanh(x @ w))
        explicit = f(x, w), jit(lambda x: 2 * x, out_shardings=sharding("model").spec)(x)
        return explicit, jax.grad(lambda w: f(x, w).sum())(w), jax.vmap(f, (0, None))(x, w)


def manual(jit: Jit) -> Any:
    """Inside and outside of `shard_map`, with derivatives."""
    part = jax.sharding.PartitionSpec("data")  # type: ignore[no-untyped-call]
    mapped = partial(jax.shard_map, mesh=mesh(), in_specs=part, out_specs=part)
    mean = mapped(jit(lambda x: x / jax.lax.psum(x.sum(), "data")))  # type: ignore[no-untyped-call]
    inside = mapped(jax.grad(lambda x: jit(jnp.sin)(x).sum()))
    return jit(mean)(rows()), mean(rows()), jax.grad(lambda x: mean(x).sum())(rows()), inside(rows())


def other_orders(jit: Jit) -> Any:
    """Devices in another order, and some of them."""
    other_orders = []
    for order in ([7, 6, 5, 4, 3, 2, 1, 0], [3, 1, 2, 0, 7, 6, 5, 4], [4, 5, 6, 7]):
        devices = np.array(jax.devices())[order].reshape(2, -1)
        placed = NamedSharding(jax.sharding.Mesh(devices, ("a", "b")), P("a", "b"))  # type: ignore[no-untyped-call]
        x = jax.device_put(np.arange(128, dtype=np.float32).reshape(8, 16), placed)
        other_orders.append(jit(lambda x: jnp.cumsum(x[::-1], 0) @ x.T)(x))
    return other_orders


CASES = [
    static, negative, named, numbered, decorators, methods, trees, normal_form, in_shardings, out_shardings,
    formats, host_memory, donated, unused, weak_types, wide, devices, one_device, options, keys, nested,
    ahead, shapes, uncompiled, traced_once, effects, closures, explicit, manual, other_orders,
]  # fmt: skip
# By day each case with one of the two.
IN_TURN = [([*JITS][number % 2], case) for number, case in enumerate(CASES)]


@pytest.mark.filterwarnings("ignore:Some donated buffers were not usable")
@pytest.mark.parametrize(("name", "case"), by_day(IN_TURN, product(JITS, CASES)))
def test_as_jax(name: str, case: Callable[[Jit], Any]) -> None:
    check_equal(case(JITS[name]), case(jax.jit))


def leak(jit: Jit) -> None:
    leaked: list[Any] = []
    jit(lambda x: [leaked.append(x)])(rows())  # type: ignore[func-returns-value]
    leaked[0] + 1


ERRORS: dict[str, Callable[[Jit], Any]] = {
    "no function": lambda jit: jit(3),
    "a generator": lambda jit: jit(lambda x: (yield x)),
    "unhashable": lambda jit: jit(powers, static_argnums=1)(rows(), [2]),
    "unhashable by name": lambda jit: jit(powers, static_argnames="n")(rows(), n=[2]),
    "too few arguments": lambda jit: jit(powers, static_argnums=5),
    "no such name": lambda jit: jit(powers, static_argnames="m"),
    "static and donated": lambda jit: jit(powers, static_argnums=0, donate_argnums=0),
    "not an array": lambda jit: jit(powers)("text"),
    "a truth value": lambda jit: jit(lambda x: x if x.sum() else 0)(rows()),
    "a leak": leak,
    "other devices": lambda jit: jit(jnp.add)(rows(), jax.device_put(np.ones(16), jax.devices()[0])),
    "another sharding": lambda jit: jit(jnp.sin, in_shardings=sharding("model"))(rows()),
    "a sharding that does not divide": lambda jit: jit(jnp.sin, in_shardings=sharding("data"))(np.ones(3)),
    "a rank too high": lambda jit: jit(jnp.sum, out_shardings=sharding("data"))(rows()),
    "keywords and shardings": lambda jit: jit(powers, in_shardings=sharding("data"))(x=rows()),
    "a spec without a mesh": lambda jit: jit(jnp.sin, in_shardings=sharding("data").spec)(rows()),
    "an option of XLA's": lambda jit: jit(jnp.sin, compiler_options={"xla_cpu_enable": 1})(rows()),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors_are_those_of_jax(jit: Jit, case: str) -> None:
    texts = []
    for each in (jit, jax.jit):
        with pytest.raises(Exception) as error:
            ERRORS[case](each)
        text = re.sub(r"0x[0-9a-f]+|id=\d+|\d+:\d+", "", str(error.value))
        texts.append((type(error.value), text))
    assert texts[0] == texts[1]


def test_equivalent_shardings_are_decided_once(jit: Jit, decisions: list[Any]) -> None:
    """As in a loop, whose results come back in JAX's normal form."""
    f, x = jit(lambda x: x * 2), put(np.ones((8, 16)), "data", None)
    for _ in range(3):
        x = f(x)
        assert x.sharding == jax.jit(jnp.sin)(x).sharding
    f(put(np.ones((8, 16)), "data"))
    assert len(decisions) == 1
    f(put(np.ones((8, 16)), "model"))
    assert len(decisions) == 2


def test_no_python_runs_in_a_call_like_one_before(jit: Jit) -> None:
    f = jit(lambda p: [x + 1 for x in p["leaves"]], donate_argnums=0)
    each = [{"leaves": [rows() for _ in range(40)]} for _ in range(3)]
    f(each[0])
    f(each[1])
    called: list[str] = []
    sys.setprofile(lambda frame, event, _: called.append(frame.f_code.co_name) if event == "call" else None)
    try:
        f(each[2])
    finally:
        sys.setprofile(None)
    assert called == []


def test_jax_jit_of_the_same_function_is_left_alone(decisions: list[Any]) -> None:
    def f(x: Any) -> Any:
        return x + 1

    both: list[Any] = [shardlog.jit(f), jax.jit(f)] * 2
    for each in both:
        each(rows())
        assert each._cache_size() == 1
    assert len(decisions) == 1


def test_a_mesh_that_jax_does_not_know(jit: Jit) -> None:
    f = jit(lambda x: x * 2, mesh="data=4", annotate={"x": P("data")})  # type: ignore[no-untyped-call]
    for x in (np.ones((8, 4), np.float32), jnp.ones((8, 4))):
        y = f(x)
        assert (y.sharding.spec, y.sharding.num_devices) == (P("data"), 4)  # type: ignore[no-untyped-call]
    last = jax.devices()[4:]
    y = jit(lambda x: x * 2, mesh="data=4", devices=last)(jnp.ones((8, 4)))
    assert y.sharding.device_set == set(last)


def test_what_is_lowered_can_be_asked(jit: Jit) -> None:
    f, x = jit(both), rows()
    for source in (f.lower(x, x), f.trace(x, x)):
        assert shardlog.run(source).result_shardings["sum"].spec == P("data", None)  # type: ignore[no-untyped-call]
    assert shardlog.run(f, x, x).result_shardings["sum"].spec == P("data", None)  # type: ignore[no-untyped-call]


def test_options() -> None:
    with pytest.raises(shardlog.ShardlogError, match="there is no option anotate"):
        shardlog.jit(powers, anotate="x")
    with pytest.raises(
        shardlog.ShardlogError, match=r"no option donate_argnum\n.*did you mean donate_argnums"
    ):
        shardlog.jit(powers, donate_argnum=0)
    with pytest.raises(shardlog.ShardlogError, match="there is no partitioner 'gspmd'"):
        shardlog.jit(powers, partitioner="gspmd")  # type: ignore[arg-type]
    with pytest.raises(shardlog.ShardlogError, match="topology applies only to shardlog's partitioner"):
        shardlog.jit(powers, topology="v5e")


def test_without_jax(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jax", None)
    monkeypatch.delitem(sys.modules, "shardlog.executing.dispatch", raising=False)
    with pytest.raises(shardlog.ShardlogError, match=r"JAX is not installed\n.*shardlog\[jax\]"):
        shardlog.jit(powers)

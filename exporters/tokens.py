"""Programs that take and give tokens, as programs that do not: tokens order effects, and are no data."""

from __future__ import annotations

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from ..program.mlir.modules import boundary_attributes, copy_of, main_function, symbols
from ..program.mlir.types import FunctionOp


def is_token(type_: ir.Type) -> bool:
    """Whether a value of this type is not data, but orders effects."""
    return bool(stablehlo.TokenType.isinstance(type_))


def without_tokens(module: ir.Module) -> ir.Module:
    """A module whose entry point takes and returns no tokens: it creates its own. Returns a copy, or the
    module itself if it has no tokens."""
    with module.context:
        functions = symbols(module, "func.func")
        name = main_function(functions)
        kind = functions[name].type
        if not any(map(is_token, [*kind.inputs, *kind.results])):
            return module
        copy = copy_of(module)
        _drop(symbols(copy, "func.func")[name])
    return copy


def _drop(main: FunctionOp) -> None:
    block, kind = main.regions[0].blocks[0], main.type
    inputs, results = ([not is_token(t) for t in types] for types in (kind.inputs, kind.results))
    kept = [
        ir.ArrayAttr.get([a for a, keep in zip(boundary_attributes(main, label), keeps, strict=True) if keep])
        for label, keeps in (("arg_attrs", inputs), ("res_attrs", results))
    ]
    with ir.Location.unknown():
        for argument in [a for a in block.arguments if is_token(a.type)]:
            token = stablehlo.CreateTokenOp(ip=ir.InsertionPoint.at_block_begin(block))
            argument.replace_all_uses_with(token.operation.results[0])
        for number in reversed([i for i, keep in enumerate(inputs) if not keep]):
            block.erase_argument(number)
        last = list(block.operations)[-1].operation
        values = [value for value, keep in zip(last.operands, results, strict=True) if keep]
        ir.Operation.create(last.name, operands=values, ip=ir.InsertionPoint(last), loc=last.location)
        last.erase()
        types = ([v.type for v in block.arguments], [v.type for v in values])
        main.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(*types))
        main.attributes["arg_attrs"], main.attributes["res_attrs"] = kept

"""CEL rules of a schema (`x-kubernetes-validations`), behind one small interface.

`RuleSet.errors(new, old)` walks an object with its schema and gives the field errors of failing rules. Evaluation
errors come back as values and become field errors, never exceptions. Each object below which rules stand is bound
once and all its rules are evaluated against that binding. Programs are compiled on first use and shared between equal
rules.

Kubernetes' semantics: transition rules (`oldSelf`) run only where a comparable old value exists, or always with
`optionalOldSelf`; rules without `oldSelf` do not run on parts that did not change (ratcheting); at the root, of
`metadata` only `name` and `generateName` can be seen.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import cast

from cel_expr_python import cel
from cel_expr_python.ext import ext_bindings, ext_encoders, ext_math, ext_optional, ext_strings

from quorate.local import cel_functions
from quorate.local.jsonvalue import Json, JsonObject, as_object, same
from quorate.local.status import ErrorType, FieldError, forbidden_field, invalid_value, required
from quorate.local.structural import MISSING, RESERVED, Missing, Rule, Structure, correlate_item, is_awkward

_MESSAGE_LIMIT = 5120
_IMMUTABLE = "self == oldSelf"
"""The most frequent rule; on what did not change it needs no evaluation."""


def escape(name: str) -> str:
    """A property name as CEL expressions write it (`x-y` as `x__dash__y`)."""
    if not is_awkward(name):
        return name
    if name in RESERVED:
        return f"__{name}__"
    escaped = name.replace("__", "__underscores__")
    return escaped.replace(".", "__dot__").replace("-", "__dash__").replace("/", "__slash__")


_CEL_TYPES = {"string": cel.Type.STRING, "integer": cel.Type.INT, "number": cel.Type.DOUBLE, "boolean": cel.Type.BOOL}


def _cel_type(structure: Structure) -> cel.Type:
    if structure.int_or_string or structure.nullable:
        return cel.Type.DYN
    if structure.type == "object":
        return cel.Type.Map(cel.Type.STRING, cel.Type.DYN)
    if structure.type == "array" and structure.items is not None:
        return cel.Type.List(_cel_type(structure.items))
    return _CEL_TYPES.get(structure.type, cel.Type.DYN)


@dataclass(frozen=True)
class _Scope:
    """A CEL environment and the programs compiled in it."""

    env: cel.Env
    programs: dict[str, cel.Expression | str]

    def program(self, expression: str) -> cel.Expression | str:
        """The program, or why it does not compile."""
        found = self.programs.get(expression)
        if found is None:
            try:
                found = self.env.compile(expression)
            except RuntimeError as error:
                found = str(error).removesuffix(" [INVALID_ARGUMENT]")
            self.programs[expression] = found
        return found


_SCOPES: dict[str, _Scope] = {}


def _scope(self_type: cel.Type, *, optional: bool) -> _Scope:
    """Environments are shared: a process has many schemas but few types of `self`."""
    key = f"{self_type} {optional}"
    found = _SCOPES.get(key)
    if found is None:
        variables = {"self": self_type, "oldSelf": self_type}
        if optional:
            # `oldSelf` is an optional there; it is bound inside the expression because bindings cannot carry one.
            variables = {"self": self_type, "oldSelf_value": self_type, "oldSelf_given": cel.Type.BOOL}
        extensions = [
            ext_strings.ExtStrings(),
            ext_optional.ExtOptional(),
            ext_math.ExtMath(),
            ext_bindings.ExtBindings(),
            ext_encoders.ExtEncoders(),
        ]
        env = cel.NewEnv(variables=variables, extensions=extensions, functions=_functions())
        found = _SCOPES[key] = _Scope(env, {})
    return found


@lru_cache(maxsize=4096)
def _scope_of(structure: Structure, *, optional: bool) -> _Scope:
    return _scope(_cel_type(structure), optional=optional)


@lru_cache(maxsize=1)
def _functions() -> list[cel.FunctionDecl]:
    return cel_functions.functions()


def _wrapped(rule: Rule, expression: str) -> str:
    if not rule.optional_old_self:
        return expression
    old = "oldSelf_given ? optional.of(oldSelf_value) : optional.none()"
    return f"cel.bind(oldSelf, {old}, {expression})"


class RuleSet:
    """All rules of one schema."""

    def __init__(self, structure: Structure) -> None:
        self._root = structure

    def compile_errors(self) -> list[FieldError]:
        """Rules that do not compile, with their place in the schema."""
        found: list[FieldError] = []
        _compile_all(self._root, "openAPIV3Schema", found)
        return found

    def errors(self, new: JsonObject, old: JsonObject | None = None) -> list[FieldError]:
        """What the rules say about `new`; `old` is the stored object on updates."""
        if not self._root.rules and not self._root.rules_below:
            return []
        found: list[FieldError] = []
        before: Json | Missing = MISSING if old is None else _root_view(old)
        _walk(_Visit(self._root, "", before, unchanged=False), _root_view(new), found)
        return found


def _compile_all(node: Structure, path: str, found: list[FieldError]) -> None:
    for index, rule in enumerate(node.rules):
        scope = _scope_of(node, optional=rule.optional_old_self)
        where = f"{path}.x-kubernetes-validations[{index}]"
        for name, expression in (("rule", rule.rule), ("messageExpression", rule.message_expression)):
            program = scope.program(_wrapped(rule, expression)) if expression else None
            if isinstance(program, str):
                found.append(invalid_value(f"{where}.{name}", expression, f"compilation failed: {program}"))
    for key, child in node.properties.items():
        _compile_all(child, f"{path}.properties[{key}]", found)
    if node.additional is not None:
        _compile_all(node.additional, f"{path}.additionalProperties", found)
    if node.items is not None:
        _compile_all(node.items, f"{path}.items", found)


def _root_view(obj: JsonObject) -> JsonObject:
    metadata = as_object(obj.get("metadata"))
    visible: JsonObject = {key: metadata[key] for key in ("name", "generateName") if key in metadata}
    return {**obj, "metadata": visible}


@dataclass(frozen=True)
class _Visit:
    structure: Structure
    path: str
    old: Json | Missing
    unchanged: bool
    """The nearest comparable part around this one equals its old self."""


def _walk(visit: _Visit, value: Json, found: list[FieldError]) -> None:
    if value is None:
        return
    node, old = visit.structure, visit.old
    unchanged = visit.unchanged or (not isinstance(old, Missing) and same(value, old))
    if unchanged and not node.transitions:
        return
    if node.rules:
        _evaluate(_Visit(node, visit.path, old, unchanged), value, found)
    if not node.rules_below:
        return
    if isinstance(value, dict):
        for key, each in value.items():
            child = node.child(key)
            if child is None or not (child.rules or child.rules_below):
                continue
            before = old.get(key, MISSING) if isinstance(old, dict) else MISSING
            below = f"{visit.path}.{key}" if visit.path else key
            if key not in node.properties:
                below = f"{visit.path}[{key}]"
            _walk(_Visit(child, below, before, unchanged), each, found)
    elif isinstance(value, list) and node.items is not None:
        for index, each in enumerate(value):
            before = correlate_item(each, old, node) if isinstance(old, list) else MISSING
            _walk(_Visit(node.items, f"{visit.path}[{index}]", before, unchanged), each, found)


def _evaluate(visit: _Visit, value: Json, found: list[FieldError]) -> None:
    """All rules of one part of the object, against one binding per kind of rule."""
    node = visit.structure
    bound: dict[bool, cel.Activation] = {}
    for rule in node.rules:
        if rule.uses_old_self:
            if isinstance(visit.old, Missing) and not rule.optional_old_self:
                continue
            if visit.unchanged and rule.rule == _IMMUTABLE:
                continue
        elif visit.unchanged:
            continue
        optional = rule.optional_old_self
        scope = _scope_of(node, optional=optional)
        if optional not in bound:
            bound[optional] = scope.env.Activation(_bindings(visit, value, optional=optional))
        error = _failure(rule, scope, bound[optional], visit, value)
        if error is not None:
            found.append(error)


def _bindings(visit: _Visit, value: Json, *, optional: bool) -> dict[str, Json]:
    current = _escaped(value, visit.structure)
    given = not isinstance(visit.old, Missing)
    old = None if isinstance(visit.old, Missing) else _escaped(visit.old, visit.structure)
    if optional:
        return {"self": current, "oldSelf_value": old if given else current, "oldSelf_given": given}
    return {"self": current, "oldSelf": old} if given else {"self": current}


def shown_value(value: Json) -> Json:
    """The value that the refusal prints: scalars as they are, nothing of objects and lists."""
    return None if isinstance(value, dict | list) else value


def _failure(rule: Rule, scope: _Scope, activation: cel.Activation, visit: _Visit, value: Json) -> FieldError | None:
    kind = visit.structure.type
    program = scope.program(_wrapped(rule, rule.rule))
    if isinstance(program, str):
        return invalid_value(visit.path, kind, f"rule compile error: {program}")
    result = program.eval(activation)
    if result.type() == cel.Type.ERROR:
        return invalid_value(visit.path, kind, _error_text(str(result.value()), rule))
    if result.value() is True:
        return None
    message = _message(rule, scope, activation)
    path = f"{visit.path}{rule.field_path}" if visit.path else rule.field_path.removeprefix(".")
    return _with_reason(rule.reason, path if rule.field_path else visit.path, shown_value(value), message)


def _error_text(error: str, rule: Rule) -> str:
    shown = rule.message or rule.rule
    text = re.sub(r"^[A-Z_]+: ", "", error)
    if "No matching overloads found" in text:
        signature = "call arguments did not match a supported operator, function or macro signature for rule"
        return f"'no such overload: {text.rpartition(' : ')[2]}': {signature}: {shown}"
    if text == "divide by zero":
        text = "division by zero"
    missing = re.fullmatch(r'Key not found in map : "(.*)"', text)
    if missing is not None:
        text = f"no such key: {missing.group(1)}"
    return f"{text} evaluating rule: {shown}"


def _message(rule: Rule, scope: _Scope, activation: cel.Activation) -> str:
    default = rule.message or f"failed rule: {rule.rule}"
    if not rule.message_expression:
        return default
    program = scope.program(_wrapped(rule, rule.message_expression))
    if isinstance(program, str):
        return default
    result = program.eval(activation)
    text = cast("object", result.value())
    if result.type() != cel.Type.STRING or not isinstance(text, str):
        return default
    text = text.strip()
    return text if text and "\n" not in text and len(text) <= _MESSAGE_LIMIT else default


def _with_reason(reason: str, path: str, value: Json, message: str) -> FieldError:
    match reason:
        case "FieldValueForbidden":
            return forbidden_field(path, message)
        case "FieldValueRequired":
            return required(path, message)
        case "FieldValueDuplicate":
            return FieldError(ErrorType.DUPLICATE, path, value, shows_value=value is not None)
        case _:
            return FieldError(ErrorType.INVALID, path, value, message, shows_value=value is not None)


def _escaped(value: Json, structure: Structure) -> Json:
    """The value with property names as expressions write them; the value itself where no name needs it."""
    if not structure.awkward_names:
        return value
    if isinstance(value, dict):
        changed: JsonObject | None = None
        for key, each in value.items():
            child = structure.child(key)
            if child is None:
                continue
            name = escape(key) if key in structure.properties else key
            below = _escaped(each, child)
            if name != key or below is not each:
                changed = dict(value) if changed is None else changed
                changed.pop(key, None)
                changed[name] = below
        return value if changed is None else changed
    if isinstance(value, list) and structure.items is not None:
        item = structure.items
        items = [_escaped(each, item) for each in value]
        return value if all(a is b for a, b in zip(items, value, strict=True)) else items
    return value

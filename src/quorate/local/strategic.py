"""Strategic merge patch for built-in kinds, driven by the merge keys in their schemas.

Lists merge by key or as sets where the schema says so (`conditions` by type, `finalizers`, `ownerReferences` by uid)
and are replaced otherwise (`taints`). Directives: `$patch` (delete, replace, merge), `$retainKeys`,
`$deleteFromPrimitiveList/…`, `$setElementOrder/…`.
"""

from __future__ import annotations

from quorate.local.jsonvalue import Json, JsonObject, as_list, as_text, objects, same, texts
from quorate.local.status import bad_request
from quorate.local.structural import Structure

_DELETE_FROM = "$deleteFromPrimitiveList/"
_SET_ORDER = "$setElementOrder/"
_UNKNOWN = Structure(type="")


def strategic_merge(target: Json, patch: Json, structure: Structure) -> Json:
    """`target` with the patch applied."""
    if not isinstance(patch, dict):
        raise bad_request("a strategic merge patch is an object")
    return _merge_object(target if isinstance(target, dict) else {}, patch, structure)


def _merge_object(target: JsonObject, patch: JsonObject, structure: Structure) -> JsonObject:
    directive = as_text(patch.get("$patch"))
    content = {key: value for key, value in patch.items() if not key.startswith("$")}
    if directive == "replace":
        return content
    if directive == "delete":
        return {}
    if directive not in ("", "merge"):
        raise bad_request(f"Unknown patch type found: {directive}")
    result = dict(target)
    retained = patch.get("$retainKeys")
    if isinstance(retained, list):
        result = {key: value for key, value in result.items() if key in retained}
    for key, removed in patch.items():
        if key.startswith(_DELETE_FROM):
            name = key.removeprefix(_DELETE_FROM)
            result[name] = [item for item in as_list(result.get(name)) if item not in as_list(removed)]
    for key, value in content.items():
        child = structure.child(key) or _UNKNOWN
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            before = result.get(key)
            result[key] = _merge_object(before if isinstance(before, dict) else {}, value, child)
            if value.get("$patch") == "delete":
                result.pop(key)
        elif isinstance(value, list) and "merge" in child.merge_strategies:
            result[key] = _merge_list(as_list(result.get(key)), value, child)
        else:
            result[key] = value
    for key, order in patch.items():
        if key.startswith(_SET_ORDER):
            name = key.removeprefix(_SET_ORDER)
            if name in result:
                result[name] = _ordered(as_list(result[name]), as_list(order), structure.child(name) or _UNKNOWN)
    return result


def _merge_list(target: list[Json], patch: list[Json], structure: Structure) -> list[Json]:
    if not structure.merge_key:
        return [*target, *(item for item in patch if item not in target)]
    key = structure.merge_key
    if any(each.get("$patch") == "replace" and len(each) == 1 for each in objects(patch)):
        return [item for item in patch if not (isinstance(item, dict) and item.get("$patch") == "replace")]
    result = list(target)
    for item in objects(patch):
        if key not in item:
            raise bad_request(f"map: {item} does not contain declared merge key: {key}")
        index = next(
            (i for i, each in enumerate(result) if isinstance(each, dict) and same(each.get(key), item[key])), -1
        )
        if item.get("$patch") == "delete":
            if index >= 0:
                del result[index]
        elif index < 0:
            result.append(_merge_object({}, item, structure.items or _UNKNOWN))
        else:
            before = result[index]
            result[index] = _merge_object(before if isinstance(before, dict) else {}, item, structure.items or _UNKNOWN)
    return result


def _ordered(items: list[Json], order: list[Json], structure: Structure) -> list[Json]:
    """Items named by the directive in its order; the others keep their place behind them."""
    key = structure.merge_key
    wanted: list[Json] = [each.get(key) for each in objects(order)] if key else list[Json](texts(order))

    def position(item: Json) -> int:
        identity = item.get(key) if isinstance(item, dict) else item
        return next((index for index, each in enumerate(wanted) if same(each, identity)), len(wanted))

    return sorted(items, key=position)

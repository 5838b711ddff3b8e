"""Identifies a congestion control in Python by all that its runs may depend on, so that a study does not take runs of
one control for those of another.

What is given to a control is part of it: code, default values, closures, attributes, the arguments of a partial, the
state of objects. Names of its module that its code uses are part of it as far as they are plain values, functions or
classes of the same module. Modules, and what other modules define, count by name.
"""

from __future__ import annotations

import builtins
import dis
import enum
import functools
import hashlib
import re
import types

# What the interpreter adds to a class, or what changes no behaviour.
_NO_PART = frozenset(
    "__dict__ __weakref__ __doc__ __module__ __qualname__ __firstlineno__ __static_attributes__ __annotations__"
    " __annotate__ __annotate_func__ __annotations_cache__ __type_params__ _abc_impl __orig_bases__".split()
)
_ATOMS = (bool, int, float, complex, str, bytes, bytearray, type(None), type(...), type(NotImplemented), range)
_PLAIN = (*_ATOMS, tuple, list, dict, set, frozenset, enum.Enum)
_DESCRIPTORS = (
    types.MemberDescriptorType,
    types.GetSetDescriptorType,
    types.WrapperDescriptorType,
    types.MethodDescriptorType,
    types.ClassMethodDescriptorType,
)
# A class that a program has defined, in contrast to one of the interpreter.
_HEAP_TYPE = 1 << 9
_DEEPEST = 200


class UnknownPart(Exception):
    """Something of which no digest can be computed; the text says what and where."""


def digest(control) -> str:
    """Identifies a control: a class, a function that makes one, or anything else that can be called.

    Raises :class:`UnknownPart` for a control with a part of which nothing is known.
    """
    inner = control
    while isinstance(inner, functools.partial):
        inner = inner.func
    return _Digest(getattr(inner, "__module__", None)).of(control, "it").hex()[:32]


class _Digest:
    def __init__(self, module):
        self.module = module
        self.known = {}
        self.under_way = []

    def of(self, thing, where: str) -> bytes:
        kind = type(thing)
        if kind in _ATOMS:
            return _hash(kind.__name__, repr(thing))
        key = id(thing)
        if key in self.known:
            return self.known[key][0]
        if key in self.under_way:
            # A cycle: how far up it goes identifies it.
            return _hash("cycle", str(len(self.under_way) - self.under_way.index(key)))
        if len(self.under_way) > _DEEPEST:
            raise UnknownPart(f"{where} is nested too deeply")
        self.under_way.append(key)
        made = _hash(_name(kind), *self.parts(thing, kind, where))
        self.under_way.pop()
        # The thing is kept too: another one with its address would pass for it.
        self.known[key] = (made, thing)
        return made

    def parts(self, thing, kind, where: str):
        if isinstance(thing, types.CodeType):
            return self.code(thing, where)
        if isinstance(thing, types.FunctionType):
            return self.function(thing, where)
        if isinstance(thing, types.MethodType):
            return self.all([thing.__func__, thing.__self__], where)
        if isinstance(thing, property):
            return self.all([thing.fget, thing.fset, thing.fdel], where)
        if isinstance(thing, (staticmethod, classmethod)):
            return self.all([thing.__func__], where)
        if isinstance(thing, functools.cached_property):
            return self.all([thing.func], where)
        if isinstance(thing, types.CellType):
            return self.cell(thing, where)
        if isinstance(thing, types.ModuleType):
            return [thing.__name__, str(getattr(thing, "__version__", ""))]
        if isinstance(thing, type):
            return self.type(thing)
        if isinstance(thing, _DESCRIPTORS):
            return [_name(thing.__objclass__), thing.__name__]
        if isinstance(thing, types.MappingProxyType):
            return self.pairs(thing.items(), where)
        if kind in (list, tuple):
            return self.all(thing, where)
        if kind in (set, frozenset):
            return sorted(self.all(thing, where))
        if kind is dict:
            return self.pairs(thing.items(), where)
        return self.object(thing, where)

    def all(self, things, where: str) -> list[bytes]:
        return [self.of(thing, where) for thing in things]

    def pairs(self, items, where: str) -> list[bytes]:
        made = []
        for key, value in items:
            name = f"`{key}` of {where}" if isinstance(key, str) else where
            made += [self.of(key, where), self.of(value, name)]
        return made

    def cell(self, cell, where: str) -> list[bytes]:
        try:
            return self.all([cell.cell_contents], where)
        except ValueError:
            return [b"empty"]

    def code(self, code, where: str) -> list:
        names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, code.co_flags)
        table = getattr(code, "co_exceptiontable", b"")
        return [code.co_code, table, repr(names), *self.all(code.co_consts, where)]

    def function(self, function, where: str) -> list[bytes]:
        name = function.__name__
        made = [self.of(function.__code__, where)]
        made.append(self.of(function.__defaults__, f"a default value of {name}()"))
        made.append(self.of(function.__kwdefaults__, f"a default value of {name}()"))
        for variable, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            made.append(self.of(cell, f"`{variable}`, which {name}() uses,"))
        made += self.pairs(((k, v) for k, v in vars(function).items() if k not in _NO_PART), f"{name}()")
        if function.__module__ == self.module:
            for variable in sorted(_globals(function.__code__)):
                made.append(self.named(function.__globals__, variable))
        return made

    def named(self, scope: dict, variable: str) -> bytes:
        """What a name of a module stands for, as far as it is the program's own."""
        if variable not in scope:
            return _hash("builtin" if hasattr(builtins, variable) else "nothing", variable)
        value = scope[variable]
        own = isinstance(value, (types.FunctionType, type)) and value.__module__ == self.module
        if own or isinstance(value, _PLAIN):
            made = self.known_part(value, f"`{variable}`")
            if made is not None:
                return made
        return _hash("named", variable, _name(value if isinstance(value, type) else type(value)))

    def known_part(self, value, where: str) -> bytes | None:
        """The same as :meth:`of`; none of something unknown."""
        depth = len(self.under_way)
        try:
            return self.of(value, where)
        except UnknownPart:
            del self.under_way[depth:]
            return None

    def type(self, made: type) -> list:
        if not made.__flags__ & _HEAP_TYPE:
            return [_name(made)]
        parts = [_name(made), *(_name(base) for base in made.__mro__)]
        for base in made.__mro__:
            if not base.__flags__ & _HEAP_TYPE:
                continue
            of = self.of if base.__module__ == self.module else self.known_part
            for name, value in sorted(vars(base).items()):
                if name not in _NO_PART:
                    part = of(value, f"`{name}` of the class {base.__name__}")
                    parts += [name, part or _name(type(value))]
        return parts

    def object(self, thing, where: str) -> list:
        kind = type(thing)
        try:
            reduced = thing.__reduce_ex__(4)
        except Exception as error:
            # An address, as in the repr of an object, says nothing to people.
            why = re.sub(r" at 0x[0-9a-f]+", "", str(error)) or type(error).__name__
            raise UnknownPart(f"{where} is an object of {_name(kind)}, which cannot be digested ({why})") from None
        if isinstance(reduced, str):
            # It stands under a name in its module; wrappers, such as those of functools.cache, have more inside.
            inside = getattr(thing, "__wrapped__", None)
            return [_name(kind), str(getattr(thing, "__module__", "")), reduced, self.of(inside, where)]
        make, arguments, state, items, pairs = (*reduced, None, None, None)[:5]
        parts = [self.of(kind, where), self.of(make, where), *self.all(arguments, where)]
        parts.append(self.state(state, where))
        parts += self.all(items or (), where)
        return parts + self.pairs(pairs or (), where)

    def state(self, state, where: str) -> bytes:
        if type(state) is dict:
            # In any order: attributes are set in the order of the code, and that is part of it already.
            return _hash(*self.pairs(sorted(state.items(), key=lambda item: str(item[0])), where))
        return self.of(state, where)


def _globals(code) -> set[str]:
    """Names of the module that code, or code inside of it, reads."""
    names = {one.argval for one in dis.get_instructions(code) if one.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    inside = (_globals(constant) for constant in code.co_consts if isinstance(constant, types.CodeType))
    return names.union(*inside)


def _name(kind) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _hash(*parts) -> bytes:
    made = hashlib.sha256()
    for part in parts:
        raw = part if isinstance(part, bytes) else part.encode()
        made.update(len(raw).to_bytes(8, "little"))
        made.update(raw)
    return made.digest()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The forwarding's tables, made from src/cuda/calls.def and wire.def.

generate.py hash FILE...	C: the protocol's version
generate.py table FILE...	C: rows of wire_calls[]
generate.py entries FILE...	C: the guest's exported functions
generate.py markdown FILE...	docs/protocol.md

The files are calls.def, wire.def, transport.h, questions.def and question.h, in this order.

It fails on a call without a class, on a row for no call, and on a pattern that fits nothing.
"""

import fnmatch
import hashlib
import re
import sys

CLASSES = {"POST", "LOCAL", "CACHED", "ROUND_TRIP", "GUEST", "REFUSED"}
HAND = {"HAND", "HAND_GUEST", "HAND_HOST"}
ITEMS = {
    "OUT": 2, "OUT_N": 3, "IN": 2, "IN_N": 3, "INOUT": 2, "STRING": 1, "STRING_OUT": 1, "BUFFER": 2,
    "RANGE": 2, "RANGE_N": 3, "RANGE2D": 2, "PLAIN": 1, "HANDLES": 3, "LIST": 3, "OUT_HANDLES": 3, "DROPS": 1,
    "ENDS": 1,
}


class Call:
    def __init__(self, row):
        words = [word.strip() for word in row.split(",")]
        self.name, self.base, self.stream = words[0], words[1], words[3]
        self.version, self.drivers, self.arguments = words[2], words[4], [word for word in words[7:] if word]
        self.wire_class, self.cache, self.layout, self.hand = None, None, [], []
        self.reason = None

    def plain(self):
        """The call that this one is the twin of, or its own name."""
        return re.sub(r"_pt[sd][sz]$", "", self.name)


def rows(path, macro):
    with open(path, encoding="ascii") as f:
        text = re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S)
    return re.findall(rf"^{macro}\((.*)\)$", text, re.M)


def split(row):
    """At the commas outside of parentheses."""
    return [word.strip() for word in re.findall(r"(?:[^,(]|\([^)]*\))+", row)]


def fail(text):
    sys.exit(f"generate.py: {text}")


def parse_item(name, text):
    match = re.fullmatch(r"(\w+)\((.*)\)", text)
    if not match or match[1] not in ITEMS:
        fail(f"{name}: no such layout: {text}")
    words = [word.strip() for word in match[2].split(",")]
    if len(words) != ITEMS[match[1]]:
        fail(f"{name}: {text} has {len(words)} words")
    return match[1], words


def read_wire(path):
    wire = {}
    for row in rows(path, "WIRE"):
        name, wire_class, *layout = split(row)
        cache = re.fullmatch(r"CACHED\((\w+)\)", wire_class)
        if (cache is None and wire_class not in CLASSES) or name in wire:
            fail(f"{name}: {wire_class}: no such class, or a second row")
        hand = [word for word in layout if word in HAND]
        items = [parse_item(name, word) for word in layout if word not in HAND]
        wire[name] = ("CACHED" if cache else wire_class, cache[1] if cache else None, items, hand)
    return wire


def read(calls_path, wire_path):
    calls = [Call(row) for row in rows(calls_path, "CALL")]
    wire = read_wire(wire_path)
    refused = [[word.strip().strip('"') for word in row.split(",", 1)] for row in rows(wire_path, "REFUSED")]
    used = set()
    for call in calls:
        name = call.name if call.name in wire else call.plain()
        if name in wire:
            call.wire_class, call.cache, call.layout, call.hand = wire[name]
            used.add(name)
            continue
        for pattern, reason in refused:
            if fnmatch.fnmatchcase(call.plain(), pattern):
                call.wire_class, call.reason = "REFUSED", reason
                used.add(pattern)
                break
        else:
            fail(f"{call.name} has no class")
    for name in list(wire) + [pattern for pattern, _ in refused]:
        if name not in used:
            fail(f"{name} is the row of no call")
    return calls


def protocol_hash(paths):
    """Of the rows, without comments and the way they are written."""
    digest = hashlib.sha256()
    for path in paths:
        with open(path, encoding="ascii") as f:
            text = re.sub(r"/\*.*?\*/", " ", f.read(), flags=re.S)
        digest.update(" ".join(text.split()).encode())
    return digest.hexdigest()[:32]


def print_hash(paths):
    text = protocol_hash(paths)
    print("/* Made by generate.py. */")
    print(f'#define WIRE_HASH_TEXT "{text}"')
    print("#define WIRE_HASH { " + ", ".join(f"0x{text[i:i + 2]}" for i in range(0, 32, 2)) + " }")


# What a role says by itself. Handles are by the role's own name.
OUT_SIZES = {
    "ADDRESS": 8, "ADDRESS32": 4, "HOST_ADDRESS": 8, "FREE": 8, "FREE32": 4, "TOTAL": 8, "TOTAL32": 4, "PITCH": 8,
    "PITCH32": 4, "DEVICE": 4,
}
NUMBERS = {
    "SIZE", "SIZE32", "WIDTH", "WIDTH32", "HEIGHT", "HEIGHT32", "PITCH", "VALUE", "FLAGS", "COUNT", "GRID", "BLOCK",
    "SHARED_SIZE", "OFFSET", "DEVICE",
}
HANDLES = {
    "CONTEXT", "STREAM", "EVENT", "MODULE", "FUNCTION", "LIBRARY", "KERNEL", "LINK", "POOL", "ARRAY", "MIPMAPPED_ARRAY",
    "PHYSICAL", "GRAPH", "GRAPH_NODE", "GRAPH_EXEC", "USER_OBJECT",
}


def argument_of_role(call, role):
    """The fields of an argument that no item of the layout describes."""
    role = role.removeprefix("ARG_")
    if role in NUMBERS:
        return [".kind = WIRE_NUMBER"]
    if role in HANDLES:
        return [".kind = WIRE_HANDLE", f".handle = HANDLE_{role}"]
    if role in {"ADDRESS", "ADDRESS32"}:
        return [".kind = WIRE_ADDRESS"]
    if role.startswith("OUT_") and role.removeprefix("OUT_") in HANDLES:
        return [".kind = WIRE_OUT_HANDLE", f".handle = HANDLE_{role.removeprefix('OUT_')}", ".size = 8"]
    if role.startswith("OUT_") and role.removeprefix("OUT_") in OUT_SIZES:
        return [".kind = WIRE_OUT", f".size = {OUT_SIZES[role.removeprefix('OUT_')]}"]
    if "HAND" in call.hand or call.wire_class in {"GUEST", "REFUSED"}:
        return [".kind = WIRE_NUMBER"]
    return fail(f"{call.name}: nothing tells what the argument {role} is")


def argument_of_item(kind, words):
    """The fields of an argument that an item describes."""
    fields = [f".kind = WIRE_{kind}"]
    if kind in {"OUT", "OUT_N", "IN", "IN_N", "INOUT"}:
        fields.append(f".size = sizeof({words[1]})")
    elif kind in {"HANDLES", "LIST", "OUT_HANDLES"}:
        fields.append(f".size = 8, .handle = HANDLE_{words[1]}")
    elif kind in {"RANGE_N", "RANGE2D"}:
        fields.append(f".size = {words[-1]}")
    elif kind == "RANGE":
        fields.append(".size = 1")
    if kind in {"OUT_N", "IN_N", "HANDLES", "LIST", "OUT_HANDLES"}:
        fields.append(f".count = {words[2]}")
    elif kind in {"BUFFER", "RANGE", "RANGE_N"}:
        fields.append(f".count = {words[1]}")
    fields[0] = fields[0].replace("RANGE_N", "RANGE").replace("PLAIN", "NUMBER")
    return fields


def argument_rows(call):
    described = {int(words[0]): (kind, words) for kind, words in call.layout if kind not in {"ENDS", "DROPS"}}
    dropped = {int(words[0]) for kind, words in call.layout if kind == "DROPS"}
    for i, role in enumerate(call.arguments):
        fields = argument_of_item(*described[i]) if i in described else argument_of_role(call, role)
        if i in dropped:
            fields.append(".drops = 1")
        yield "{ " + ", ".join(fields) + " }"


def print_table(calls):
    print("/* Made by generate.py. */")
    for call in calls:
        print(f"[CALL_ID_{call.name}] = {{\n\t.class = WIRE_{call.wire_class},")
        if call.cache:
            print(f"\t.cache = WIRE_CACHE_{call.cache},")
        if call.hand:
            print("\t.hand = " + " | ".join(f"WIRE_{word}" for word in call.hand) + ",")
        for kind, words in call.layout:
            if kind == "ENDS":
                print(f"\t.ends = WIRE_CACHE_{words[0]},")
        if call.arguments:
            print("\t.arguments = {\n\t\t" + ",\n\t\t".join(argument_rows(call)) + ",\n\t},")
        print(f"\t.n_arguments = {len(call.arguments)},\n}},")


def print_entries(calls):
    print("/* Made by generate.py. */")
    for call in calls:
        if call.wire_class == "REFUSED":
            print(f"ENTRY_REFUSED({call.name})")
        elif call.wire_class not in {"GUEST", "LOCAL"} and not set(call.hand) - {"HAND_HOST"}:
            n = len(call.arguments)
            names = ", ".join(f"uint64_t a{i}" for i in range(n)) or "void"
            words = ", ".join(f"a{i}" for i in range(n)) or "0"
            print(f"ENTRY({call.name}, ({names}), {words})")


HEADING = """<!-- SPDX-License-Identifier: Apache-2.0 -->
# The forwarding protocol

Made from `src/cuda/calls.def` and `src/forward/wire.def`, `transport.h`, `questions.def` and `question.h`; `transport.h`
describes rings, grants and messages. The hash of the five is the version; sides of different hashes refuse each other and
say both.

A failure of a posted call is reported by the thread's next call; of all others at once.

| call | class | arguments | what is added |
| --- | --- | --- | --- |"""


def print_markdown(calls):
    print(HEADING)
    for call in calls:
        if call.wire_class == "REFUSED":
            continue
        layout = " ".join(f"{kind}({', '.join(words)})" for kind, words in call.layout)
        arguments = " ".join(word.removeprefix("ARG_").lower() for word in call.arguments)
        wire_class = call.wire_class.lower().replace("_", " ") + (f" ({call.cache.lower()})" if call.cache else "")
        print(f"| `{call.name}` | {wire_class} | {arguments} | {layout} |")
    print("\n## Not forwarded\n\nThese answer CUDA_ERROR_NOT_SUPPORTED.\n\n| calls | why |\n| --- | --- |")
    for reason in sorted({call.reason for call in calls if call.reason}):
        names = ", ".join(f"`{call.name}`" for call in calls if call.reason == reason)
        print(f"| {names} | {reason} |")


def print_questions(path):
    print("\n## NVML\n\nWhat the guest's `libnvidia-ml.so.1` asks, by the host's call that knows it; "
          "`questions.def` has the forms.\n\n| form | calls |\n| --- | --- |")
    questions = [split(row) for row in rows(path, "QUESTION")]
    questions += [["RECORD", split(row)[0]] for row in rows(path, "RECORD")]
    for form in dict.fromkeys(words[0] for words in questions):
        names = ", ".join(f"`{words[1]}`" for words in questions if words[0] == form)
        print(f"| {form.lower().replace('_', ' ')} | {names} |")


def main(what, *paths):
    calls = read(*paths[:2])
    if what == "hash":
        print_hash(paths)
    elif what == "table":
        print_table(calls)
    elif what == "entries":
        print_entries(calls)
    elif what == "markdown":
        print_markdown(calls)
        print_questions(paths[3])
    else:
        fail(f"what is {what}?")


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Rooms, includes, knots and sizes of the sources, read as text."""

import collections
import pathlib
import re

include_line = re.compile(r'^\s*#include "superstep/([^"]+)"', re.MULTILINE)


class Room:
    def __init__(self, name, folder, uses):
        self.name, self.folder, self.uses = name, folder, set(uses)


class House:
    """The tree below `source`; paths of files are relative to src/superstep."""

    def __init__(self, source):
        self.root = pathlib.Path(source) / "src" / "superstep"
        self.wing_uses = {}  # {module: rooms that it may use beside its room's}: of programs of their own
        self.rooms = self._rooms()
        self.files = sorted(str(path.relative_to(self.root)) for ending in ("h", "cpp")
                            for path in self.root.rglob("*." + ending))
        self._lines = {}

    def _rooms(self):
        rooms = {}
        for path in sorted(self.root.rglob("CMakeLists.txt")):
            text = re.sub(r"#.*", "", path.read_text())
            folder = str(path.parent.relative_to(self.root))
            for call in re.finditer(r"superstep_room\(([^)]*)\)", text):
                words = call.group(1).split()
                uses = words[words.index("USES") + 1:] if "USES" in words else []
                if "LIBRARIES" in uses:
                    libraries = uses[uses.index("LIBRARIES"):]
                    uses = uses[:uses.index("LIBRARIES")]
                    uses += [word[len("superstep_"):] for word in libraries if word.startswith("superstep_")]
                rooms[words[0]] = Room(words[0], folder, uses)
            for call in re.finditer(r"^superstep_program\(([^)]*)\)", text, re.MULTILINE):
                words = call.group(1).split()
                files = words[words.index("FILES") + 1:]
                uses = files[files.index("USES") + 1:] if "USES" in files else []
                self.wing_uses.update({module_of(f"{folder}/{file}"): set(uses) for file in files})
            for call in re.finditer(r"foreach\(room ([^)]*)\)", text) if folder != "." else []:
                rooms[folder] = Room(folder, folder, call.group(1).split())  # the program
        return rooms

    def lines(self, file):
        if file not in self._lines:
            self._lines[file] = (self.root / file).read_text().split("\n")
        return self._lines[file]

    def room_of(self, file):
        """The name of the room with the longest folder that holds the file; none where there is none."""
        holding = [room for room in self.rooms.values() if file.startswith(room.folder + "/")]
        return max(holding, key=lambda room: len(room.folder)).name if holding else None

    def includes(self, file):
        return include_line.findall("\n".join(self.lines(file)))


def undeclared_includes(house):
    """Includes of rooms that the including room's CMakeLists.txt does not name: {(room, used room): [file ...]}."""
    found = collections.defaultdict(list)
    for file in house.files:
        room = house.room_of(file)
        for included in house.includes(file):
            used = house.room_of(included)
            if room and used and used != room and used not in house.rooms[room].uses | house.wing_uses.get(module_of(file), set()):
                found[room, used].append(file)
    return found


def module_of(file):
    return re.sub(r"\.(h|cpp)$", "", file)


def knots(house):
    """Sets of modules (a header with its source) that include one another in a circle, largest first."""
    graph = collections.defaultdict(set)
    for file in house.files:
        for included in house.includes(file):
            if module_of(included) != module_of(file):
                graph[module_of(file)].add(module_of(included))
    return sorted((circle for circle in components(graph) if len(circle) > 1), key=lambda c: (-len(c), c))


def components(graph):
    """Strongly connected components (R. Tarjan 1972), without recursion: each a sorted list."""
    index, low, stack, on_stack, found = {}, {}, [], set(), []
    for start in sorted(graph):
        if start in index:
            continue
        work = [(start, iter(sorted(graph[start])))]
        index[start] = low[start] = len(index)
        stack.append(start)
        on_stack.add(start)
        while work:
            node, successors = work[-1]
            for successor in successors:
                if successor not in index:
                    index[successor] = low[successor] = len(index)
                    stack.append(successor)
                    on_stack.add(successor)
                    work.append((successor, iter(sorted(graph.get(successor, ())))))
                    break
                if successor in on_stack:
                    low[node] = min(low[node], index[successor])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    component = []
                    while not component or component[-1] != node:
                        component.append(stack.pop())
                        on_stack.discard(component[-1])
                    found.append(sorted(component))
    return found


def long_functions(house, most):
    """Functions of more lines than `most`, from their name to their last brace: [(file, line, name, lines)]."""
    found = []
    for file in house.files:
        for line, name, length in functions(house.lines(file)):
            if length > most:
                found.append((file, line, name, length))
    return found


def functions(lines):
    """The functions of formatted source: (first line, name, lines) each. A block belongs to the lines before it back to
    the end of the statement before; what stands in a function is not looked at."""
    open_blocks, begin = [], 1
    for number, line in enumerate(lines, 1):
        text = re.sub(r"\s*//.*", "", line)
        if not text.strip() or text.startswith("#"):
            begin = number + 1
            continue
        if re.match(r"\s*}", text) and open_blocks and indentation(text) == open_blocks[-1].indent:
            block = open_blocks.pop()
            if block.kind == "function":
                yield block.line, block.name, number - block.line + 1
            if text.endswith("{"):  # } else {
                open_blocks.append(block._replace(kind="other"))
            begin = number + 1
        elif text.endswith("{") and not (open_blocks and open_blocks[-1].kind == "function"):
            head = " ".join(part.strip() for part in lines[begin - 1:number])
            open_blocks.append(Block(indentation(lines[begin - 1]), kind_of(head), begin, name_in(head)))
            begin = number + 1
        elif text.endswith((";", "}", ":", "{")):
            begin = number + 1


Block = collections.namedtuple("Block", "indent kind line name")


def indentation(line):
    return len(line) - len(line.lstrip())


def kind_of(head):
    if re.match(r"(inline |export )*(namespace|extern \"C\")", head):
        return "scope"
    if re.match(r"(template ?<.*?> ?)?(typedef )?(class|struct|union)\b(?!.*\) ?(const )?{$)", head):
        return "scope"
    return "function" if "(" in head and not re.search(r"[=,(] ?{$", head) else "other"


def name_in(head):
    name = re.search(r"([\w:~]+|operator\S+) ?\(", head)
    return name.group(1) if name else head


def full_folders(house, most):
    count = collections.Counter(str(pathlib.PurePath(file).parent) for file in house.files)
    return sorted((folder, files) for folder, files in count.items() if files > most)


def headers_without_purpose(house):
    return [file for file in house.files if file.endswith(".h") and not house.lines(file)[0].startswith("// ")]


one_reader = {  # what reads texts of strangers, and the one place that does, with a limit of depth
    r"\b(?i:(?:ordered_)?json)::parse\(|\bjson::from_(?:cbor|msgpack|ubjson|bson|bjdata)\(|\bjson::accept\(": "base/json.cpp",
    r"\bsax_parse\(": "edge/protocol/request_json.cpp",
    r"\btoml::parse(?:_file)?\(": "machine/toml/parse_toml.cpp"}


# What opens a file to read it: a pipe, a device or a socket in its place is refused in one place, before anything waits for it.
openers = r"\bstd::ifstream \w+[({]|\bstd::ifstream\(|\bfopen\(|\bgzopen\(|\bTIFFOpen(?:Ext)?\(|\bH5Fopen\("
door = "base/system/regular_file.h"


def openers_beside(house):
    """Files that open others without that door: [(file, line, call)], the first of each."""
    found = []
    for file in house.files:
        lines = house.lines(file)
        if file == door or any(f'"superstep/{door}"' in line for line in lines):
            continue
        for number, line in enumerate(lines, 1):
            match = re.search(openers, re.sub(r"//.*", "", line))
            if match and not line.startswith("SUPERSTEP_LATE"):
                found.append((file, number, match.group(0)))
                break
    return found


def readers_beside(house):
    """Calls of a reader elsewhere than in its one place: [(file, line, call, place)]."""
    found = []
    for file in house.files:
        for number, line in enumerate(house.lines(file), 1):
            for call, place in one_reader.items():
                match = re.search(call, re.sub(r"//.*", "", line))
                if match and file != place:
                    found.append((file, number, match.group(0), place))
    return found


def findings(house, limits):
    """What is wrong, a line each; exceptions of `limits` that nothing needs are wrong too."""
    lines, needed = [], set()

    def excepted(table, key, size=None):
        allowed = limits.get("exceptions", {}).get(table, {}).get(key)
        if allowed is None or (size is not None and size > allowed.get("most", size)):
            return False
        needed.add((table, key))
        return True

    for (room, used), files in sorted(undeclared_includes(house).items()):
        if not excepted("includes", f"{room} {used}"):
            lines.append(f"{room} includes {used}, which its CMakeLists.txt does not name: {', '.join(sorted(set(files))[:5])}")
    for knot in knots(house):
        if len(knot) > limits["knot"] and not excepted("knots", knot[0], len(knot)):
            lines.append(f"{len(knot)} files include one another: {', '.join(knot[:8])}")
    for folder, count in full_folders(house, limits["folder_files"]):
        if not excepted("folders", folder, count):
            lines.append(f"{folder}/ holds {count} files, more than {limits['folder_files']}")
    for file, line, name, length in long_functions(house, limits["function_lines"]):
        if not excepted("functions", f"{file} {name}", length):
            lines.append(f"{file}:{line}: {name} has {length} lines, more than {limits['function_lines']}")
    for file in headers_without_purpose(house):
        if not excepted("headers", file):
            lines.append(f"{file}: the first line does not say what the header is for")
    for file, line, call, place in readers_beside(house):
        if excepted("readers", file):
            continue
        lines.append(f"{file}:{line}: {call}) has no limit of depth; {place} has")
    for file, line, call in openers_beside(house):
        if not excepted("openers", file):
            lines.append(f"{file}:{line}: {call.rstrip('({')}) may wait for a pipe; {door} has the door for files of users")
    for table, keys in limits.get("exceptions", {}).items():
        for key, entry in keys.items():
            if not entry.get("reason"):
                lines.append(f"limits.toml: exceptions.{table}.'{key}' gives no reason")
            if (table, key) not in needed:
                lines.append(f"limits.toml: exceptions.{table}.'{key}' is no longer needed")
    return lines

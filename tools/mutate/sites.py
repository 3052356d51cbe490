"""Where a source file can be mutated, and how: read from Clang's syntax tree.

A site is a set of insertions and replacements of text that leaves the program as it is while its switch (switch.h) is
off. What stands in macros, declarations of constants that must be known while compiling and templates' arguments is
left alone; what slips through and does not compile is dropped by the caller (build.py).
"""
import sys
from dataclasses import dataclass
from pathlib import Path

try:
    from clang import cindex
except ImportError:  # Debian keeps it where only its own Python looks
    sys.path.append('/usr/lib/python3/dist-packages')
    try:
        from clang import cindex
    except ImportError:
        cindex = None

COMPARISONS = {'<': ('less', '<='), '<=': ('less_equal', '<'), '>': ('greater', '>='), '>=': ('greater_equal', '>')}
ARITHMETIC = {'+': ('add', '-'), '-': ('subtract', '+'), '*': ('multiply', '+'), '/': ('divide', '*')}


@dataclass
class Edit:
    """`text` in place of the bytes [begin, end); of two at one place the outer one is written first (`depth`)."""
    begin: int
    end: int
    text: str
    depth: int


@dataclass
class Site:
    path: Path
    line: int
    column: int
    kind: str
    before: str
    after: str
    edits: list  # of functions of the mutation's number
    number: int = -1

    @property
    def place(self) -> str:
        return f'{self.path}:{self.line}:{self.column}'


def arithmetic(cursor) -> bool:
    kind = cursor.type.get_canonical().kind
    return cindex.TypeKind.BOOL.value <= kind.value <= cindex.TypeKind.LONGDOUBLE.value


def unwrapped(cursor):
    """The expression below what the compiler adds by itself: conversions, ends of temporaries."""
    while cursor.kind == cindex.CursorKind.UNEXPOSED_EXPR:
        children = list(cursor.get_children())
        if len(children) != 1 or children[0].extent != cursor.extent:
            break
        cursor = children[0]
    return cursor


def boolean(type_) -> bool:
    return type_.get_canonical().kind == cindex.TypeKind.BOOL


class Finder:
    def __init__(self, path: Path, shown: Path, arguments: list):
        self.path, self.shown = path, shown
        self.bytes = path.read_bytes()
        self.sites = []
        index = cindex.Index.create()
        unit = index.parse(str(path), args=arguments, options=cindex.TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD)
        severe = [d for d in unit.diagnostics if d.severity >= cindex.Diagnostic.Fatal]
        if severe:
            raise RuntimeError(f'{shown}: Clang does not read it: {severe[0].spelling}')
        self.macros = [(c.extent.start.offset, c.extent.end.offset) for c in unit.cursor.get_children()
                       if c.kind in (cindex.CursorKind.MACRO_INSTANTIATION, cindex.CursorKind.MACRO_DEFINITION)
                       and c.location.file and c.location.file.name == str(path)]
        for cursor in unit.cursor.get_children():
            if cursor.location.file and cursor.location.file.name == str(path):
                self.visit(cursor, None, 0)

    def text(self, begin, end) -> str:
        return self.bytes[begin:end].decode(errors='replace')

    def in_macro(self, begin, end) -> bool:
        return any(b < end and begin < e for b, e in self.macros)

    def add(self, cursor, kind, before, after, edits):
        begin, end = cursor.extent.start.offset, cursor.extent.end.offset
        if self.in_macro(begin, end):
            return
        self.sites.append(Site(self.shown, cursor.extent.start.line, cursor.extent.start.column, kind,
                               ' '.join(before.split()), ' '.join(after.split()), edits))

    def around(self, cursor, head, tail, depth):
        """head before the cursor's text and tail behind it; `head` takes the mutation's number."""
        begin, end = cursor.extent.start.offset, cursor.extent.end.offset
        return [lambda n: Edit(begin, begin, head(n), depth), lambda n: Edit(end, end, tail, -depth)]

    def visit(self, cursor, function, depth):
        kinds = cindex.CursorKind
        if cursor.kind == kinds.STATIC_ASSERT or self.left_alone(cursor):
            return
        if cursor.kind in (kinds.FUNCTION_DECL, kinds.CXX_METHOD, kinds.FUNCTION_TEMPLATE, kinds.LAMBDA_EXPR,
                           kinds.CONSTRUCTOR, kinds.DESTRUCTOR, kinds.CONVERSION_FUNCTION):
            function = cursor
        if function is not None:
            handler = {kinds.BINARY_OPERATOR: self.binary, kinds.UNARY_OPERATOR: self.unary,
                       kinds.INTEGER_LITERAL: self.integer, kinds.FLOATING_LITERAL: self.floating,
                       kinds.CXX_BOOL_LITERAL_EXPR: self.truth, kinds.COMPOUND_STMT: self.statements,
                       kinds.IF_STMT: self.condition, kinds.RETURN_STMT: self.answer,
                       kinds.COMPOUND_ASSIGNMENT_OPERATOR: self.assignment}.get(cursor.kind)
            if handler:
                handler(cursor, function, depth)
        for child in self.evaluated(cursor):
            self.visit(child, function, depth + 1)

    def evaluated(self, cursor) -> list:
        """The cursor's children but labels of cases, and arguments of templates in a name or a declaration's type."""
        kinds, children = cindex.CursorKind, list(cursor.get_children())
        if cursor.kind == kinds.CASE_STMT:
            return children[1:]
        if cursor.kind == kinds.DECL_REF_EXPR:
            return []
        if cursor.kind in (kinds.VAR_DECL, kinds.PARM_DECL):
            return [c for c in children if c.extent.start.offset > cursor.location.offset]
        return children

    def left_alone(self, cursor) -> bool:
        kinds = cindex.CursorKind
        if cursor.kind == kinds.VAR_DECL:
            words = self.text(cursor.extent.start.offset, cursor.extent.end.offset).split('=')[0].split()
            return 'constexpr' in words or 'constinit' in words or self.known(cursor)
        return cursor.kind in (kinds.TEMPLATE_NON_TYPE_PARAMETER, kinds.ENUM_DECL, kinds.FIELD_DECL, kinds.TYPE_ALIAS_DECL)

    def known(self, cursor) -> bool:
        """A constant integer made of literals alone: compilers evaluate it, and no switch is asked."""
        named = (cindex.CursorKind.DECL_REF_EXPR, cindex.CursorKind.CALL_EXPR, cindex.CursorKind.MEMBER_REF_EXPR)
        return (cursor.type.is_const_qualified() and arithmetic(cursor)
                and not any(c.kind in named for c in cursor.walk_preorder()))

    def operator(self, left, right):
        """(begin, end, text) of what stands between two operands, comments apart."""
        begin, end = left.extent.end.offset, right.extent.start.offset
        text = self.text(begin, end)
        stripped = text.strip()
        at = begin + len(text[:text.find(stripped)].encode()) if stripped else begin
        return at, at + len(stripped), stripped

    def binary(self, cursor, function, depth):
        children = list(cursor.get_children())
        if len(children) != 2:
            return
        left, right = children
        begin, end, text = self.operator(left, right)
        if text in ('&&', '||'):
            other = '||' if text == '&&' else '&&'
            opened = lambda n: f'(superstep_mutation::on({n}) != ((superstep_mutation::on({n}) != bool('
            edits = [lambda n: Edit(cursor.extent.start.offset, cursor.extent.start.offset, opened(n), depth),
                     lambda n: Edit(left.extent.end.offset, left.extent.end.offset, '))', -depth),
                     lambda n: Edit(right.extent.start.offset, right.extent.start.offset,
                                    f'(superstep_mutation::on({n}) != bool(', depth),
                     lambda n: Edit(right.extent.end.offset, right.extent.end.offset, '))))', -depth)]
            self.add(cursor, 'logic', text, other, edits)
        elif text in ('==', '!='):
            other = '!=' if text == '==' else '=='
            self.add(cursor, 'equality', text, other,
                     self.around(cursor, lambda n: f'(superstep_mutation::on({n}) != bool(', '))', depth))
        elif text in COMPARISONS or text in ARITHMETIC:
            name, other = (COMPARISONS if text in COMPARISONS else ARITHMETIC)[text]
            if arithmetic(left) and arithmetic(right):
                edits = self.around(cursor, lambda n: f'superstep_mutation::{name}({n}, ', ')', depth)
                edits.append(lambda n: Edit(begin, end, ',', 0))
                self.add(cursor, 'comparison' if text in COMPARISONS else 'arithmetic', text, other, edits)

    def unary(self, cursor, function, depth):
        text = self.text(cursor.extent.start.offset, cursor.extent.end.offset)
        if text.startswith('!'):
            self.add(cursor, 'negation', text, text[1:],
                     self.around(cursor, lambda n: f'(superstep_mutation::on({n}) != bool(', '))', depth))

    def integer(self, cursor, function, depth):
        text = self.text(cursor.extent.start.offset, cursor.extent.end.offset)
        if text.replace("'", '').rstrip('uUlLzZ').isdigit():
            self.add(cursor, 'integer', text, f'{text} + 1',
                     self.around(cursor, lambda n: f'superstep_mutation::next({n}, ', ')', depth))

    def floating(self, cursor, function, depth):
        text = self.text(cursor.extent.start.offset, cursor.extent.end.offset)
        self.add(cursor, 'number', text, f'{text} * 2 + 1',
                 self.around(cursor, lambda n: f'superstep_mutation::twice({n}, ', ')', depth))

    def truth(self, cursor, function, depth):
        text = self.text(cursor.extent.start.offset, cursor.extent.end.offset)
        self.add(cursor, 'truth', text, 'false' if text == 'true' else 'true',
                 self.around(cursor, lambda n: f'(superstep_mutation::on({n}) != bool(', '))', depth))

    def statements(self, cursor, function, depth):
        kinds = cindex.CursorKind
        for child in cursor.get_children():
            child = unwrapped(child)
            if child.kind in (kinds.CALL_EXPR, kinds.COMPOUND_ASSIGNMENT_OPERATOR) or self.assigns(child):
                text = self.text(child.extent.start.offset, child.extent.end.offset)
                begin = child.extent.start.offset
                self.add(child, 'statement', text, '(left out)',
                         [lambda n, b=begin: Edit(b, b, f'if (!superstep_mutation::on({n})) ', depth)])

    def assigns(self, cursor) -> bool:
        if cursor.kind != cindex.CursorKind.BINARY_OPERATOR:
            return False
        children = list(cursor.get_children())
        return len(children) == 2 and self.operator(*children)[2] == '='

    def condition(self, cursor, function, depth):
        begin = cursor.extent.start.offset
        head = self.text(begin, begin + 20).replace(' ', '')
        children = list(cursor.get_children())
        if head.startswith('ifconstexpr') or not children or children[0].kind.is_declaration():
            return
        first = unwrapped(children[0])
        if first.kind in (cindex.CursorKind.DECL_STMT, cindex.CursorKind.BINARY_OPERATOR, cindex.CursorKind.UNARY_OPERATOR):
            return  # a variable's declaration; what has sites of its own
        text = self.text(first.extent.start.offset, first.extent.end.offset)
        self.add(first, 'condition', text, f'not: {text}',
                 self.around(first, lambda n: f'(superstep_mutation::on({n}) != bool(', '))', depth))

    def answer(self, cursor, function, depth):
        children = list(cursor.get_children())
        if len(children) != 1 or function.kind == cindex.CursorKind.LAMBDA_EXPR or not boolean(function.result_type):
            return
        value = unwrapped(children[0])
        if value.kind in (cindex.CursorKind.CXX_BOOL_LITERAL_EXPR, cindex.CursorKind.BINARY_OPERATOR,
                          cindex.CursorKind.UNARY_OPERATOR):
            return
        text = self.text(value.extent.start.offset, value.extent.end.offset)
        self.add(value, 'answer', text, f'not: {text}',
                 self.around(value, lambda n: f'(superstep_mutation::on({n}) != bool(', '))', depth))

    def assignment(self, cursor, function, depth):
        children = list(cursor.get_children())
        if len(children) != 2:
            return
        left, right = children
        begin, end, text = self.operator(left, right)
        other = {'+=': '-=', '-=': '+='}.get(text)
        if other and arithmetic(left) and arithmetic(right):
            head = lambda n: f'(superstep_mutation::on({n}) ? -1 : 1) * ('
            self.add(cursor, 'accumulation', text, other, self.around(right, head, ')', depth + 1))


def sites_of(path: Path, shown: Path, arguments: list) -> list:
    """The places of one source file, in its own order. Raises RuntimeError where Clang cannot read it."""
    return Finder(path, shown, arguments).sites


def rewritten(source: bytes, sites: list) -> str:
    """The source with every site in it behind its switch. Sites have their numbers."""
    edits = [make(site.number) for site in sites for make in site.edits]
    # At one place: what closes (inner first), then what opens (outer first), then what replaces.
    edits.sort(key=lambda e: (e.begin, 2 if e.end > e.begin else (0 if e.depth < 0 else 1),
                              e.depth))
    pieces, at = [], 0
    for edit in edits:
        pieces += [source[at:edit.begin], edit.text.encode()]
        at = max(at, edit.end)
    return b''.join(pieces + [source[at:]]).decode()

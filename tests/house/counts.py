"""What is counted so that it can only become less: ceilings in limits.toml, each with what it counts."""

import pathlib
import re

sources = ("h", "cpp")
# Where an operator's name is its definition, or the text of a file that is read and written.
HOMES = ("op", "onnx")


def files(root):
    return sorted(path for ending in sources for path in (pathlib.Path(root) / "src" / "superstep").rglob("*." + ending))


def without_comments(text):
    return re.sub(r'("(?:\\.|[^"\\\n])*")|//[^\n]*', lambda match: match.group(1) or "", text)


def operator_names(root):
    """Of docs/operators.md, which a test holds to what the program knows."""
    table = (pathlib.Path(root) / "docs" / "operators.md").read_text().split("```")[1]
    return {line.split()[0] for line in table.splitlines()[2:] if line and line[0].isalpha()}


def operator_literals(root):
    """Names of operators written out where a fact could be asked of the operator instead: [place ...]."""
    names, found = operator_names(root), []
    literal = re.compile(r'"(%s)"' % "|".join(map(re.escape, sorted(names))))
    house = pathlib.Path(root) / "src" / "superstep"
    for path in files(root):
        if path.relative_to(house).parts[0] in HOMES:
            continue
        for number, line in enumerate(without_comments(path.read_text()).split("\n"), 1):
            found += [f"{path.relative_to(house)}:{number}: {name}" for name in literal.findall(line)]
    return found


string = r'"(?:\\.|[^"\\])*"'


# British spellings of words that this field uses, as their American ones begin: the field's habit is American.
BRITISH = re.compile(r"(?<![\w/.`-])(?:(?:un|re|de)?(?:normal|optim|quant|initial|minim|maxim|standard|vector|recogn|random|parallel|factor"
                     r"|regular|summar|synchron|serial|general|linear|discret|organ|visual|util|token|polar|symmetr|material|custom|special"
                     r"|character|stabil|amort)is(?:e|ed|es|er|ers|ing|ation|ations)|(?:colour|neighbour|behaviour|favour|honour)\w*"
                     r"|grey\w*|(?:centre|metre|kilometre|fibre|licence)s?|centred|labelled|modell(?:ed|ing)|cancelled|analysed?|artefacts?"
                     r"|catalogues?)(?![\w`(/]|[.]\w)", re.IGNORECASE)


def british_words(root):
    """In pages, and in strings of the program that are sentences: [place: word]."""
    root, found = pathlib.Path(root), []
    for path in sorted([*root.glob("*.md"), *root.glob("docs/**/*.md")]):
        for number, line in enumerate(path.read_text().split("\n"), 1):
            found += [f"{path.relative_to(root)}:{number}: {word}" for word in BRITISH.findall(line)]
    for path in files(root):
        for number, line in enumerate(without_comments(path.read_text()).split("\n"), 1):
            said = " ".join(text for text in re.findall(string, line) if " " in text and "#include" not in line)
            found += [f"{path.relative_to(root / 'src' / 'superstep')}:{number}: {word}" for word in BRITISH.findall(said)]
    return found


COUNTS = {"british_words": british_words, "operator_literals": operator_literals}


def findings(root, ceilings):
    """A line for each count that is above its ceiling, with its last places, or below it."""
    lines = []
    for name, count in COUNTS.items():
        places, ceiling = count(root), ceilings[name]
        if len(places) > ceiling:
            lines.append(f"{name}: {len(places)}, more than the {ceiling} of limits.toml: {'; '.join(places[-3:])}")
        elif len(places) < ceiling:
            lines.append(f"{name}: {len(places)}, fewer than the {ceiling} of limits.toml: write {len(places)} there, so that it stays so")
    return lines

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


# Rates said with an article: "samples per second" is the field's habit.
RATE = re.compile(r"\b(?:(?:micro|milli)?seconds|us|ms|[kMGT]?i?B|[kMGT]?FLOP|bits|bytes|joules|once|samples|pictures|images|frames|pixels|voxels"
                  r"|points|values|rows|batches|features|elements|operations|instructions|chips|devices|processes|directions|electrons)"
                  r" an? (?:sample|second|step|epoch|device|tile|chip|rank|thread|call|request|batch|row|layer|channel|replica|node|frame|element"
                  r"|unit|token|core|side|picture|image|atom|bin|class|point|run|group|cycle|block|pixel|crystal|column|line)\b")


def sentences(root):
    """[(place, text)] of what users read: pages, and the strings of the program that have a space."""
    root, found = pathlib.Path(root), []
    for path in sorted([*root.glob("*.md"), *root.glob("docs/**/*.md")]):
        found += [(f"{path.relative_to(root)}:{number}", line) for number, line in enumerate(path.read_text().split("\n"), 1)]
    for path in files(root):
        for number, line in enumerate(without_comments(path.read_text()).split("\n"), 1):
            said = " ".join(text for text in re.findall(string, line) if " " in text and "#include" not in line)
            found.append((f"{path.relative_to(root / 'src' / 'superstep')}:{number}", said))
    return found


def british_words(root):
    """In pages, and in strings of the program that are sentences: [place: word]."""
    return [f"{place}: {word}" for place, text in sentences(root) for word in BRITISH.findall(text)]


def rates_with_an_article(root):
    """As the words above: [place: words]."""
    return [f"{place}: {words}" for place, text in sentences(root) for words in RATE.findall(text)]


COUNTS = {"british_words": british_words, "operator_literals": operator_literals, "rates_with_an_article": rates_with_an_article}


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

#include "superstep/physics/language/language.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "superstep/base/error.h"

namespace superstep::data {
namespace {

// Symbols; those with a number come as singular and plural.
enum Symbol : int {
  sentence,
  clause,
  prepositional,
  adjective,
  preposition,
  relative,
  conjunction,
  noun_phrase,  // and the plural after it, as below
  noun_phrase_plural,
  nominal,
  nominal_plural,
  noun,
  noun_plural,
  determiner,
  determiner_plural,
  verb_phrase,
  verb_phrase_plural,
  transitive,
  transitive_plural,
  reporting,
  reporting_plural,
  relative_clause,
  relative_clause_plural,
  object,
  symbol_count
};

const std::vector<std::string> symbol_names = {
    "S",   "SC",  "PP",  "ADJ",  "P",    "REL",  "CONJ", "NP.s", "NP.p", "NOM.s", "NOM.p", "N.s",
    "N.p", "D.s", "D.p", "VP.s", "VP.p", "TV.s", "TV.p", "RV.s", "RV.p", "RC.s",  "RC.p",  "OBJ"};

// A pronounceable stem, another one for each number: consonant and vowel in turn.
std::string stem(int number) {
  constexpr std::string_view consonants = "bdfgklmnprstvz", vowels = "aeiou";
  std::string text;
  do {
    text += consonants[static_cast<std::size_t>(number) % consonants.size()];
    number /= static_cast<int>(consonants.size());
    text += vowels[static_cast<std::size_t>(number) % vowels.size()];
    number /= static_cast<int>(vowels.size());
  } while (number > 0);
  return text;
}

// Word lists with their share of the open vocabulary; stems end in a vowel, so that the endings keep the
// lists apart.
struct OpenClass {
  double share;
  const char* ending;
};
constexpr OpenClass nouns = {0.25, "n"}, plural_nouns = {0.25, "ns"}, names = {0.06, "m"},
                    plural_names = {0.04, "ms"}, intransitives = {0.07, "ts"},
                    plural_intransitives = {0.07, "t"}, transitives = {0.08, "rs"},
                    plural_transitives = {0.08, "r"}, adjectives = {0.10, "l"};
const std::vector<std::string> determiners = {"the", "a", "this", "every", "some", "no"},
                               plural_determiners = {"these", "all", "most", "few"},
                               prepositions = {"of",    "in",     "with",    "near",
                                               "under", "behind", "without", "beyond"},
                               relatives = {"that", "which"}, conjunctions = {"whether", "how"},
                               reporting_verbs = {"says", "knows", "thinks", "doubts"},
                               plural_reporting_verbs = {"say", "know", "think", "doubt"};

}  // namespace

struct Language::Parts {
  std::vector<std::string> surface = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "."};
  std::vector<WordList> lists;
  std::vector<BinaryRule> binary;
  std::vector<WordRule> words;

  void add_list(int parent, double probability, const std::vector<std::string>& entries, double exponent,
                double shift) {
    lists.emplace_back(static_cast<int>(surface.size()), static_cast<int>(entries.size()), exponent, shift);
    surface.insert(surface.end(), entries.begin(), entries.end());
    words.push_back({parent, static_cast<int>(lists.size()) - 1, probability});
  }
  void add_closed(int parent, const std::vector<std::string>& entries) { add_list(parent, 1, entries, 1, 0); }
};

Language::Parts Language::build(const LanguageSettings& settings) {
  if (settings.vocabulary < 64 || settings.vocabulary > 1'000'000)
    throw Error(ErrorCode::invalid_argument, fmt::format("a vocabulary of {} tokens", settings.vocabulary),
                {}, "take one between 64 and 1,000,000");
  if (!(settings.recursion >= 0 && settings.recursion < 0.3))
    throw Error(ErrorCode::invalid_argument, fmt::format("a recursion of {}", settings.recursion), {},
                "take one below 0.3, so that sentences end");
  Parts parts;
  parts.add_closed(determiner, determiners);
  parts.add_closed(determiner_plural, plural_determiners);
  parts.add_closed(preposition, prepositions);
  parts.add_closed(relative, relatives);
  parts.add_closed(conjunction, conjunctions);
  parts.add_closed(reporting, reporting_verbs);
  parts.add_closed(reporting_plural, plural_reporting_verbs);
  const auto open_words = static_cast<double>(settings.vocabulary - static_cast<int>(parts.surface.size()));
  int used = 0;
  const auto entries = [&](const OpenClass& open, bool last = false) {
    const int rest = settings.vocabulary - static_cast<int>(parts.surface.size());
    const int count = last ? rest : std::max(1, static_cast<int>(open.share * open_words));
    std::vector<std::string> made;
    for (int i = 0; i < count; ++i) made.push_back(stem(used + i) + open.ending);
    used += count;
    return made;
  };
  const auto add_open = [&](int parent, double probability, const std::vector<std::string>& list) {
    parts.add_list(parent, probability, list, settings.zipf_exponent, settings.zipf_shift);
  };
  const double r = settings.recursion, plain = 1 - 2 * r - 0.2;
  // A nominal is a noun, or an adjective and a nominal, or a noun with a phrase or a relative clause.
  for (const int number : {0, 1}) {
    parts.binary.push_back({noun_phrase + number, determiner + number, nominal + number, 0.8});
    parts.binary.push_back({nominal + number, adjective, nominal + number, 0.2});
    parts.binary.push_back({nominal + number, noun + number, prepositional, r});
    parts.binary.push_back({nominal + number, noun + number, relative_clause + number, r});
    parts.binary.push_back({relative_clause + number, relative, verb_phrase + number, 1});
    parts.binary.push_back({verb_phrase + number, transitive + number, object, 0.5});
    parts.binary.push_back({verb_phrase + number, reporting + number, clause, r / 2});
    parts.binary.push_back({sentence, noun_phrase + number, verb_phrase + number, number == 0 ? 0.6 : 0.4});
    // An object is a noun phrase of either number, written out, so that every rule has two symbols.
    parts.binary.push_back({object, determiner + number, nominal + number, number == 0 ? 0.48 : 0.32});
    const std::vector<std::string> noun_words = entries(number == 0 ? nouns : plural_nouns);
    add_open(nominal + number, plain, noun_words);
    // The same nouns again where something follows them: the list is shared.
    parts.words.push_back({noun + number, static_cast<int>(parts.lists.size()) - 1, 1});
    add_open(noun_phrase + number, 0.2, entries(number == 0 ? names : plural_names));
    parts.words.push_back({object, static_cast<int>(parts.lists.size()) - 1, number == 0 ? 0.12 : 0.08});
    add_open(verb_phrase + number, 0.5 - r / 2, entries(number == 0 ? intransitives : plural_intransitives));
    add_open(transitive + number, 1, entries(number == 0 ? transitives : plural_transitives));
  }
  parts.binary.push_back({prepositional, preposition, object, 1});
  parts.binary.push_back({clause, conjunction, sentence, 1});
  add_open(adjective, 1, entries(adjectives, true));
  return parts;
}

Language::Language(const LanguageSettings& settings) : Language(build(settings)) {}

Language::Language(Parts parts)
    : grammar_(symbol_names, std::move(parts.binary), std::move(parts.words), std::move(parts.lists),
               sentence),
      surface_(std::move(parts.surface)) {}

}  // namespace superstep::data

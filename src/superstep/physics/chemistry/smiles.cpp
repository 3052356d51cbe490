#include "superstep/physics/chemistry/smiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "superstep/base/error.h"
#include "superstep/base/printable.h"
#include "superstep/file/atoms/element.h"

namespace superstep::data {
namespace {

constexpr std::string_view bond_symbols = "-=#$:/\\";

BondOrder order_of(char symbol) {
  switch (symbol) {
    case '=': return BondOrder::double_;
    case '#': return BondOrder::triple;
    case '$': return BondOrder::quadruple;
    case ':': return BondOrder::aromatic;
    default: return BondOrder::single;
  }
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Molecule parse() {
    if (text_.empty()) refuse(0, "the SMILES is empty");
    while (at_ < text_.size()) element_of_chain();
    finish();
    settle_aromatic_bonds();
    fill_hydrogens();
    molecule_.perceive();
    return std::move(molecule_);
  }

 private:
  struct RingEnd {
    int atom;
    char symbol;  // 0 when none was written
    std::size_t position;
  };
  struct Branch {
    int atom;
    std::size_t position;
  };
  struct Origin {
    std::size_t position;
    bool organic;  // outside brackets: hydrogens are implied
  };

  [[noreturn]] void refuse(std::size_t position, const std::string& message) const {
    constexpr std::size_t shown = 80;
    const std::string text = printable(text_.substr(0, shown));
    throw Error(ErrorCode::invalid_argument, fmt::format("character {}: {}", position + 1, message),
                fmt::format("SMILES '{}{}'", text, text_.size() > shown ? "..." : ""));
  }

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(char wanted) {
    if (at_ >= text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }

  void element_of_chain() {
    const char c = peek();
    if (c == '(') return open_branch();
    if (c == ')') return close_branch();
    if (c == '.') return end_part();
    if (c == '[') return bracket_atom();
    if (is_digit(c) || c == '%') return ring_end();
    if (c != '\0' && bond_symbols.find(c) != std::string_view::npos) return bond_symbol();
    organic_atom();
  }

  void open_branch() {
    if (previous_ < 0) refuse(at_, "a branch needs an atom before it");
    if (symbol_ != 0) refuse(at_, "a bond symbol stands before a branch; it belongs inside");
    branches_.push_back({previous_, at_++});
    if (peek() == ')') refuse(at_, "the branch is empty");
  }

  void close_branch() {
    if (branches_.empty()) refuse(at_, "')' closes no branch");
    require_no_symbol();
    previous_ = branches_.back().atom;
    branches_.pop_back();
    ++at_;
  }

  void end_part() {
    if (previous_ < 0) refuse(at_, "'.' needs an atom before it");
    require_no_symbol();
    previous_ = -1;
    dot_ = at_++;
  }

  void bond_symbol() {
    if (previous_ < 0) refuse(at_, "a bond needs an atom before it");
    if (symbol_ != 0) refuse(at_, "two bond symbols in a row");
    symbol_position_ = at_;
    symbol_ = text_[at_++];
  }

  void require_no_symbol() const {
    if (symbol_ != 0) refuse(symbol_position_, "this bond leads to no atom");
  }

  // The number of a ring: one digit, %nn or %(n...) of up to five digits.
  int ring_number() {
    if (!take('%')) return text_[at_++] - '0';
    if (take('(')) {
      const int number = digits(1, 5, "a ring number");
      if (!take(')')) refuse(at_, "')' is missing after the ring number");
      return number;
    }
    return digits(2, 2, "a ring number of two digits");
  }

  int digits(int least, int most, const char* what) {
    int value = 0, count = 0;
    for (; count < most && is_digit(peek()); ++count) value = 10 * value + (text_[at_++] - '0');
    if (count < least) refuse(at_, fmt::format("{} is missing", what));
    return value;
  }

  void ring_end() {
    if (previous_ < 0) refuse(at_, "a ring closure needs an atom before it");
    const std::size_t position = at_;
    const int number = ring_number();
    const auto open = rings_.find(number);
    if (open == rings_.end()) {
      rings_[number] = {previous_, symbol_, position};
    } else {
      const RingEnd other = open->second;
      rings_.erase(open);
      close_ring(number, other, position);
    }
    symbol_ = 0;
  }

  void close_ring(int number, const RingEnd& other, std::size_t position) {
    if (other.atom == previous_) refuse(position, fmt::format("ring {} joins an atom to itself", number));
    if (molecule_.bond_between(other.atom, previous_) >= 0)
      refuse(position, fmt::format("ring {} joins two atoms that have a bond already", number));
    if (symbol_ != 0 && other.symbol != 0 && order_of(symbol_) != order_of(other.symbol))
      refuse(position,
             fmt::format("ring {} has another bond symbol at character {}", number, other.position + 1));
    add_bond(other.atom, previous_, symbol_ != 0 ? symbol_ : other.symbol);
  }

  void add_bond(int a, int b, char symbol) {
    molecule_.add_bond(a, b, order_of(symbol));
    unwritten_.push_back(symbol == 0);
  }

  void add_atom(const Atom& atom, std::size_t position, bool organic) {
    const int added = molecule_.add_atom(atom);
    origins_.push_back({position, organic});
    if (previous_ >= 0) add_bond(previous_, added, symbol_);
    symbol_ = 0;
    previous_ = added;
  }

  void organic_atom() {
    const std::size_t position = at_;
    const std::optional<Atom> atom = organic_symbol();
    if (!atom) refuse(position, unknown_character(text_[position]));
    add_atom(*atom, position, true);
  }

  static std::string unknown_character(char c) {
    if (std::isprint(static_cast<unsigned char>(c)) == 0)
      return fmt::format("byte {:#04x} has no meaning here", static_cast<unsigned char>(c));
    return fmt::format("'{}' has no meaning here{}", c,
                       std::isalpha(static_cast<unsigned char>(c)) != 0
                           ? "; elements outside B C N O P S F Cl "
                             "Br I stand in brackets"
                           : "");
  }

  std::optional<Atom> organic_symbol() {
    if (take('*')) return Atom{};
    for (const std::string_view symbol : {"Cl", "Br", "B", "C", "N", "O", "P", "S", "F", "I"})
      if (text_.substr(at_, symbol.size()) == symbol) return taken(symbol, false);
    for (const std::string_view symbol : {"b", "c", "n", "o", "p", "s"})
      if (text_.substr(at_, 1) == symbol) return taken(symbol, true);
    return std::nullopt;
  }

  // Steps over a symbol and makes its atom.
  Atom taken(std::string_view symbol, bool aromatic) {
    at_ += symbol.size();
    std::string name(symbol);
    name[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(name[0])));
    Atom atom;
    atom.element = element_from_symbol(name).value_or(0);
    atom.aromatic = aromatic;
    return atom;
  }

  void bracket_atom() {
    const std::size_t position = at_++;
    const int isotope = is_digit(peek()) ? digits(1, 3, "an isotope") : 0;
    Atom atom = bracket_symbol();
    atom.isotope = isotope;
    while (take('@')) continue;
    if (take('H')) atom.hydrogens = is_digit(peek()) ? digits(1, 1, "a count") : 1;
    atom.charge = charge();
    if (take(':')) digits(1, 9, "an atom class");
    if (!take(']')) refuse(at_, "']' is missing");
    add_atom(atom, position, false);
  }

  Atom bracket_symbol() {
    if (take('*')) return Atom{};
    for (const std::string_view symbol : {"se", "as", "te"})
      if (text_.substr(at_, 2) == symbol) return taken(symbol, true);
    for (const std::size_t length : {2u, 1u})
      if (at_ + length <= text_.size() && element_from_symbol(text_.substr(at_, length)))
        return taken(text_.substr(at_, length), false);
    for (const std::string_view symbol : {"b", "c", "n", "o", "p", "s"})
      if (text_.substr(at_, 1) == symbol) return taken(symbol, true);
    refuse(at_, "no element of this symbol");
  }

  // +, -, +2, ++ and so on; 0 when there is none.
  int charge() {
    const char sign = peek();
    if (sign != '+' && sign != '-') return 0;
    const std::size_t position = at_;
    int size = 0;
    while (take(sign)) ++size;
    if (size == 1 && is_digit(peek())) size = digits(1, 2, "a charge");
    if (size > 15) refuse(position, "a charge over 15");
    return sign == '+' ? size : -size;
  }

  void finish() {
    require_no_symbol();
    if (!branches_.empty()) refuse(branches_.back().position, "this branch is never closed");
    if (!rings_.empty())
      refuse(rings_.begin()->second.position, fmt::format("ring {} is never closed", rings_.begin()->first));
    if (previous_ < 0) refuse(dot_, "'.' needs an atom after it");
  }

  // Unwritten bonds between aromatic atoms become aromatic where they close a ring of such bonds.
  void settle_aromatic_bonds() {
    std::vector<bool> candidates(molecule_.bonds().size());
    for (int i = 0; i < molecule_.bond_count(); ++i) {
      const Bond& bond = molecule_.bond(i);
      candidates[index(i)] = molecule_.atom(bond.a).aromatic && molecule_.atom(bond.b).aromatic &&
                             (unwritten_[index(i)] || bond.order == BondOrder::aromatic);
    }
    const std::vector<bool> cyclic = bonds_on_cycles(molecule_, candidates);
    for (int i = 0; i < molecule_.bond_count(); ++i) {
      Bond& bond = molecule_.bond(i);
      if (unwritten_[index(i)] && cyclic[index(i)]) bond.order = BondOrder::aromatic;
      if (bond.order == BondOrder::aromatic && !cyclic[index(i)])
        refuse(origins_[index(bond.b)].position, "an aromatic bond outside a ring of aromatic atoms");
    }
    for (int i = 0; i < molecule_.atom_count(); ++i)
      if (molecule_.atom(i).aromatic && !has_aromatic_bond(i))
        refuse(origins_[index(i)].position, "an aromatic atom outside a ring of aromatic atoms");
  }

  bool has_aromatic_bond(int atom) const {
    return std::ranges::any_of(molecule_.neighbors(atom), [&](const Molecule::Neighbor& neighbor) {
      return molecule_.bond(neighbor.bond).order == BondOrder::aromatic;
    });
  }

  static std::size_t index(int position) { return static_cast<std::size_t>(position); }

  void fill_hydrogens() {
    for (int i = 0; i < molecule_.atom_count(); ++i) {
      if (!origins_[index(i)].organic) continue;
      const std::optional<int> hydrogens = implied_hydrogens(molecule_, i);
      if (!hydrogens)
        refuse(origins_[index(i)].position,
               fmt::format("{} has too many bonds", element_symbol(molecule_.atom(i).element)));
      molecule_.atom(i).hydrogens = *hydrogens;
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  Molecule molecule_;
  std::vector<Origin> origins_;
  std::vector<bool> unwritten_;  // of each bond: no symbol was written
  int previous_ = -1;
  char symbol_ = 0;
  std::size_t symbol_position_ = 0, dot_ = 0;
  std::vector<Branch> branches_;
  std::map<int, RingEnd> rings_;
};

}  // namespace

Molecule parse_smiles(std::string_view smiles) { return Parser(smiles).parse(); }

}  // namespace superstep::data

#include "superstep/file/atoms/extxyz.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <fstream>
#include <iterator>

#include "superstep/base/error.h"
#include "superstep/base/system/regular_file.h"
#include "superstep/base/text.h"
#include "superstep/file/atoms/element.h"

namespace superstep::data {
namespace {

std::vector<std::string_view> words_of(std::string_view text) {
  constexpr std::string_view blanks = " \t";
  std::vector<std::string_view> words;
  for (std::size_t at = text.find_first_not_of(blanks); at != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_of(blanks, at), text.size());
    words.push_back(text.substr(at, end - at));
    at = text.find_first_not_of(blanks, end);
  }
  return words;
}

char closing_of(char opening) {
  switch (opening) {
    case '"': return '"';
    case '\'': return '\'';
    case '{': return '}';
    case '[': return ']';
    default: return 0;
  }
}

// key=value pairs; a value with blanks stands in quotes or brackets, a key alone means true.
std::map<std::string, std::string> pairs_of(std::string_view text) {
  std::map<std::string, std::string> pairs;
  std::size_t at = 0;
  while ((at = text.find_first_not_of(" \t", at)) != std::string_view::npos) {
    const std::size_t key_end = std::min(text.find_first_of("= \t", at), text.size());
    const std::string key(text.substr(at, key_end - at));
    at = key_end;
    if (at >= text.size() || text[at] != '=') {
      pairs[key] = "T";
      continue;
    }
    ++at;
    const char closing = at < text.size() ? closing_of(text[at]) : '\0';
    if (closing != 0) ++at;
    const std::size_t end =
        std::min(closing != 0 ? text.find(closing, at) : text.find_first_of(" \t", at), text.size());
    pairs[key] = text.substr(at, end - at);
    at = std::min(end + (closing != 0 ? 1 : 0), text.size());
  }
  return pairs;
}

std::string vector_text(const Cartesian& v) { return fmt::format("{} {} {}", v.x, v.y, v.z); }

bool needs_quotes(const std::string& value) {
  return value.empty() || value.find_first_of(" \t=\"'{}[]") != std::string::npos;
}

}  // namespace

// Where in a line the things stand that are read; -1 when they do not.
struct XyzReader::Columns {
  int species = 0, atomic_number = -1, position = 1, forces = -1, velocities = -1;
  int count = 4;
  bool exact = false;  // a line has `count` words, not at least
};

XyzReader::XyzReader(const std::filesystem::path& path)
    : XyzReader(std::make_unique<std::ifstream>(open_regular_file(path)), path.string()) {}

XyzReader::XyzReader(std::unique_ptr<std::istream> stream, std::string where)
    : stream_(std::move(stream)), where_(std::move(where)) {}

void XyzReader::refuse(const std::string& message) const {
  throw Error(ErrorCode::bad_file, message, fmt::format("{}, line {}", where_, line_));
}

std::string XyzReader::require_line(const char* what) {
  std::string text;
  ++line_;
  constexpr std::size_t longest_line = std::size_t{16} << 20;  // bytes (chosen): no file of atoms has such
  std::streambuf& in = *stream_->rdbuf();
  int c = in.sbumpc();
  if (c == std::char_traits<char>::eof()) refuse(fmt::format("the file ends where {} should stand", what));
  for (; c != '\n' && c != std::char_traits<char>::eof(); c = in.sbumpc()) {
    if (text.size() == longest_line) refuse("the line is longer than 16 MB: is it a file of atoms at all?");
    text.push_back(static_cast<char>(c));
  }
  if (!text.empty() && text.back() == '\r') text.pop_back();
  return text;
}

double XyzReader::number(std::string_view text) const {
  double value = 0;
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    refuse(fmt::format("'{}' is not a number", text));
  return value;
}

std::int64_t XyzReader::read_count(const std::string& text) const {
  constexpr std::int64_t most = 1'000'000'000;
  const auto words = words_of(text);
  std::int64_t count = -1;
  if (words.size() == 1) {
    const auto [end, code] = std::from_chars(words[0].data(), words[0].data() + words[0].size(), count);
    if (code != std::errc() || end != words[0].data() + words[0].size()) count = -1;
  }
  if (count < 0 || count > most)
    refuse(fmt::format("a number of atoms should stand here, not '{}'", text.substr(0, 40)));
  return count;
}

XyzReader::Columns XyzReader::read_comment(const std::string& text, XyzFrame& frame) const {
  frame.info = pairs_of(text);
  const auto properties = frame.info.find("Properties");
  if (properties == frame.info.end()) {
    frame.info = {{"comment", text}};
    return {};
  }
  Columns columns{-1, -1, -1, -1, -1, 0, true};
  const std::vector<std::string> parts = split(properties->second, ':');
  if (parts.size() % 3 != 0) refuse("Properties is not a list of name:type:count");
  for (std::size_t i = 0; i < parts.size(); i += 3) {
    const double width = number(parts[i + 2]);
    if (!(width >= 1 && width <= 1000) || width != std::floor(width))
      refuse("Properties has a count out of range");
    const auto is = [&](std::string_view name, double wanted) { return parts[i] == name && width == wanted; };
    if (is("species", 1)) columns.species = columns.count;
    if (is("Z", 1)) columns.atomic_number = columns.count;
    if (is("pos", 3)) columns.position = columns.count;
    if (is("forces", 3) || is("force", 3)) columns.forces = columns.count;
    if (is("velo", 3)) columns.velocities = columns.count;
    columns.count += static_cast<int>(width);
  }
  if (columns.position < 0) refuse("Properties has no pos:R:3");
  if (columns.species < 0 && columns.atomic_number < 0)
    refuse("Properties has neither species:S:1 nor Z:I:1");
  frame.info.erase(properties);
  return columns;
}

void XyzReader::read_atom(const std::string& text, const Columns& columns, XyzFrame& frame) const {
  const auto words = words_of(text);
  const int count = static_cast<int>(words.size());
  if (count < columns.count || (columns.exact && count != columns.count))
    refuse(fmt::format("{} words where an atom has {}", count, columns.count));
  const auto word = [&](int place) { return words[static_cast<std::size_t>(place)]; };
  const auto vector = [&](int place) {
    return Cartesian{number(word(place)), number(word(place + 1)), number(word(place + 2))};
  };
  if (columns.species >= 0) {
    const std::optional<int> element = element_from_symbol(word(columns.species));
    if (!element) refuse(fmt::format("'{}' is no element", word(columns.species)));
    frame.configuration.elements.push_back(*element);
  } else {
    const double z = number(word(columns.atomic_number));
    if (!(z >= 1 && z <= element_count)) refuse(fmt::format("{} is no atomic number", z));
    frame.configuration.elements.push_back(static_cast<int>(z));
  }
  frame.configuration.positions.push_back(vector(columns.position));
  if (columns.forces >= 0) frame.labels.forces.push_back(vector(columns.forces));
  if (columns.velocities >= 0) frame.velocities.push_back(vector(columns.velocities));
}

bool XyzReader::next(XyzFrame& frame) {
  frame = {};
  std::string text;
  do {
    if (stream_->peek() == std::char_traits<char>::eof()) return false;
    text = require_line("a number of atoms");
  } while (words_of(text).empty());
  const std::int64_t count = read_count(text);
  const Columns columns = read_comment(require_line("the comment of a frame"), frame);
  const auto numbers = [&](const char* key, std::span<double> into) {
    const auto found = frame.info.find(key);
    if (found == frame.info.end()) return false;
    const auto words = words_of(found->second);
    if (words.size() != into.size())
      refuse(fmt::format("{} has {} numbers, not {}", key, words.size(), into.size()));
    for (std::size_t i = 0; i < into.size(); ++i) into[i] = number(words[i]);
    frame.info.erase(found);
    return true;
  };
  std::array<double, 9> nine{};
  if (numbers("Lattice", nine))
    frame.configuration.cell =
        Cell{{nine[0], nine[1], nine[2]}, {nine[3], nine[4], nine[5]}, {nine[6], nine[7], nine[8]}};
  if (numbers("virial", nine)) frame.labels.virial = nine;
  double energy = 0;
  if (numbers("energy", std::span<double>(&energy, 1))) frame.labels.energy = energy;
  if (const auto pbc = frame.info.find("pbc"); pbc != frame.info.end()) {
    if (pbc->second == "F F F") frame.configuration.cell.reset();
    frame.info.erase(pbc);
  }
  for (std::int64_t i = 0; i < count; ++i) read_atom(require_line("an atom"), columns, frame);
  return true;
}

std::vector<XyzFrame> read_xyz(const std::filesystem::path& path) {
  XyzReader reader(path);
  std::vector<XyzFrame> frames;
  for (XyzFrame frame; reader.next(frame);) frames.push_back(std::move(frame));
  return frames;
}

std::string format_xyz(const XyzFrame& frame) {
  const auto& [elements, positions, cell] = frame.configuration;
  const bool forces = !frame.labels.forces.empty(), velocities = !frame.velocities.empty();
  std::string text = fmt::format("{}\n", positions.size());
  if (cell)
    text += fmt::format("Lattice=\"{} {} {}\" ", vector_text(cell->a), vector_text(cell->b),
                        vector_text(cell->c));
  text += fmt::format("Properties=species:S:1:pos:R:3{}{}", velocities ? ":velo:R:3" : "",
                      forces ? ":forces:R:3" : "");
  if (frame.labels.energy) text += fmt::format(" energy={}", *frame.labels.energy);
  if (frame.labels.virial) text += fmt::format(" virial=\"{}\"", fmt::join(*frame.labels.virial, " "));
  for (const auto& [key, value] : frame.info)
    text += needs_quotes(value) ? fmt::format(" {}=\"{}\"", key, value) : fmt::format(" {}={}", key, value);
  text += cell ? " pbc=\"T T T\"\n" : " pbc=\"F F F\"\n";
  for (std::size_t i = 0; i < positions.size(); ++i) {
    text += fmt::format("{} {}", element_symbol(elements[i]), vector_text(positions[i]));
    if (velocities) text += " " + vector_text(frame.velocities[i]);
    if (forces) text += " " + vector_text(frame.labels.forces[i]);
    text += '\n';
  }
  return text;
}

}  // namespace superstep::data

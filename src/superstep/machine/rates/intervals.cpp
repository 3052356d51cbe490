#include "superstep/machine/rates/intervals.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "superstep/base/error.h"
#include "superstep/base/text.h"
#include "superstep/machine/built_in.h"
#include "superstep/machine/rates/kept.h"

namespace superstep::machine {
namespace {

constexpr const char* everything = "all";
constexpr std::size_t least_cells = 20;  // fewer say little of a tenth at either side
constexpr const char* header =
    "# Factors on predictions of the laws between which 80 % of the published values lay, of cells whose "
    "model or "
    "machine was\n"
    "# left out of the fit; and (measured) of which machines the program has seen calls.\n"
    "class,low,high,cells\n";
constexpr std::string_view measured_prefix = "measured ";

double number_in(const std::string& text, const std::string& where) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= 0))
    throw Error(ErrorCode::bad_file, fmt::format("'{}' is no number from 0", text), where);
  return value;
}

}  // namespace

std::string spread_name(const std::string& family, const std::string& software, bool measured_machine) {
  return fmt::format("{}{}{}, unseen {}", family, software.empty() ? "" : " by ", software,
                     measured_machine ? "model" : "machine");
}

bool Spreads::measured(const std::string& family, const std::string& machine) const {
  return std::ranges::find(measured_, family + " | " + machine) != measured_.end();
}

const Spread& Spreads::of(const std::string& family, const std::string& software, bool measured_machine,
                          std::string& name) const {
  static const Spread unknown{.low = 0.5, .high = 2, .cells = 0};  // where nothing was kept: chosen
  for (const std::string& tried :
       {spread_name(family, software, measured_machine), spread_name(family, {}, measured_machine),
        spread_name(everything, {}, measured_machine)}) {
    name = tried;
    if (const auto found = spreads_.find(tried);
        found != spreads_.end() && found->second.cells >= least_cells)
      return found->second;
  }
  return unknown;
}

std::string spreads_text(const Spreads& spreads) {
  std::string text = header;
  for (const auto& [name, spread] : spreads.all()) {
    std::string said = name;
    std::ranges::replace(said, ',', ';');
    text += fmt::format("{},{:.3f},{:.3f},{}\n", said, spread.low, spread.high, spread.cells);
  }
  for (const std::string& name : spreads.all_measured())
    text += fmt::format("{}{},1,1,0\n", measured_prefix, name);
  return text;
}

void read_spreads(std::string_view text, const std::string& where, Spreads& to) {
  std::size_t number = 0;
  for (const std::string& line : split(text, '\n')) {
    ++number;
    if (line.empty() || line.front() == '#' || line.starts_with("class,")) continue;
    const std::string place = fmt::format("{}:{}", where, number);
    const std::vector<std::string> cells = split(line, ',');
    constexpr std::size_t columns = 4;  // of the header
    if (cells.size() != columns)
      throw Error(ErrorCode::bad_file, fmt::format("has {} cells of {}", cells.size(), columns), place);
    std::string name = cells[0];
    std::ranges::replace(name, ';', ',');
    const Spread spread{number_in(cells[1], place), number_in(cells[2], place),
                        static_cast<std::size_t>(number_in(cells[3], place))};
    if (name.starts_with(measured_prefix)) {
      const std::string what = name.substr(measured_prefix.size());
      const std::size_t bar = what.find(" | ");
      if (bar == std::string::npos) throw Error(ErrorCode::bad_file, "names no machine", place);
      to.add_measured(what.substr(0, bar), what.substr(bar + 3));
    } else if (spread.low > 0 && spread.high >= spread.low) {
      to.add(name, spread);
    } else {
      throw Error(ErrorCode::bad_file, "factors are above zero, the low one first", place);
    }
  }
}

const Spreads& kept_spreads() {
  static const Spreads spreads = [] {
    Spreads all;
    for (const BuiltIn& file : rate_files())
      if (file.id == "intervals") read_spreads(file.text, "machines/rates/intervals.csv", all);
    return all;
  }();
  return spreads;
}

LawAnswer answer_by_law(const LawCall& call, const MachineFacts& machine, const std::string& software) {
  LawAnswer answer{.seconds = kept_laws().seconds_by_neighbours(call.call)};
  answer.measured_machine = kept_spreads().measured(call.family, machine.id);
  const Spread& spread = kept_spreads().of(call.family, software, answer.measured_machine, answer.spread);
  answer.low = answer.seconds * spread.low;
  answer.high = answer.seconds * spread.high;
  answer.cells = spread.cells;
  return answer;
}

}  // namespace superstep::machine

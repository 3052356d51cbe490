#include "superstep/machine/rates/sheet_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace superstep::machine {
namespace {

constexpr std::array<std::string_view, 4> styles{"kernel-by-kernel", "systolic", "spatial-grid", "processor"};

// What a family has where a sheet says nothing: guesses, of the order of the machines that have files.
constexpr double usual_clock = 1.5e9, usual_link = 16e9, usual_host_rate = 16e9, usual_efficiency = 0.75,
                 memory_of_processor = 256e9, least_processors = 1, lanes_of_matrix_units = 16;

class Text {
 public:
  explicit Text(const SheetFacts& sheet) {
    const auto plain = [](std::string words) {
      for (char& letter : words)
        if (letter == '"' || letter == '\\') letter = '\'';
      return words;
    };
    text_ = fmt::format(
        "id = \"{}\"\nname = \"{}\"\nstyle = \"kernel-by-kernel\"\n[sources]\nSHEET = \"{}\"\n[constants]\n",
        plain(sheet.facts.id), plain(sheet.facts.name), plain(sheet.source));
  }
  // What the sheet says, or else a guess; 0 of both: the style's default.
  void add(const char* name, const char* unit, double stated, double otherwise) {
    const bool said = stated > 0;
    if (!said && otherwise <= 0) return;
    text_ += fmt::format("{} = {{ value = {:.6e}, unit = \"{}\", kind = \"{}\", source = \"{}\" }}\n", name,
                         said ? stated : otherwise, unit, said ? "DS" : "GU", said ? "SHEET" : "");
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace

bool can_be_made(const MachineFacts& facts) {
  const bool keeps = facts.memory > 0 || facts.style == "processor";
  return std::ranges::find(styles, facts.style) != styles.end() && facts.memory_rate > 0 && keeps &&
         facts.peak("fp16") > 0;
}

Machine machine_of(const SheetFacts& sheet) {
  const MachineFacts& facts = sheet.facts;
  if (!can_be_made(facts))
    throw Error(
        ErrorCode::unsupported,
        fmt::format("a data sheet alone is known of it, too little for a machine of style {}", facts.style),
        facts.id, "superstep list machines has those with files; a file of your own: docs/add-a-machine.md");
  const double half = facts.peak("fp16");
  Text text(sheet);
  text.add("processors", "", facts.processors, least_processors);
  text.add("clock", "Hz", facts.clock, usual_clock);
  text.add("peak_f32", "FLOP/s", facts.peak_f32, half / lanes_of_matrix_units);
  text.add("peak_tf32", "FLOP/s", facts.peak_tf32, 0);
  text.add("peak_f16", "FLOP/s", half, 0);
  text.add("peak_i8", "FLOP/s", facts.peak_i8, 0);
  text.add("matrix_efficiency", "", 0, usual_efficiency);
  text.add("memory", "B", facts.memory, memory_of_processor);
  text.add("memory_rate", "B/s", facts.memory_rate, 0);
  text.add("cache", "B", facts.cache, 0);
  text.add("link_rate", "B/s", facts.link_rate, usual_link);
  text.add("host_rate", "B/s", 0, usual_host_rate);
  text.add("group_units", "", facts.units_joined, 0);
  Machine machine = parse_machine(text.text(), facts.id);
  machine.set_file("the data sheet of " + facts.id + " (machines/rates/machines.csv)");
  return machine;
}

}  // namespace superstep::machine

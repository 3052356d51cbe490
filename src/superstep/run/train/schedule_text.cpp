#include "superstep/run/train/schedule_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "superstep/base/error.h"
#include "superstep/base/option_range.h"
#include "superstep/base/text.h"

namespace superstep::run {
namespace {

using workload::Schedule;
using Kind = Schedule::Kind;

constexpr std::string_view one_cycle = "one_cycle";
constexpr std::array kinds = {Kind::constant,    Kind::linear,      Kind::cosine, Kind::triangular,
                              Kind::triangular2, Kind::exponential, Kind::stairs, Kind::plateau};

// A constant of schedules, and the kinds that have it: any where none is named.
struct Constant {
  const char* name;
  double Schedule::*place;
  NumberRange range;
  std::vector<Kind> kinds = {};
};

const std::vector<Constant>& constants() {
  constexpr double below_one = 0x1.fffffffffffffp-1;
  static const std::vector<Constant> all = {
      {"warm_up", &Schedule::warm_up_epochs, {.low = 0}},
      {"warm_up_share", &Schedule::warm_up_share, {0, below_one}},
      {"warm_up_from", &Schedule::warm_up_from, {.low = 0}},
      {"final",
       &Schedule::final_share,
       {0, 1},
       {Kind::linear, Kind::cosine, Kind::triangular, Kind::triangular2, Kind::exponential, Kind::stairs,
        Kind::plateau}},
      {"period",
       &Schedule::period,
       {.low = 0, .open_low = true},
       {Kind::triangular, Kind::triangular2, Kind::exponential, Kind::stairs}},
      {"factor",
       &Schedule::factor,
       {.low = 0, .high = 1, .open_low = true},
       {Kind::exponential, Kind::stairs, Kind::plateau}},
  };
  return all;
}

bool has(Kind kind, const Constant& constant) {
  return constant.kinds.empty() || std::ranges::find(constant.kinds, kind) != constant.kinds.end();
}

// One schedule's text, taken apart.
class Reader {
 public:
  Reader(std::string_view text, double peak) : text_(text), peak_(peak) {}

  Schedule read() {
    const std::size_t colon = text_.find(':');
    begin(text_.substr(0, colon));
    if (colon != std::string_view::npos)
      for (const std::string& part : split(text_.substr(colon + 1), ',')) take(part);
    finish();
    return schedule_;
  }

 private:
  [[noreturn]] void refuse(const std::string& why, const std::string& hint = {}) const {
    throw Error(ErrorCode::invalid_argument, why, fmt::format("--schedule {}", text_), hint);
  }

  void begin(std::string_view name) {
    if (name == one_cycle) {
      schedule_ = {.kind = Kind::cosine, .final_share = 4e-6, .warm_up_share = 0.3, .warm_up_from = 0.04};
      return;
    }
    std::vector<std::string> names;
    for (const Kind kind : kinds) {
      names.emplace_back(name_of(kind));
      if (names.back() != name) continue;
      const bool falls = kind == Kind::exponential || kind == Kind::stairs || kind == Kind::plateau;
      schedule_ = {.kind = kind, .factor = falls ? 0.1 : 1, .patience = kind == Kind::plateau ? 10 : 0};
      return;
    }
    names.emplace_back(one_cycle);
    refuse("there is no such schedule", unknown_name_hint(name, names));
  }

  void take(const std::string& part) {
    const std::size_t equals = part.find('=');
    if (equals == std::string::npos)
      refuse(fmt::format("'{}' is no NAME=VALUE", part), "write, for example, cosine:warm_up=5,final=0.01");
    const std::string name = part.substr(0, equals), value = part.substr(equals + 1);
    if (std::ranges::find(given_, name) != given_.end()) refuse(fmt::format("{} is given twice", name));
    given_.push_back(name);
    if (name == "patience" && schedule_.kind == Kind::plateau) return take_patience(value);
    std::vector<std::string> known;
    for (const Constant& constant : constants()) {
      if (!has(schedule_.kind, constant)) continue;
      known.emplace_back(constant.name);
      if (constant.name != name) continue;
      if (const std::string fault = why_not(value, constant.range); !fault.empty())
        refuse(fmt::format("{} {}", name, fault));
      schedule_.*constant.place = *finite_number(value);
      return;
    }
    if (schedule_.kind == Kind::plateau) known.emplace_back("patience");
    refuse(fmt::format("{} has no constant '{}'", text_.substr(0, text_.find(':')), name),
           unknown_name_hint(name, known));
  }

  void take_patience(const std::string& value) {
    const auto epochs = whole_number(value);
    if (!epochs || *epochs < 1 || *epochs > 1'000'000) refuse("patience must be a whole number from 1 on");
    schedule_.patience = static_cast<int>(*epochs);
  }

  bool was_given(std::string_view name) const { return std::ranges::find(given_, name) != given_.end(); }

  void finish() {
    const auto period = std::ranges::find(constants(), std::string_view("period"), &Constant::name);
    if (has(schedule_.kind, *period) && !was_given("period"))
      refuse("has no period", "say after how many epochs: period=10");
    if (was_given("warm_up") && was_given("warm_up_share"))
      refuse("has two lengths of its warm-up", "give warm_up (epochs) or warm_up_share (of all steps)");
    if (was_given("warm_up")) schedule_.warm_up_share = 0;
    if (was_given("warm_up_from") && schedule_.warm_up_epochs == 0 && schedule_.warm_up_share == 0)
      refuse("warm_up_from is of a warm-up, and there is none", "say how long it is: warm_up=5");
    schedule_.warm_up_from *= peak_;
  }

  std::string_view text_;
  double peak_;
  Schedule schedule_;
  std::vector<std::string> given_;
};

}  // namespace

workload::Schedule schedule_from_text(std::string_view text, double peak) {
  return Reader(text, peak).read();
}

}  // namespace superstep::run

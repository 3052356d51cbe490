// What a prediction by a law says: lines with intervals, where it is from, and its result.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "superstep/base/metric.h"
#include "superstep/cli/command.h"
#include "superstep/machine/rates/intervals.h"
#include "superstep/machine/rates/machines.h"

namespace superstep::cli {

class LawReport {
 public:
  LawReport(const machine::SheetFacts& sheet, const machine::LawAnswer& answer)
      : sheet_(sheet), answer_(answer) {}

  template <class... Values>
  void say(fmt::format_string<Values...> text, Values&&... values) const {
    if (!common().quiet) fmt::print("{}\n", fmt::format(text, std::forward<Values>(values)...));
  }
  // Amount over seconds, and seconds over amount, with the answer's interval; `seconds` 0: those of the
  // answer.
  void add_rate(const std::string& name, double amount, const std::string& unit, double seconds = 0);
  void add_time(const std::string& name, double amount, double seconds = 0);
  // The law, its data sheet and its class of interval; writes the result.
  void finish(const std::string& workload, const machine::LawCall& call, nlohmann::json config) const;

 private:
  void add(const std::string& name, double value, double low, double high, const std::string& unit);

  const machine::SheetFacts& sheet_;
  machine::LawAnswer answer_;
  std::vector<Metric> metrics_;
};

}  // namespace superstep::cli

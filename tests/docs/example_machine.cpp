// The machine of docs/add-a-machine.md.
#include <gtest/gtest.h>

#include "superstep/machine/machine.h"
#include "superstep/machine/predict.h"
#include "superstep/workload/workload.h"

namespace superstep::docs {
namespace {

// [add-a-machine]
// A GC200 with twice the exchange rate and half the clock: what would that do?
constexpr const char* wide_exchange = R"toml(
id = "wide-exchange"
name = "GC200 with a wider exchange"
style = "bulk-synchronous"
based_on = "gc200"

[sources]
STUDY = "a what-if study"

[constants]
clock = { value = 0.6625e9, unit = "Hz", kind = "DE", source = "STUDY" }
exchange_rate = { value = 8, unit = "B/cycle", kind = "DE", source = "STUDY", note = "twice the GC200's" }
)toml";
// [end]

TEST(ExampleMachine, IsReadAndPredicts) {
  const machine::Machine wide = machine::parse_machine(wide_exchange, "wide-exchange.toml");
  const machine::Machine gc200 = machine::find_machine("gc200");
  const graph::Graph model = workload::build_model(workload::find_workload("mlp"), 64);
  const machine::PredictSettings settings{.precision = machine::precision_from_name("f16"), .micro_batch = 64, .pipeline = {}};
  const machine::Prediction a = machine::predict(gc200, model, settings), b = machine::predict(wide, model, settings);
  EXPECT_GT(b.step_seconds, a.step_seconds);
  EXPECT_LT(b.step_seconds, 2 * a.step_seconds);
}

}  // namespace
}  // namespace superstep::docs

#include <gtest/gtest.h>

#include <set>

#include "superstep/machine/machine.h"
#include "superstep/machine/numerics.h"
#include "tests/expect_error.h"

namespace superstep::machine {
namespace {

using numerics::Format;
using numerics::Order;
using numerics::Rounding;

TEST(MachineNumerics, are_known_of_the_machines_that_papers_compare) {
  for (const char* const id : {"gc200", "bow", "gc2", "a100-40gb", "a100-80gb", "v100", "sn10", "cs2",
                               "groqchip", "gaudi1", "gaudi2", "gaudi3"})
    EXPECT_FALSE(find_machine(id).numerics().empty()) << id;
  EXPECT_TRUE(find_machine("h100").numerics().empty());
}

// What is said of a mode is what is computed, and nothing is published without a source.
TEST(MachineNumerics, state_every_setting_and_where_it_is_from) {
  for (const Machine& machine : machines())
    for (const NumericsMode& mode : machine.numerics()) {
      std::set<std::string> stated;
      for (const NumericsFact& fact : mode.facts) {
        stated.insert(fact.setting);
        EXPECT_EQ(fact.kind == Kind::guess, fact.source.empty())
            << machine.id() << " " << mode.name << " " << fact.setting;
        for (const numerics::Setting& setting : numerics::settings())
          if (setting.name == fact.setting) {
            EXPECT_EQ(fact.value, numerics::get(mode.arithmetic, fact.setting));
          }
      }
      EXPECT_EQ(numerics::settings().size() - 1 + numerics_habits().size(), stated.size())
          << machine.id();  // no seed
    }
}

TEST(MachineNumerics, are_found_by_machine_mode_and_switch) {
  EXPECT_EQ("gc200-f16", find_arithmetic("gc200").name);
  EXPECT_EQ("gc2-f16", find_arithmetic("gc2").name);
  EXPECT_EQ("a100-40gb-tf32", find_arithmetic("a100").name);
  EXPECT_EQ("a100-80gb-f16", find_arithmetic("a100-80gb-f16").name);
  EXPECT_EQ("groqchip-f16", find_arithmetic("groq").name);
  EXPECT_EQ("gaudi1-bf16", find_arithmetic("gaudi").name);
  const numerics::Arithmetic ipu = find_arithmetic("gc200-16.16").arithmetic;
  EXPECT_EQ(Format::f16, ipu.sums.format);
  EXPECT_EQ(16, ipu.chunk);
  const numerics::Arithmetic a100 = find_arithmetic("a100-tf32").arithmetic;
  EXPECT_EQ(Order::aligned, a100.order);
  EXPECT_EQ(Format::tf32, a100.operands.format);
  EXPECT_EQ(Format::f32, a100.results.format);
  const numerics::Arithmetic switched = find_arithmetic("gc200-sr:chunk=4,seed=7").arithmetic;
  EXPECT_EQ(Rounding::stochastic, switched.sums.rounding);
  EXPECT_EQ(4, switched.chunk);
  EXPECT_EQ(7u, switched.seed);
}

TEST(MachineNumerics, refuse_what_there_is_not) {
  const auto find = [](const char* name) { return [name] { find_arithmetic(name); }; };
  expect_error(ErrorCode::invalid_argument, {"tpu"}, find("tpu"));
  expect_error(ErrorCode::invalid_argument, {"gc200", "f64"}, find("gc200-f64"));
  expect_error(ErrorCode::invalid_argument, {"h100", "nothing is known"}, find("h100"));
  expect_error(ErrorCode::invalid_argument, {"chunk", "'0'"}, find("f16:chunk=0"));
  expect_error(ErrorCode::invalid_argument, {"chunk"}, find("f16:chunk"));
  expect_error(ErrorCode::invalid_argument, {"aligned"}, find("f32:order=aligned"));
  expect_error(ErrorCode::invalid_argument, {"there is no such"}, find(""));
}

std::string file_with(const std::string& numerics) {
  return "id = \"mine\"\nname = \"Mine\"\nstyle = \"bulk-synchronous\"\nbased_on = \"gc200\"\n" + numerics;
}

TEST(MachineNumerics, of_a_file_take_the_place_of_those_it_is_based_on) {
  EXPECT_EQ(4u, parse_machine(file_with("[constants]\n"), "mine").numerics().size());
  const std::string mode = "numerics_default = \"f16\"\n[constants]\n[numerics.f16]\n";
  expect_error(ErrorCode::bad_file, {"numerics.f16.operands", "missing"},
               [&] { parse_machine(file_with(mode), "mine"); });
  const auto refused = [&](const std::string& line, const std::string& part) {
    expect_error(ErrorCode::bad_file, {part}, [&] { parse_machine(file_with(mode + line), "mine"); });
  };
  refused("operand = { value = \"f16\", kind = \"GU\" }\n", "operand");
  refused("operands = { value = \"f16\", kind = \"XX\" }\n", "XX");
  refused("operands = { value = \"f16\", kind = \"DS\" }\n", "only a guess");
  refused("operands = { value = \"f16\", kind = \"DS\", source = \"NOBODY\" }\n", "NOBODY");
  refused("based_on = \"bf16\"\n", "bf16");
  expect_error(ErrorCode::bad_file, {"numerics_default"}, [&] {
    parse_machine(file_with("numerics_default = \"f8\"\n[constants]\n[numerics.f16]\n"), "mine");
  });
}

std::string whole_mode(const std::string& order) {
  std::string text = "numerics_default = \"m\"\n[constants]\n[numerics.m]\n";
  const numerics::Arithmetic f16 = *numerics::plain_arithmetic("f16");
  for (const numerics::Setting& setting : numerics::settings()) {
    const std::string value = setting.name == "order" ? order : numerics::get(f16, setting.name);
    if (setting.name != "seed")
      text += std::string(setting.name) + " = { value = \"" + value + "\", kind = \"GU\" }\n";
  }
  for (const Habit& habit : numerics_habits())
    text += std::string(habit.name) + " = { value = \"1\", kind = \"GU\" }\n";
  return text;
}

TEST(MachineNumerics, of_a_file_are_read_and_checked) {
  const Machine mine = parse_machine(file_with(whole_mode("tree")), "mine");
  ASSERT_EQ(1u, mine.numerics().size());
  EXPECT_EQ(Order::tree, mine.numerics()[0].arithmetic.order);
  expect_error(ErrorCode::bad_file, {"numerics.m.order", "'forest'"},
               [] { parse_machine(file_with(whole_mode("forest")), "mine"); });
}

}  // namespace
}  // namespace superstep::machine

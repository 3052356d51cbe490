// Operator x element type x target x (correct, gradient, the same bits again). The reference target is the
// definition, which tests/op checks by finite differences and by hand; other targets are compared with it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <iostream>
#include <map>
#include <set>

#include "superstep/base/file.h"
#include "superstep/base/text.h"
#include "superstep/op/core/definition.h"
#include "superstep/target/operator_table.h"
#include "tests/matrix/built.h"

namespace superstep::matrix {
namespace {

constexpr ElementType floating_types[] = {ElementType::f64, ElementType::f32, ElementType::f16,
                                          ElementType::bf16};
constexpr ElementType other_types[] = {ElementType::i64, ElementType::i32, ElementType::i8, ElementType::u8,
                                       ElementType::boolean};

double largest(const Tensor& tensor) {
  double value = 0;
  for (std::int64_t i = 0; i < tensor.element_count(); ++i)
    if (std::isfinite(tensor.at(i))) value = std::max(value, std::abs(tensor.at(i)));
  return value;
}

bool agree(double a, double b, double allowed) {
  if (!std::isfinite(b)) return std::isnan(b) ? std::isnan(a) : a == b;
  return std::abs(a - b) <= allowed;
}

::testing::AssertionResult close(const Tensor& actual, const Tensor& expected, double tolerance) {
  if (actual.type() != expected.type() || actual.shape() != expected.shape())
    return ::testing::AssertionFailure() << "another type or shape";
  const double allowed = tolerance * std::max(1e-3, largest(expected));
  for (std::int64_t i = 0; i < actual.element_count(); ++i)
    if (!agree(actual.at(i), expected.at(i), allowed))
      return ::testing::AssertionFailure()
             << "element " << i << " is " << actual.at(i) << ", expected " << expected.at(i);
  return ::testing::AssertionSuccess();
}

void expect_same(const TargetRun& actual, const TargetRun& expected, double tolerance) {
  ASSERT_EQ(actual.outputs.size(), expected.outputs.size());
  for (std::size_t i = 0; i < actual.outputs.size(); ++i)
    EXPECT_TRUE(close(actual.outputs[i], expected.outputs[i], tolerance)) << "output " << i;
}

bool same_bits(const TargetRun& a, const TargetRun& b) {
  for (std::size_t i = 0; i < a.outputs.size(); ++i)
    if (std::memcmp(a.outputs[i].bytes(), b.outputs[i].bytes(), a.outputs[i].byte_count()) != 0) return false;
  return true;
}

// What was not run, by reason: printed at the end of the run.
struct LeftOut {
  int cases = 0;
  std::set<std::string> operators;
};
std::map<std::string, LeftOut>& skipped() {
  static std::map<std::string, LeftOut> reasons;
  return reasons;
}
void skip(const Case& item, const std::string& what) {
  LeftOut& row = skipped()[what];
  ++row.cases;
  row.operators.insert(item.op);
}
std::map<std::string, int>& compared() {
  static std::map<std::string, int> counts;
  return counts;
}

// Compares the cpu target with the reference; a type that the operator does not take is counted and left out.
template <class Build>
void compare(const Case& item, ElementType element, const char* what, double factor, Build&& make) {
  SCOPED_TRACE(std::string(what) + " in " + name_of(element));
  const auto built = make(item, element);
  if (!built) {
    skip(item, std::string(what) + " in " + name_of(element) + ": the operator refuses the type");
    return;
  }
  ++compared()[std::string(what) + " " + name_of(element)];
  expect_same(run("cpu", *built), run("reference", *built), factor * tolerance(item.op, element));
}

class Conformance : public ::testing::TestWithParam<const Case*> {};

TEST_P(Conformance, IsCorrectInEveryElementType) {
  for (ElementType element : floating_types) {
    if (element != ElementType::f64 && !GetParam()->reduced) {
      skip(*GetParam(), std::string("value in ") + name_of(element) + ": the case is meant for f64");
      continue;
    }
    compare(*GetParam(), element, "value", 1, build);
  }
  for (ElementType element : other_types) compare(*GetParam(), element, "value", 1, build);
}

TEST_P(Conformance, HasTheGradientInEveryElementType) {
  if (GetParam()->smooth == op::test::Smooth::no) {
    skip(*GetParam(), "gradient: the case has none");
    return;
  }
  for (ElementType element : floating_types) {
    if (element != ElementType::f64 && !GetParam()->reduced) {
      skip(*GetParam(), std::string("gradient in ") + name_of(element) + ": the case is meant for f64");
      continue;
    }
    compare(*GetParam(), element, "gradient", 4, build_gradient);
  }
}

TEST_P(Conformance, GivesTheSameBitsAgain) {
  const auto built = build(*GetParam(), GetParam()->reduced ? ElementType::f32 : ElementType::f64);
  if (!built) return;
  for (int threads : {1, 2}) {
    const TargetRun first = run("cpu", *built, threads);
    for (int repeat = 0; repeat < 2; ++repeat)
      EXPECT_TRUE(same_bits(first, run("cpu", *built, threads))) << threads << " threads";
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, Conformance, ::testing::ValuesIn(op::test::all_parameters()),
                         [](const auto& instance) {
                           return op::test::name_of_test(*instance.param, instance.index);
                         });

// A target whose results are a little off must be noticed.
TEST(ConformanceCheck, NoticesAWrongElementAndAWrongType) {
  Tensor expected = op::test::random_tensor({3, 4}, 1).converted(ElementType::f32), off = expected.clone();
  EXPECT_TRUE(close(off, expected, tolerance(ElementType::f32)));
  off.set(5, off.at(5) + 1e-4 * largest(expected));
  EXPECT_FALSE(close(off, expected, tolerance(ElementType::f32)));
  EXPECT_FALSE(close(expected.converted(ElementType::f16), expected, 1));
  Tensor empty = expected.clone();
  empty.set(0, std::numeric_limits<double>::quiet_NaN());
  EXPECT_FALSE(close(empty, expected, 1e9));
}

class Report : public ::testing::Environment {
 public:
  void TearDown() override {
    TextTable table({"compared with the reference", "cases", "allowed error"});
    for (const auto& [what, count] : compared()) {
      const auto element = element_type_from_name(what.substr(what.find(' ') + 1)).value();
      const double factor = what.starts_with("gradient") ? 4 : 1;
      table.add_row({what, std::to_string(count), fmt::format("{:.0e}", factor * tolerance(element))});
    }
    if (!compared().empty()) std::cout << table.to_string();
    if (compared().size() < 2) return;  // a single case, run alone
    std::cout << "left out:\n";
    for (const auto& [reason, row] : skipped()) {
      std::cout << "  " << reason << " (" << row.cases << " cases):";
      for (const std::string& name : row.operators) std::cout << ' ' << name;
      std::cout << '\n';
    }
  }
};

}  // namespace
}  // namespace superstep::matrix

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (argc == 2 && std::string(argv[1]) == "--write") {
    superstep::write_file_atomically(SUPERSTEP_SOURCE "/docs/operators.md",
                                     superstep::target::operators_page());
    return 0;
  }
  ::testing::AddGlobalTestEnvironment(new superstep::matrix::Report);
  return RUN_ALL_TESTS();
}

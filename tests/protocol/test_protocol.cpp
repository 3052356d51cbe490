#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "protocol.h"
#include "tests/scratch.h"

namespace superstep::bench {
namespace {

using Lines = std::vector<std::string>;

Lines talk(Contender contender, const std::string& input) {
  std::istringstream in(input);
  std::ostringstream out;
  serve(contender, in, out);
  Lines lines;
  std::istringstream stream(out.str());
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(Protocol, SaysReadyAnswersEveryLineAndEnds) {
  int steps = 0;
  const Contender contender{{{"contender", "test"}}, [&] { ++steps; }, {}, {}};
  const Lines lines = talk(contender, "run 3\nrun 2 5\nwarm 0\nquit\nrun 1\n");
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[0], R"(ready {"contender":"test","protocol":1})");
  EXPECT_TRUE(lines[1].starts_with("times "));
  EXPECT_EQ(std::ranges::count(lines[1], ' '), 3);
  EXPECT_EQ(std::ranges::count(lines[2], ' '), 2);
  EXPECT_EQ(lines[3], "done 3");
  EXPECT_EQ(lines[4], "bye");
  EXPECT_EQ(steps, 3 + 10 + 3);
  EXPECT_EQ(talk(contender, "").back(), "bye");
}

TEST(Protocol, TimesAreSecondsAStep) {
  const Contender contender{{}, [] { std::this_thread::sleep_for(std::chrono::milliseconds(2)); }, {}, {}};
  std::istringstream words(talk(contender, "run 1 4\n")[1]);
  std::string kind;
  double seconds = 0;
  words >> kind >> seconds;
  EXPECT_GE(seconds, 0.002);
  EXPECT_LT(seconds, 0.5);  // four steps together would be read as one only by a wrong division
}

TEST(Protocol, RefusesNonsenseAndGoesOn) {
  const Contender contender{{}, [] { throw std::runtime_error("no\nmemory"); }, {}, {}};
  const Lines lines = talk(contender, "run\nrun 0\nrun x\nrun 2x\nwarm -1\nfly\n\nrun 1\nload a b\nquit\n");
  EXPECT_EQ(lines[1], "error not a command: 'run'");
  EXPECT_EQ(lines[2], "error '0' is not a number of steps");
  EXPECT_EQ(lines[3], "error 'x' is not a number of steps");
  EXPECT_EQ(lines[4], "error '2x' is not a number of steps");
  EXPECT_EQ(lines[5], "error '-1' is not a time in seconds");
  EXPECT_EQ(lines[6], "error not a command: 'fly'");
  EXPECT_EQ(lines[7], "error not a command: ''");
  EXPECT_EQ(lines[8], "error no memory");
  EXPECT_TRUE(lines[9].starts_with("error no array 'a'"));
  EXPECT_EQ(lines[10], "bye");
}

TEST(Protocol, LoadsInputsAndSavesOutputs) {
  const ScratchFolder folder;
  std::array<float, 2> x{}, y{};
  const Contender contender{{},
                            [&] {
                              y = {2 * x[0], 2 * x[1]};
                            },
                            {{"x", "f32:2", x.data(), sizeof x}},
                            {{"y", "f32:2", y.data(), sizeof y}}};
  const std::array<float, 2> values = {1.5f, -3};
  const std::string in = (folder / "x.bin").string(), out = (folder / "y.bin").string();
  std::ofstream(in, std::ios::binary).write(reinterpret_cast<const char*>(values.data()), sizeof values);
  const Lines lines = talk(contender, "inputs\noutputs\nload x " + in + "\nrun 1\nsave y " + out +
                                          "\nload y " + in + "\nload x " + out + "x\n");
  EXPECT_EQ(lines[1], "inputs x:f32:2");
  EXPECT_EQ(lines[2], "outputs y:f32:2");
  EXPECT_EQ(lines[3], "done 8");
  EXPECT_EQ(lines[5], "done 8");
  EXPECT_TRUE(lines[6].starts_with("error no array 'y'"));
  EXPECT_EQ(lines[7], "error cannot open " + out + "x");
  std::array<float, 2> result{};
  std::ifstream(out, std::ios::binary).read(reinterpret_cast<char*>(result.data()), sizeof result);
  EXPECT_EQ(result, (std::array<float, 2>{3, -6}));
}

TEST(Protocol, RefusesAFileOfTheWrongSize) {
  const ScratchFolder folder;
  float x = 0;
  const Contender contender{{}, [] {}, {{"x", "f32:scalar", &x, sizeof x}}, {}};
  const std::string path = (folder / "x.bin").string();
  std::ofstream(path) << "12345";
  EXPECT_EQ(talk(contender, "load x " + path + "\n")[1],
            "error " + path + " has 5 bytes; x:f32:scalar needs 4");
}

}  // namespace
}  // namespace superstep::bench

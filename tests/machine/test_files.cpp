// Machine files: what is built in, and what is refused.
#include <gtest/gtest.h>

#include <string>

#include "superstep/machine/machine.h"
#include "tests/contains.h"

namespace superstep::machine {
namespace {

constexpr const char* head =
    "id = \"x\"\nname = \"X\"\nstyle = \"bulk-synchronous\"\nbased_on = \"gc200\"\n[sources]\nA = \"a "
    "paper\"\n[constants]\n";

std::string refusal(const std::string& text) {
  try {
    parse_machine(text, "x.toml");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_file);
    return error.what();
  }
  return "accepted";
}

std::string refusal_of(const std::string& constant) { return refusal(head + constant); }

TEST(MachineFiles, AllOfThemAreBuiltIn) {
  std::vector<std::string> ids;
  for (const Machine& machine : machines()) ids.push_back(machine.id());
  EXPECT_EQ(
      ids, (std::vector<std::string>{"gc2",       "gc200",  "bow",    "sn10",   "sn40l", "cs2",   "cs3",
                                     "groqchip",  "gaudi1", "gaudi2", "gaudi3", "v100",  "t4",    "a100-40gb",
                                     "a100-80gb", "l40s",   "h100",   "h200",   "b200",  "mi300x"}));
}

TEST(MachineFiles, WhatIsNestedDeepIsRefused) {
  std::string key = "a", lists(100'000, '['), tables = "x = ";
  for (int i = 0; i < 100'000; ++i) key += ".a";
  for (int i = 0; i < 1000; ++i) tables += "{a = ";
  for (const std::string& text : {key + " = 1\n", "[" + key + "]\n", "[[" + key + "]]\n",
                                  "x = {" + key + " = 1}\n", "x = " + lists + "\n", tables + "1\n"})
    EXPECT_TRUE(contains(refusal("id = \"x\"\n" + text), "line 2: is nested deeper than 64"));
  EXPECT_FALSE(
      contains(refusal("x = \"" + key + lists + "\"\ny = '" + key + "'\n# " + key + "\n"), "nested"));
}

TEST(MachineFiles, EveryNumberHasASourceOrARange) {
  for (const Machine& machine : machines())
    for (const Constant& constant : machine.constants()) {
      EXPECT_LE(constant.low, constant.value) << machine.id() << " " << constant.name;
      EXPECT_GE(constant.high, constant.value) << machine.id() << " " << constant.name;
      if (constant.defaulted) continue;
      const bool guess = constant.kind == Kind::guess;
      EXPECT_TRUE(!guess || constant.value == 0 || constant.low < constant.high)
          << machine.id() << " " << constant.name;
      EXPECT_TRUE(guess || !constant.source.empty()) << machine.id() << " " << constant.name;
    }
}

TEST(MachineFiles, HaveAtMostEightOpenConstants) {
  for (const Machine& machine : machines()) {
    int open = 0;
    for (const Constant& constant : machine.constants()) open += constant.open ? 1 : 0;
    EXPECT_LE(open, 8) << machine.id();
  }
}

TEST(MachineFiles, ABasedFileDiffersOnlyWhereItSays) {
  const Machine gc200 = find_machine("gc200"), bow = find_machine("bow");
  EXPECT_EQ(bow.value("tiles"), gc200.value("tiles"));
  EXPECT_EQ(bow.value("clock"), 1.85e9);
  EXPECT_NE(bow.digest(), gc200.digest());
  EXPECT_EQ(gc200.with("clock", gc200.value("clock")).digest(), gc200.digest());
}

// The parser never sees a letter that is not ASCII: its behaviour would be undefined.
TEST(MachineFiles, ForeignLettersStandInStringsAndComments) {
  constexpr const char* words = "a letter that is not ASCII";
  EXPECT_TRUE(contains(refusal("\n\u00e9 = 1\n"), "line 2: a letter that is not ASCII"));
  EXPECT_TRUE(contains(refusal("\xef\xbb\xbd"), words));
  EXPECT_TRUE(contains(refusal("a = \"\\\"\" \u00e9"), words));
  EXPECT_TRUE(contains(refusal("a = '\u00e9'"), "use double ones"));
  EXPECT_TRUE(contains(refusal("a = \"\xc3\""), "is not UTF-8"));
  for (const char* fine : {"\xef\xbb\xbf# \u00e9\n", "a = \"\u00e9 \\\" \u00e9\"\n",
                           "a = \"\"\"\n\"\u00e9\"\n\"\"\"\n", "a = \"\"\n# \u00e9\n", "a = [[1[\"\u00e93\n"})
    EXPECT_FALSE(contains(refusal(fine), words)) << fine;
  std::string named(head);
  EXPECT_EQ(parse_machine(named.replace(named.find("\"X\""), 3, "\"\u00b5 \U0001f600\""), "x.toml").name(),
            "\u00b5 \U0001f600");
}

TEST(MachineFiles, MissingNumbersAreNamedDefaults) {
  const Constant& latency = find_machine("v100").constant("host_latency");
  EXPECT_TRUE(latency.defaulted);
  EXPECT_TRUE(contains(latency.note, "default"));
  EXPECT_FALSE(find_machine("a100-40gb").constant("host_latency").defaulted);
}

TEST(MachineFiles, AcceptWhatThePageDescribes) {
  const Machine machine = parse_machine(
      std::string(head) +
          "clock = { value = 2e9, unit = \"Hz\", kind = \"ME\", source = \"A\", range = [1.9e9, 2.1e9] }\n",
      "x.toml");
  EXPECT_EQ(machine.value("clock"), 2e9);
  EXPECT_EQ(machine.constant("clock").source, "a paper");
}

TEST(MachineFiles, RefuseByKey) {
  EXPECT_TRUE(contains(refusal("id = "), "line 1"));
  EXPECT_TRUE(contains(refusal("id = \"x\"\n"), "name: is missing"));
  EXPECT_TRUE(contains(refusal("id = \"x\"\nname = \"X\"\nstyle = \"bulk\"\n[constants]\n"),
                       "'bulk' is not a style"));
  EXPECT_TRUE(contains(refusal("color = 1\n"), "color: is not a key of machine files"));
  EXPECT_TRUE(contains(refusal("id = \"x\"\nname = \"X\"\nstyle = \"bulk-synchronous\"\n[constants]\n"),
                       "constants.tiles: is missing"));
  EXPECT_TRUE(contains(
      refusal("id = \"x\"\nname = \"X\"\nstyle = \"static-stream\"\nbased_on = \"gc200\"\n[constants]\n"),
      "differs from that of 'gc200'"));
  EXPECT_TRUE(contains(
      refusal("id = \"x\"\nname = \"X\"\nstyle = \"static-stream\"\nbased_on = \"gc300\"\n[constants]\n"),
      "there is no machine 'gc300'"));
  EXPECT_TRUE(contains(refusal_of("clok = { value = 1, unit = \"Hz\", kind = \"GU\", source = \"\" }\n"),
                       "did you mean 'clock'"));
  EXPECT_TRUE(contains(refusal_of("clock = 1e9\n"), "constants.clock: must be a table"));
  EXPECT_TRUE(contains(refusal_of("clock = { unit = \"Hz\", kind = \"GU\", source = \"\" }\n"),
                       "clock.value: is missing"));
  EXPECT_TRUE(contains(refusal_of("clock = { value = 1, unit = \"GHz\", kind = \"GU\", source = \"\" }\n"),
                       "is 'GHz', expected 'Hz'"));
  EXPECT_TRUE(contains(refusal_of("clock = { value = -1, unit = \"Hz\", kind = \"GU\", source = \"\" }\n"),
                       "not below zero"));
  EXPECT_TRUE(contains(refusal_of("clock = { value = nan, unit = \"Hz\", kind = \"GU\", source = \"\" }\n"),
                       "must be a number"));
  EXPECT_TRUE(contains(refusal_of("clock = { value = 1, unit = \"Hz\", kind = \"XX\", source = \"\" }\n"),
                       "'XX' is not a kind"));
  EXPECT_TRUE(contains(refusal_of("clock = { value = 1, unit = \"Hz\", kind = \"ME\", source = \"\" }\n"),
                       "only a guess"));
  EXPECT_TRUE(contains(refusal_of("clock = { value = 1, unit = \"Hz\", kind = \"ME\", source = \"B\" }\n"),
                       "'B' is not in [sources]"));
  EXPECT_TRUE(contains(
      refusal_of("clock = { value = 9, unit = \"Hz\", kind = \"ME\", source = \"A\", range = [1, 2] }\n"),
      "1 to 2 does not hold the value 9"));
  EXPECT_TRUE(contains(
      refusal_of("clock = { value = 9, unit = \"Hz\", kind = \"ME\", source = \"A\", range = [1] }\n"),
      "must be a list of two numbers"));
  EXPECT_TRUE(contains(refusal(std::string(2 << 20, '#')), "too large"));
}

TEST(MachineFiles, SayWhichPrecisionsThereAre) {
  const auto with = [](const std::string& line) {
    std::string text(head);
    return text.insert(text.find("style = "), line + "\n");
  };
  EXPECT_TRUE(contains(refusal(with("precisions = \"f16\"")), "must be a list of names"));
  EXPECT_TRUE(contains(refusal(with("precisions = []")), "must be a list of names"));
  EXPECT_TRUE(contains(refusal(with("precisions = [16]")), "must be a list of names"));
  EXPECT_TRUE(contains(refusal(with("precisions = [\"f17\"]")), "'f17' is not a precision"));
  EXPECT_FALSE(find_machine("gc200").computes_in("bf16"));
  EXPECT_FALSE(find_machine("bow").computes_in("tf32")) << "as the machine that it is based on";
  EXPECT_FALSE(find_machine("v100").computes_in("bf16"));
  EXPECT_TRUE(find_machine("v100").computes_in("f16"));
  EXPECT_TRUE(find_machine("a100-40gb").computes_in("bf16")) << "a file that does not say takes all";
}

TEST(MachineFiles, AnUnknownNameGetsTheNearest) {
  try {
    find_machine("a100-40");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_TRUE(contains(error.hint(), "a100-40gb"));
  }
  EXPECT_THROW(find_machine("./none.toml"), Error);
}

}  // namespace
}  // namespace superstep::machine

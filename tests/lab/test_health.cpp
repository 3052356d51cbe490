// What is said of machines that are made up, and that this one can be looked at.
#include <gtest/gtest.h>

#include <algorithm>

#include "superstep/lab/health/findings.h"
#include "tests/contains.h"

namespace superstep::lab {
namespace {

HostFacts healthy() {
  HostFacts facts;
  facts.processor = "a processor";
  facts.processors = 64, facts.usable = 64, facts.threads = 64;
  facts.instruction_set = facts.widest_instruction_set = "avx512";
  facts.memory_bytes = 256e9, facts.available_bytes = 200e9;
  facts.load = 0.3;
  facts.huge_pages = "always [madvise] never";
  facts.governor = "performance";
  facts.open_files = 65536, facts.most_open_files = 1'000'000;
  facts.stack_bytes = 8 << 20;
  facts.data = {"/home/a/.local/share/superstep", true, 100e9};
  facts.cache = {"/home/a/.cache/superstep", true, 100e9};
  facts.has_ranks = true;
  facts.launchers = {"mpirun"};
  facts.has_compiler = true;
  return facts;
}

Finding of(const HostFacts& facts, const std::string& subject) {
  const auto all = findings(facts);
  const auto found = std::ranges::find(all, subject, &Finding::subject);
  EXPECT_NE(found, all.end()) << subject;
  return found == all.end() ? Finding{} : *found;
}

TEST(Health, OfAHealthyMachineIsFine) {
  for (const Finding& finding : findings(healthy())) {
    EXPECT_EQ(finding.health, Health::fine) << finding.subject << ": " << finding.found;
    EXPECT_TRUE(finding.advice.empty()) << finding.subject;
    EXPECT_FALSE(finding.found.empty()) << finding.subject;
  }
}

struct Case {
  const char* subject;
  void (*ail)(HostFacts&);
  Health health;
  const char* says;
};

constexpr Case cases[] = {
    {"threads", [](HostFacts& f) { f.threads = 8; }, Health::note, "--threads 64"},
    {"instruction set", [](HostFacts& f) { f.instruction_set = "scalar"; }, Health::note, "avx512"},
    {"memory", [](HostFacts& f) { f.available_bytes = 1e9; }, Health::note, "refused"},
    {"other work", [](HostFacts& f) { f.load = 40; }, Health::note, "quiet"},
    {"huge pages", [](HostFacts& f) { f.huge_pages = "always madvise [never]"; }, Health::note, "madvise"},
    {"clock", [](HostFacts& f) { f.governor = "powersave"; }, Health::note, "performance"},
    {"instruction set", [](HostFacts& f) { f.given_away_set = "avx512"; }, Health::note,
     "SUPERSTEP_KERNELS=all"},
    {"open files", [](HostFacts& f) { f.open_files = 256; }, Health::note, "allowed here: 1,000,000"},
    {"stack", [](HostFacts& f) { f.stack_bytes = 1 << 20; }, Health::note, "ulimit -s"},
    {"records", [](HostFacts& f) { f.data.writable = false; }, Health::wrong, "SUPERSTEP_HOME"},
    {"records", [](HostFacts& f) { f.data.free_bytes = 1e6; }, Health::note, "room"},
    {"cache", [](HostFacts& f) { f.cache.writable = false; }, Health::wrong, "XDG_CACHE_HOME"},
    {"ranks", [](HostFacts& f) { f.has_ranks = false; }, Health::note, "headers"},
    {"ranks", [](HostFacts& f) { f.has_ranks = false, f.launched = 4; }, Health::wrong, "one process"},
    {"ranks", [](HostFacts& f) { f.launchers.clear(); }, Health::note, "module"},
    {"C compiler", [](HostFacts& f) { f.has_compiler = false; }, Health::note, "gcc"}};

TEST(Health, NamesEachAilmentAndItsCureAlone) {
  for (const Case& one : cases) {
    HostFacts facts = healthy();
    one.ail(facts);
    const Finding finding = of(facts, one.subject);
    EXPECT_EQ(finding.health, one.health) << one.subject << ": " << finding.found;
    EXPECT_TRUE(contains(finding.advice, one.says)) << one.subject << ": " << finding.advice;
    EXPECT_EQ(
        std::ranges::count_if(findings(facts), [](const Finding& f) { return f.health != Health::fine; }), 1)
        << one.subject;
  }
}

TEST(Health, AContainersLimitIsToldAndIsNoAilment) {
  HostFacts facts = healthy();
  facts.of_group = facts.usable = facts.threads = 4;
  const Finding finding = of(facts, "threads");
  EXPECT_EQ(finding.found, "4 of 64 processors; the group of this process allows 4");
  EXPECT_EQ(finding.health, Health::fine);
}

TEST(Health, WhatTheSystemDoesNotTellIsUnknown) {
  HostFacts facts = healthy();
  facts.processor.clear(), facts.load.reset(), facts.huge_pages.clear(), facts.governor.clear();
  facts.open_files.reset(), facts.stack_bytes.reset(), facts.available_bytes = 0, facts.data.free_bytes = 0;
  for (const Finding& finding : findings(facts)) EXPECT_EQ(finding.health, Health::fine) << finding.subject;
}

TEST(Health, OfThisMachineCanBeTaken) {
  const HostFacts facts = host_facts();
  EXPECT_GE(facts.processors, facts.usable);
  EXPECT_GE(facts.usable, facts.threads);
  EXPECT_GE(facts.threads, 1);
  EXPECT_GT(facts.memory_bytes, 1e8);
  EXPECT_FALSE(facts.data.path.empty());
  EXPECT_EQ(findings(facts).size(), findings(healthy()).size());
}

}  // namespace
}  // namespace superstep::lab

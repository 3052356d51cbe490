// Quantities for people, and the names they may have meant.
#include <gtest/gtest.h>

#include <cmath>

#include "superstep/base/text.h"

namespace superstep {
namespace {

TEST(Units, RatesAndCountsHaveNoSmallPrefixes) {
  EXPECT_EQ(format_si(0.876, "samples/s"), "0.876 samples/s");  // not 876 msamples/s
  EXPECT_EQ(format_si(0.0043211, "patches/s"), "0.00432 patches/s");
  EXPECT_EQ(format_si(0.5, "FLOP"), "0.5 FLOP");
  EXPECT_EQ(format_si(0.25, "B/s"), "0.25 B/s");
  EXPECT_EQ(format_si(0.876, ""), "0.876");
  EXPECT_EQ(format_si(46600, "samples/s"), "46.6 ksamples/s");
}

TEST(Units, AnglesAndPixelsHaveNone) {
  EXPECT_EQ(format_si(0.7734, "rad"), "0.773 rad");  // not 773 mrad
  EXPECT_EQ(format_si(1234.5, "px"), "1,234 px");
  EXPECT_EQ(format_si(2500, "K"), "2,500 K");
  EXPECT_EQ(format_si(12.3, "us"), "12.3 us");
}

TEST(Units, TimesEnergiesAndPowersHaveAll) {
  EXPECT_EQ(format_si(1.5e-5, "s"), "15.0 us");
  EXPECT_EQ(format_si(0.012, "J"), "12 mJ");
  EXPECT_EQ(format_si(250, "W"), "250 W");
}

TEST(Units, ThreeDigitsAfterRounding) {
  EXPECT_EQ(format_si(99.97, "W"), "100 W");
  EXPECT_EQ(format_si(9.996, "W"), "10.0 W");
  EXPECT_EQ(format_si(0.99996, "samples/s"), "1.00 samples/s");
  EXPECT_EQ(format_si(999.96, "samples/s"), "1.00 ksamples/s");
  EXPECT_EQ(format_si(0, "samples/s"), "0 samples/s");
  EXPECT_EQ(format_si(-0.5, "rad"), "-0.5 rad");
  EXPECT_EQ(format_si(std::nan(""), "rad"), "nan rad");
}

const std::vector<std::string> workloads{"braggnn", "unet-256", "unet-64", "bert-small", "lr", "train"};

TEST(Names, AreFoundInAnyCase) {
  EXPECT_EQ(nearest_name("BraggNN", workloads), "braggnn");
  EXPECT_EQ(unknown_name_hint("BRAGGNN", workloads), "did you mean 'braggnn'?");
  EXPECT_EQ(unknown_name_hint("Bert_Small", workloads), "did you mean 'bert-small'?");
}

TEST(Names, AreFoundWithLettersTransposed) {
  const std::vector<std::string> close{"trim", "train"};
  EXPECT_EQ(nearest_name("trian", close), "train");
}

TEST(Names, AreCompleted) {
  EXPECT_EQ(unknown_name_hint("unet", workloads), "did you mean 'unet-256' or 'unet-64'?");
}

TEST(Names, WithoutALetterInCommonAreNotMeant) {
  EXPECT_EQ(nearest_name("x", workloads), std::nullopt);
  EXPECT_EQ(unknown_name_hint("qqqqqqqq", workloads).substr(0, 10), "there are:");
}

TEST(TextTable, SetsNumbersToTheRightAndSentencesToTheLeft) {
  TextTable table({"time", "notes"});
  table.add_row({"1 us", "790 of 10000 samples are outliers"});
  table.add_row({"12.5 us", "9 of 20 samples are outliers"});
  EXPECT_EQ(table.to_string(),
            "   time  notes\n"
            "------------------------------------------\n"
            "   1 us  790 of 10000 samples are outliers\n"
            "12.5 us  9 of 20 samples are outliers\n");
}

}  // namespace
}  // namespace superstep

// From striped micrographs of battery cathodes to their effective conductivity with an uncertainty (after Le
// et al., 2024): sections and their micrographs, a network that takes the stripes away, labels by the
// solve on what it leaves, networks that replace the solve, and what the remaining stripes do to the answer.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "superstep/base/tensor.h"
#include "superstep/base/thread_pool.h"
#include "superstep/workflow/conductivity/answers.h"
#include "superstep/workflow/workflow.h"

namespace superstep::workflow {

Entry conductivity_workflow();

struct ConductivityStudy {
  std::filesystem::path folder;
  int threads = 1;
  int side = 64;
  std::int64_t samples = 0, test = 0,
               micrographs = 0;  // sections of the networks, of the end, of the denoiser
  double denoiser_epochs = 1, epochs = 1;
  int members = 3;     // networks of the ensemble
  std::string width;   // of the networks, as their workload's option has it
  std::string sees;    // image, or both
  double level = 0.9;  // of the intervals
  std::uint64_t seed = 1;

  std::filesystem::path file(const char* name) const { return folder / name; }
  std::filesystem::path denoiser() const { return folder / "denoiser"; }
  std::filesystem::path member(int k) const;
  std::vector<std::string> model_options() const;  // of the networks
};

// --- its steps; each writes the files that it names, whole or not at all

// sections.h5, test.h5 and micrographs.h5: images, micrographs, conductivities.
void make_sections(const ConductivityStudy& study, ThreadPool& pool);
// Trains the network of the run folder, or goes on where it was stopped.
void train_denoiser(const ConductivityStudy& study);
void train_member(const ConductivityStudy& study, int k);
// sections-denoised.h5 and test-denoised.h5: what the denoiser makes of the micrographs, solved again.
void denoise_sections(const ConductivityStudy& study, ThreadPool& pool);

// Sections as they are in those files.
struct Sections {
  Tensor images;       // u8 [n, side, side], 1 conducts
  Tensor micrographs;  // u8 [n, side, side]; empty where the file has none
  std::vector<double> sigma, ratio;

  std::int64_t count() const { return images.shape()[0]; }
  std::span<const std::uint8_t> image(std::int64_t k) const { return at(images, k); }
  std::span<const std::uint8_t> micrograph(std::int64_t k) const { return at(micrographs, k); }

 private:
  static std::span<const std::uint8_t> at(const Tensor& stack, std::int64_t k);
};
Sections read_sections(const std::filesystem::path& path);

// The ratio sigma_eff / sigma of one image, 0 without a conducting path.
double solved_ratio(std::span<const std::uint8_t> image, int side);

// --- what came of it

// One way from a micrograph to an image, on the test sections.
struct Way {
  std::string name;                  // "U-Net"
  std::vector<double> ratio;         // solved on its images
  std::vector<double> wrong;         // share of the pixels
  std::vector<std::uint8_t> images;  // [n, side, side]
};

struct Findings {
  Sections test;          // the true sections
  std::vector<Way> ways;  // striped, destriped, denoised: in this order
  std::vector<std::vector<double>> members_validation, members_test;  // ratios, [member][section]
  std::vector<double> truth_validation;
  Intervals intervals;  // of the test sections
  // Of the ratio, over a hundredfold conductor: relative, and its largest as it is.
  double scalar_change_mean = 0, scalar_change_relative = 0, scalar_change_largest = 0;
  double solve_seconds = 0, network_seconds = 0;  // a section, one thread; all members
};
Findings find_answers(const ConductivityStudy& study, ThreadPool& pool);

// What a way leaves of the stripes, and what that does to the ratio: means over the sections.
struct StripeErrors {
  double conducting = 0, insulating = 0;  // shares of the pixels that conduct, or insulate, and should not
  double bias = 0, error = 0;             // of the ratio: signed, and its size
  double paths_made = 0, paths_lost = 0;  // shares of the sections
  double rank_correlation = 0;            // Spearman's, of wrong pixels and size of the error
};
StripeErrors stripe_errors(const Sections& test, const Way& way);
// By quarters of the sections, from those with the fewest wrong pixels on.
std::string table_of_stripes(const Sections& test, const Way& way);

std::string tables_of(const ConductivityStudy& study, const Findings& findings);
std::vector<Metric> metrics_of(const ConductivityStudy& study, const Findings& findings);
void write_page(const ConductivityStudy& study, const Findings& findings, const std::string& tables);
void write_table(const ConductivityStudy& study, const Findings& findings);  // test.csv

}  // namespace superstep::workflow

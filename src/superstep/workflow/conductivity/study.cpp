#include "superstep/workflow/conductivity/study.h"

#include <fmt/format.h>

#include "superstep/base/error.h"
#include "superstep/run/train/run_directory.h"
#include "superstep/run/train/train.h"
#include "superstep/workflow/steps.h"
#include "superstep/workload/workload.h"

namespace superstep::workflow {
namespace {

namespace fs = std::filesystem;

const std::vector<OptionSpec>& options() {
  static const std::vector<OptionSpec> table{
      {"side", "64", "pixels per side, a power of two, 32 to 1024; published: 256"},
      {"samples", "5000", "sections; four fifths train the networks, the others set the intervals"},
      {"test", "500", "sections that all is judged by at the end"},
      {"micrographs", "400", "micrographs that the denoiser learns from"},
      {"denoiser-epochs", "10", "of the denoiser"},
      {"epochs", "20", "of each network"},
      {"members", "3", "networks of the ensemble, 2 to 20"},
      {"width", "auto", "channels of the networks' first block; auto: 16"},
      {"sees", "image",
       "what the networks see: image, so that the ratio cannot depend on the conductor; both"},
      {"level", "0.9", "share of the sections whose true conductivity is to lie within its interval"},
      {"seed", "1", "of data and networks"}};
  return table;
}

ConductivityStudy study_of(const Request& request, const Options& given) {
  ConductivityStudy study{.folder = request.out, .threads = request.threads};
  study.side = static_cast<int>(given.integer("side", 32, 1024));
  study.samples = given.integer("samples", 20, 10000000);
  study.test = given.integer("test", 2, 10000000);
  study.micrographs = given.integer("micrographs", 20, 10000000);
  study.denoiser_epochs = given.number("denoiser-epochs", 0.01, 1e6);
  study.epochs = given.number("epochs", 0.01, 1e6);
  study.members = static_cast<int>(given.integer("members", 2, 20));
  study.width = given.text("width");
  study.sees = given.text("sees");
  study.level = given.number("level", 0.01, 0.999);
  study.seed = static_cast<std::uint64_t>(given.integer("seed", 0, 1 << 30));
  // What the networks' own options refuse, before anything is made.
  workload::build_model(workload::find_workload("conductivity"), 1, study.model_options());
  return study;
}

// A run that was begun goes on with what it was begun with.
void train_in(const fs::path& folder, run::TrainSettings settings) {
  const bool begun = fs::exists(folder / "config.json");
  if (begun) {
    const int replicas = settings.replicas;
    settings = run::train_settings_from_json(run::RunDirectory::open(folder).config());
    settings.replicas = replicas;
  }
  run::train(settings, {.out = folder, .resume = begun});
}

Outcome run_study(const Request& request, const Options& given) {
  const ConductivityStudy study = study_of(request, given);
  ThreadPool pool(request.threads);
  Steps steps(study.folder, "conductivity", given, 3 + study.members);
  const auto file = [&](const char* name) { return study.file(name); };
  steps.step("sections and micrographs", {file("sections.h5"), file("test.h5"), file("micrographs.h5")},
             [&] { make_sections(study, pool); });
  steps.step("a denoiser", {study.denoiser() / "model.onnx"}, [&] { train_denoiser(study); });
  steps.step("denoised sections, solved", {file("sections-denoised.h5"), file("test-denoised.h5")},
             [&] { denoise_sections(study, pool); });
  for (int k = 1; k <= study.members; ++k)
    steps.step(fmt::format("network {} of {}", k, study.members), {study.member(k) / "model.onnx"},
               [&] { train_member(study, k); });
  const Findings findings = find_answers(study, pool);
  const std::string tables = tables_of(study, findings);
  write_table(study, findings);
  write_page(study, findings, tables);
  return {metrics_of(study, findings), tables, file("index.html")};
}

}  // namespace

fs::path ConductivityStudy::member(int k) const { return folder / fmt::format("network-{}", k); }

std::vector<std::string> ConductivityStudy::model_options() const {
  return {fmt::format("side={}", side), "width=" + width, "sees=" + sees};
}

// A U-Net of three levels that begins with eight channels: enough for two phases (docs/workloads.md).
void train_denoiser(const ConductivityStudy& study) {
  run::TrainSettings settings;
  settings.workload = "unet-64";
  settings.model_options = {fmt::format("size={}", study.side), "width=8", "levels=3"};
  settings.data = study.file("micrographs.h5");
  settings.epochs = study.denoiser_epochs;
  settings.replicas = study.threads;
  settings.seed = study.seed;
  train_in(study.denoiser(), settings);
}

void train_member(const ConductivityStudy& study, int k) {
  run::TrainSettings settings;
  settings.workload = "conductivity";
  settings.model_options = study.model_options();
  settings.data = study.file("sections-denoised.h5");
  settings.epochs = study.epochs;
  settings.replicas = study.threads;
  settings.seed = study.seed * 100 + static_cast<std::uint64_t>(k);  // at most 20 members
  train_in(study.member(k), settings);
}

Entry conductivity_workflow() {
  return {"conductivity",
          "from striped micrographs of cathodes to their conductivity with an uncertainty: a denoiser, the "
          "solve, an "
          "ensemble",
          options(), run_study};
}

}  // namespace superstep::workflow

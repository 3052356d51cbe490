// Small valid files of what the program keeps (checkpoints, run folders, records) and of data in folders, for
// the fuzzers to start from: make_run_seeds FOLDER. Files of a folder are parted as input_folder.h says.
#include <cstdio>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/file/npy.h"
#include "superstep/record/records.h"
#include "superstep/run/train/checkpoint.h"
#include "superstep/run/train/train.h"
#include "superstep/run/tune.h"

namespace {

using namespace superstep;
namespace fs = std::filesystem;

std::string joined(const std::vector<std::string>& pieces) {
  std::string all;
  for (const std::string& piece : pieces)
    all += (all.empty() && &piece == &pieces[0] ? "" : "\n%%\n") + piece;
  return all;
}

void write(const fs::path& path, const std::string& text) {
  make_folder(path.parent_path());
  write_file_atomically(path, text);
}

std::string checkpoint_bytes(const fs::path& scratch, std::int64_t step) {
  run::Checkpoint checkpoint{.workload = "mlp", .step = step, .seconds = 1.5};
  checkpoint.states = {{"w", Tensor::full(ElementType::f32, {2, 3}, 0.5)},
                       {"w.moment", Tensor::full(ElementType::bf16, {2, 3}, 0.25)},
                       {"steps", Tensor::full(ElementType::i64, {}, 7)}};
  checkpoint.signature = run::state_signature(checkpoint.states);
  checkpoint.notes = {{"best", "0.125"}};
  run::write_checkpoint_file(scratch / "checkpoint", checkpoint);
  return read_text_file(scratch / "checkpoint");
}

void make_run_folders(const fs::path& folder, const fs::path& scratch) {
  run::TrainSettings settings;
  settings.workload = "mlp";
  const std::string config = run::to_json(settings).dump();
  const std::string log = R"({"step": 1, "loss": 0.5}
{"step": 4, "epoch": 1, "seconds": 0.25, "mae": 0.125}
{"step": 5, "lo)";
  const std::string first = checkpoint_bytes(scratch, 1), second = checkpoint_bytes(scratch, 2);
  write(folder / "checkpoint/two", second);
  write(folder / "run_folder/whole", joined({config, R"([{"host": {}}])", log, first, second, first}));
  write(folder / "run_folder/begun", joined({config, "[]", log}));
  write(folder / "run_folder/damaged", joined({config, "", "", "", second.substr(0, 100), first}));
}

void make_records(const fs::path& folder, const fs::path& scratch) {
  record::Records(scratch / "records").add({.command = "bench", .workload = "mlp", .config = {{"batch", 4}}});
  write(folder / "records/one", read_text_file(scratch / "records"));
}

void make_tunings(const fs::path& folder, const fs::path& scratch) {
  run::TuningCache(scratch / "tuning").add("0123456789abcdef", {16, 2, 0.003});
  write(folder / "tuning/one", read_text_file(scratch / "tuning"));
}

std::string npy(const Tensor& tensor) {
  const std::vector<std::byte> bytes = data::format_npy(tensor);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void make_systems(const fs::path& folder) {
  const auto array = [](Shape shape) { return npy(Tensor::full(ElementType::f64, std::move(shape), 1)); };
  write(folder / "deepmd/molecule",
        joined({"0 1 1", "O\nH\n", "none", array({2, 9}), "", array({2}), array({2, 9})}));
  write(folder / "deepmd/crystal", joined({"0\n1\n", "Cu Ni", "", array({1, 6}), array({1, 9}), array({1}),
                                           "", array({1, 9}), array({1, 2}), array({2, 6}), array({2, 9})}));
}

void make_images(const fs::path& folder) {
  write(folder / "cifar/ten",
        std::string(1, 3) + std::string(3072, 'x') + std::string(1, 9) + std::string(3072, 'y'));
  write(folder / "cifar/hundred", std::string("\x0a\x63", 2) + std::string(3072, 'z'));
}

void make_seeds(const fs::path& folder) {
  const fs::path scratch = folder / "scratch";
  make_folder(scratch);
  make_run_folders(folder, scratch);
  make_records(folder, scratch);
  make_tunings(folder, scratch);
  make_systems(folder);
  make_images(folder);
  fs::remove_all(scratch);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    make_seeds(argc > 1 ? argv[1] : ".");
  } catch (const superstep::Error& error) {
    std::fprintf(stderr, "make_run_seeds: %s\n", error.what());
    return 1;
  }
  return 0;
}

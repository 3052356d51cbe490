#include "superstep/run/serve/published_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "superstep/base/options.h"
#include "superstep/base/printable.h"
#include "superstep/base/text.h"
#include "superstep/file/weights/foreign_model.h"
#include "superstep/file/weights/names.h"
#include "superstep/language/model_config.h"
#include "superstep/run/model.h"

namespace superstep::run {
namespace {

// Counts the heads where the arrangement of a rule asks for them.
std::int64_t heads_of(const data::NameRule& rule, const Options& options) {
  switch (rule.arrangement) {
    case data::Arrangement::query_pairs: return options.integer("heads", 1, 1 << 20);
    case data::Arrangement::key_pairs: return options.integer("key-heads", 1, 1 << 20);
    default: return 0;
  }
}

// What keeps a state from being taken from the file; empty: nothing.
std::string difference(const std::string& state, const Shape& shape, const data::FoundWeight& found) {
  if (!found.weight)
    return fmt::format("{} {} is missing{}", state, to_string(shape),
                       found.looked_for.empty() ? ": no name for it is known"
                                                : ": no " + printable(join(found.looked_for, " or ")));
  const Shape arranged = data::arranged_shape(*found.rule, found.weight->shape);
  if (arranged == shape) return {};
  return fmt::format("{} {} is {} {} in the file", state, to_string(shape), printable(found.weight->name),
                     to_string(found.weight->shape));
}

[[noreturn]] void refuse(const std::vector<std::string>& differences, std::size_t states,
                         const std::filesystem::path& path) {
  std::string list;
  for (const std::string& each : differences) list += "\n  " + each;
  throw Error(ErrorCode::bad_file,
              fmt::format("the file does not fit the model: {} of {} arrays differ{}\n", differences.size(),
                          states, list),
              path.string(), "build the model with the --set options of the file's sizes");
}

// Buffers that are made anew, counts of training, and what another head than the model's has.
constexpr const char* harmless_names[] = {"*rotary_emb.inv_freq", "h.#.attn.bias", "h.#.attn.masked_bias",
                                          "*num_batches_tracked", "embeddings.position_ids"};

// What stands among the arrays that were taken changes what the model computes, as does what has a place in a
// model of this kind: a bias, a layer more, a head of its own.
void refuse_left_out(const data::WeightFile& file, const std::set<const data::Weight*>& used,
                     std::span<const data::NameRule> rules, const std::filesystem::path& path) {
  constexpr std::size_t most_names = 8;
  const std::vector<const data::Weight*> unused = data::unused_weights(file, used, harmless_names),
                                         among = data::among_used(unused, used);
  std::vector<std::string> names;
  for (const data::Weight* weight : unused)
    if (std::ranges::find(among, weight) != among.end() || data::is_named_by(rules, weight->name))
      names.push_back(printable(weight->name));
  if (names.empty()) return;
  const std::size_t count = names.size();
  if (count > most_names) names.resize(most_names);
  throw Error(ErrorCode::unsupported,
              fmt::format("the model would leave out {} of the file's arrays: {}{}", count, join(names, ", "),
                          count > most_names ? ", ..." : ""),
              path.string(),
              "build the model with the --set options of the file's sizes, where it has a place for them");
}

// What an array's shape does not tell: the same arrays are another model with other heads, norms or
// positions.
void require_same_numbers(const data::WeightFile& file, const std::string& workload, const Options& options) {
  const bool has_config =
      file.format() == "GGUF" || std::filesystem::exists(file.path().parent_path() / "config.json");
  if (!has_config || (workload != "llama" && workload != "gpt2")) return;
  const language::ModelConfig config = language::model_config(file);
  std::vector<std::string> others;
  const auto compare = [&](const char* option, double said) {
    const double given = options.number(option, 0, 1e15);
    if (std::abs(given - said) > 1e-6 * said)
      others.push_back(fmt::format("{}={:g} (given: {:g})", option, said, given));
  };
  compare("heads", static_cast<double>(config.heads));
  if (workload == "llama") {
    compare("key-heads", static_cast<double>(config.key_heads));
    compare("epsilon", config.epsilon);
    compare("base", config.rotary_base);
    const std::string scaling = options.text("rope-scaling");
    if (language::rotary_scaling_from_text(scaling) != config.scaling)
      others.push_back(fmt::format("another rope-scaling (given: {})", scaling));
  }
  constexpr double epsilon_of_gpt2 = 1e-5;  // which the zoo's has no option for
  if (workload == "gpt2" && std::abs(config.epsilon - epsilon_of_gpt2) > 1e-6 * epsilon_of_gpt2)
    throw Error(ErrorCode::unsupported,
                fmt::format("norms with an epsilon of {:g} are not built", config.epsilon),
                file.path().string(), "superstep complete takes them");
  if (others.empty()) return;
  throw Error(ErrorCode::invalid_argument, fmt::format("the file is of a model with {}", join(others, ", ")),
              file.path().string(), "give these as --set options");
}

}  // namespace

bool is_published_weights(const std::filesystem::path& path) {
  return std::filesystem::is_regular_file(path) || data::holds_weights(path);
}

PublishedWeights load_published_weights(const TrainSettings& settings, const std::filesystem::path& path) {
  if (std::filesystem::is_regular_file(path)) data::refuse_foreign_model(path);
  TrainSettings in_f32 = settings;  // reduced precisions are made of the same states
  in_f32.precision = "f32";
  const Model model(in_f32);
  const workload::Workload& workload = model.workload();
  if (!workload.weight_names)
    throw Error(
        ErrorCode::unsupported,
        fmt::format("no names are known that other programs give the weights of '{}'", settings.workload),
        path.string(), "--weights takes the folder of a training run");
  const data::WeightFile file = data::WeightFile::open(path);
  const data::NamedWeights named(file);
  const Options options(workload.options, model.settings().model_options);
  const graph::Graph graph = model.inference()(1);
  PublishedWeights weights;
  std::vector<std::string> differences;
  std::set<const data::Weight*> used;
  for (const graph::ValueId id : graph.states()) {
    const std::string& state = graph.value(id).name;
    const data::FoundWeight found = data::find_weight(named, workload.weight_names(), state);
    if (std::string why = difference(state, graph.type(id).shape, found); !why.empty()) {
      differences.push_back(std::move(why));
      continue;
    }
    used.insert(found.weight);
    weights.states.emplace(state, data::arranged(*found.rule, *found.weight, heads_of(*found.rule, options)));
  }
  if (!differences.empty()) refuse(differences, graph.states().size(), path);
  require_same_numbers(file, settings.workload, options);
  refuse_left_out(file, used, workload.weight_names(), path);
  for (const data::Weight& weight : file.weights())
    if (!used.contains(&weight)) weights.unused.push_back(weight.name);
  return weights;
}

}  // namespace superstep::run

#include "superstep/run/sample/chain_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/base/system/interrupt.h"
#include "superstep/file/npz.h"

namespace superstep::run {
namespace {

using data::NamedTensors;
using sampling::Iteration;

Tensor vector_of(const std::vector<double>& values) {
  return Tensor::from<double>({static_cast<std::int64_t>(values.size())}, values);
}

// The numbers of an iteration, by name.
struct Column {
  const char* name;
  double (*get)(const Iteration&);
  void (*set)(Iteration&, double);
};
const std::vector<Column>& columns() {
  static const std::vector<Column> all = {
      {"log_density", [](const Iteration& i) { return i.log_density; },
       [](Iteration& i, double v) { i.log_density = v; }},
      {"energy", [](const Iteration& i) { return i.energy; }, [](Iteration& i, double v) { i.energy = v; }},
      {"acceptance", [](const Iteration& i) { return i.acceptance; },
       [](Iteration& i, double v) { i.acceptance = v; }},
      {"step", [](const Iteration& i) { return i.step; }, [](Iteration& i, double v) { i.step = v; }},
      {"evaluations", [](const Iteration& i) { return static_cast<double>(i.evaluations); },
       [](Iteration& i, double v) { i.evaluations = static_cast<int>(v); }},
      {"depth", [](const Iteration& i) { return static_cast<double>(i.depth); },
       [](Iteration& i, double v) { i.depth = static_cast<int>(v); }},
      {"divergent", [](const Iteration& i) { return i.divergent ? 1.0 : 0.0; },
       [](Iteration& i, double v) { i.divergent = v != 0; }},
      {"warm_up", [](const Iteration& i) { return i.warm_up ? 1.0 : 0.0; },
       [](Iteration& i, double v) { i.warm_up = v != 0; }},
  };
  return all;
}

Shape with_draws(std::int64_t draws, const Shape& shape) {
  std::vector<std::int64_t> extents{draws};
  extents.insert(extents.end(), shape.begin(), shape.end());
  return Shape(extents);
}

void put_positions(NamedTensors& arrays, const Posterior& posterior, const ChainRecord& record) {
  const std::int64_t draws = record.draws();
  const std::size_t size = posterior.size();
  for (const SampledParameter& parameter : posterior.parameters()) {
    Tensor tensor(ElementType::f32, with_draws(draws, parameter.type.shape));
    float* to = tensor.as<float>().data();
    for (std::size_t d = 0; d < static_cast<std::size_t>(draws); ++d, to += parameter.count)
      std::copy_n(record.positions.data() + d * size + parameter.offset, parameter.count, to);
    arrays.emplace(parameter.name, std::move(tensor));
  }
  std::size_t place = posterior.parameters().back().offset + posterior.parameters().back().count;
  for (const std::string& name : posterior.names_of_scales()) {
    std::vector<double> scales, logs;
    for (std::size_t d = 0; d < static_cast<std::size_t>(draws); ++d) {
      logs.push_back(static_cast<double>(record.positions[d * size + place]));
      scales.push_back(std::exp(logs.back()));
    }
    arrays.emplace(name, vector_of(scales));
    arrays.emplace("log/" + name, vector_of(logs));
    ++place;
  }
}

void put_state(NamedTensors& arrays, const ChainRecord& record) {
  const sampling::ChainState& state = record.state;
  const sampling::DualAveraging::State& averaging = state.averaging;
  arrays.emplace("state/position", vector_of(state.position));
  arrays.emplace("state/inverse_mass", vector_of(state.inverse_mass));
  arrays.emplace("state/gathered_mean", vector_of(state.gathered_mean));
  arrays.emplace("state/gathered_squares", vector_of(state.gathered_squares));
  arrays.emplace("state/numbers",
                 vector_of({static_cast<double>(state.iteration), state.step, state.step_is_open ? 1.0 : 0.0,
                            static_cast<double>(state.gathered), averaging.centre, averaging.count,
                            averaging.mean_error, averaging.log_step, averaging.log_mean_step}));
  arrays.emplace("state/seconds", vector_of({record.warm_up_seconds, record.draw_seconds}));
}

// The arrays of a file, asked for by name and length.
class Arrays {
 public:
  Arrays(NamedTensors arrays, std::string path) : arrays_(std::move(arrays)), path_(std::move(path)) {}

  bool has(const std::string& name) const { return arrays_.contains(name); }
  const Tensor& at(const std::string& name, std::int64_t count) const {
    const auto found = arrays_.find(name);
    if (found == arrays_.end() || (count >= 0 && found->second.element_count() != count))
      throw Error(ErrorCode::bad_file, fmt::format("has no array '{}' of this model's size", name), path_,
                  "it is damaged, or of another model: choose another --out");
    return found->second;
  }
  std::vector<double> doubles(const std::string& name, std::int64_t count) const {
    const Tensor tensor = at(name, count).converted(ElementType::f64);
    return {tensor.as<double>().begin(), tensor.as<double>().end()};
  }

 private:
  NamedTensors arrays_;
  std::string path_;
};

void take_state(const Arrays& arrays, ChainRecord& record, std::int64_t size) {
  sampling::ChainState& state = record.state;
  state.position = arrays.doubles("state/position", size);
  state.inverse_mass = arrays.doubles("state/inverse_mass", size);
  state.gathered_mean = arrays.doubles("state/gathered_mean", size);
  state.gathered_squares = arrays.doubles("state/gathered_squares", size);
  const std::vector<double> n = arrays.doubles("state/numbers", 9);
  state.iteration = static_cast<std::int64_t>(n[0]);
  state.step = n[1], state.step_is_open = n[2] != 0, state.gathered = static_cast<std::int64_t>(n[3]);
  state.averaging = {n[4], n[5], n[6], n[7], n[8]};
  const std::vector<double> seconds = arrays.doubles("state/seconds", 2);
  record.warm_up_seconds = seconds[0], record.draw_seconds = seconds[1];
}

void take_iterations(const Arrays& arrays, ChainRecord& record) {
  record.iterations.resize(static_cast<std::size_t>(record.state.iteration));
  for (const Column& column : columns()) {
    const auto values = arrays.doubles(std::string("iteration/") + column.name, record.state.iteration);
    for (std::size_t i = 0; i < values.size(); ++i) column.set(record.iterations[i], values[i]);
  }
}

void take_positions(const Arrays& arrays, const Posterior& posterior, ChainRecord& record,
                    std::int64_t draws) {
  const std::size_t size = posterior.size(), count = static_cast<std::size_t>(draws);
  record.positions.resize(count * size);
  const auto take = [&](const std::string& name, std::size_t offset, std::size_t width) {
    const Tensor tensor =
        arrays.at(name, draws * static_cast<std::int64_t>(width)).converted(ElementType::f32);
    for (std::size_t d = 0; d < count; ++d)
      std::copy_n(tensor.as<float>().data() + d * width, width, record.positions.data() + d * size + offset);
  };
  for (const SampledParameter& parameter : posterior.parameters())
    take(parameter.name, parameter.offset, parameter.count);
  std::size_t place = posterior.parameters().back().offset + posterior.parameters().back().count;
  for (const std::string& name : posterior.names_of_scales()) take("log/" + name, place++, 1);
}

}  // namespace

std::int64_t ChainRecord::warm_ups() const {
  return std::ranges::count_if(iterations, [](const Iteration& i) { return i.warm_up; });
}
std::int64_t ChainRecord::draws() const { return static_cast<std::int64_t>(iterations.size()) - warm_ups(); }

void add_draw(ChainRecord& record, std::span<const double> position, std::span<const Tensor> predictions,
              std::span<const double> log_likelihoods) {
  for (const double value : position) record.positions.push_back(static_cast<float>(value));
  record.log_likelihoods.insert(record.log_likelihoods.end(), log_likelihoods.begin(), log_likelihoods.end());
  if (predictions.empty()) return;
  for (std::int64_t i = 0; i < predictions[0].element_count(); ++i)
    record.predictions.push_back(static_cast<float>(predictions[0].at(i)));
}

std::filesystem::path chain_file(const std::filesystem::path& folder, int chain) {
  return folder / fmt::format("chain-{}.npz", chain + 1);
}

void write_chain(const std::filesystem::path& path, const Posterior& posterior, const PosteriorData& data,
                 const ChainRecord& record) {
  const HoldEnd until_it_is_written;
  NamedTensors arrays;
  put_positions(arrays, posterior, record);
  put_state(arrays, record);
  for (const Column& column : columns()) {
    std::vector<double> values;
    for (const Iteration& iteration : record.iterations) values.push_back(column.get(iteration));
    arrays.emplace(std::string("iteration/") + column.name, vector_of(values));
  }
  const auto samples = static_cast<std::int64_t>(data.held_out_indices.size());
  if (const std::int64_t draws = record.draws(); samples > 0 && draws > 0) {
    const auto numbers = static_cast<std::int64_t>(record.predictions.size()) / draws / samples;
    arrays.emplace("predictions", Tensor::from<float>({draws, samples, numbers}, record.predictions));
    arrays.emplace("log_likelihood", Tensor::from<double>({draws, samples}, record.log_likelihoods));
  }
  data::write_npz(path, arrays);
}

std::optional<ChainRecord> read_chain(const std::filesystem::path& path, const Posterior& posterior,
                                      const PosteriorData& data) {
  if (!std::filesystem::exists(path)) return std::nullopt;
  const Arrays arrays(data::read_npz(path), path.string());
  ChainRecord record;
  take_state(arrays, record, static_cast<std::int64_t>(posterior.size()));
  take_iterations(arrays, record);
  const std::int64_t draws = record.draws();
  take_positions(arrays, posterior, record, draws);
  const auto samples = static_cast<std::int64_t>(data.held_out_indices.size());
  if (samples > 0 && draws > 0) {
    const Tensor predictions = arrays.at("predictions", -1).converted(ElementType::f32);
    record.predictions.assign(predictions.as<float>().begin(), predictions.as<float>().end());
    record.log_likelihoods = arrays.doubles("log_likelihood", draws * samples);
  }
  return record;
}

void keep_first(ChainRecord& record, std::int64_t draws, std::size_t size) {
  const std::int64_t has = record.draws();
  if (draws >= has || has == 0) return;
  const auto kept = static_cast<std::size_t>(draws), all = static_cast<std::size_t>(has);
  record.iterations.resize(record.iterations.size() - (all - kept));
  record.positions.resize(kept * size);
  record.predictions.resize(record.predictions.size() / all * kept);
  record.log_likelihoods.resize(record.log_likelihoods.size() / all * kept);
}

}  // namespace superstep::run

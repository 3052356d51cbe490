#include "superstep/target/numerics/numerics_target.h"

#include <fmt/format.h>

#include <map>
#include <mutex>

#include "superstep/base/error.h"

namespace superstep::target::numerics {
namespace {

class NumericsTarget : public Target {
 public:
  explicit NumericsTarget(std::string name)
      : name_(std::move(name)), spec_(parse_spec(std::string_view(name_).substr(target_prefix.size()))) {
    summary_ = fmt::format("as {} computes: {}", spec_.base.name,
                           superstep::numerics::to_string(spec_.base.arithmetic));
  }
  std::string_view name() const override { return name_; }
  std::string_view summary() const override { return summary_; }
  std::unique_ptr<Executable> compile(const GraphAtBatch& model,
                                      const CompileOptions& options) const override {
    refuse_parts(options, name());
    refuse_chips(options, name());
    if (options.micro_batch > 0 && options.micro_batch != options.batch)
      throw Error(ErrorCode::unsupported, "an emulated arithmetic takes a batch as it is", name_,
                  "leave --micro-batch out");
    return emulate(model, options, spec_);
  }

 private:
  std::string name_, summary_;
  Spec spec_;
};

}  // namespace

std::unique_ptr<Emulation> emulate(const GraphAtBatch& model, const CompileOptions& options,
                                   const Spec& spec) {
  auto executable = std::make_unique<Emulation>(
      model, options,
      EmulationOptions{.arithmetic_of = [spec](const graph::Node& node) { return spec.of(node); },
                       .base = spec.base.arithmetic,
                       .name = spec.base.name});
  check_patterns(spec, executable->graph());
  return executable;
}

const Target* find_numerics_target(std::string_view name) {
  if (!name.starts_with(target_prefix)) return nullptr;
  static std::mutex mutex;
  static auto& targets = *new std::map<std::string, NumericsTarget, std::less<>>;
  const std::lock_guard lock(mutex);
  if (const auto found = targets.find(name); found != targets.end()) return &found->second;
  return &targets.try_emplace(std::string(name), std::string(name)).first->second;
}

std::string numerics_target_name(std::string_view arithmetic, const std::vector<std::string>& nodes) {
  std::string name = std::string(target_prefix) + std::string(arithmetic);
  for (const std::string& node : nodes) name += ";" + node;
  parse_spec(std::string_view(name).substr(target_prefix.size()));
  return name;
}

}  // namespace superstep::target::numerics

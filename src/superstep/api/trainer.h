// What is behind a Trainer.
#pragma once

#include <string>

#include "superstep/api/compiled.h"

namespace superstep {

class Trainer::Implementation : public api::Compiled {
 public:
  // `name`: of the model, for checkpoints.
  Implementation(std::unique_ptr<target::Executable> executable, std::string name, double learning_rate);

  const std::vector<Port>& values() const { return values_; }  // the inputs without the learning rate
  double step(std::span<const Tensor> values, double learning_rate);
  std::int64_t steps() const;
  void save(const std::filesystem::path& file) const;
  void restore(const std::filesystem::path& file);

 private:
  std::string name_;
  double learning_rate_;
  std::vector<Port> values_;
};

}  // namespace superstep

#include "superstep/edge/service/job.h"

namespace superstep::edge {
namespace {

std::vector<Tensor> tensors_of(const std::vector<ServedPort>& ports, bool batched, std::int64_t rows) {
  std::vector<Tensor> tensors;
  for (const ServedPort& port : ports) {
    std::vector<std::int64_t> extents = port.shape.extents();
    if (batched) extents.insert(extents.begin(), rows);
    tensors.emplace_back(port.element, Shape(std::move(extents)));
  }
  return tensors;
}

}  // namespace

JobPointer make_job(std::shared_ptr<Version> version, std::int64_t rows) {
  auto job = std::make_shared<Job>();
  const ServedPorts& ports = version->ports();
  job->rows = rows;
  job->inputs = tensors_of(ports.inputs, ports.batched, rows);
  job->outputs = make_outputs(ports, rows);
  job->version = std::move(version);
  return job;
}

std::vector<Tensor> make_outputs(const ServedPorts& ports, std::int64_t rows) {
  return tensors_of(ports.outputs, ports.batched, rows);
}

}  // namespace superstep::edge

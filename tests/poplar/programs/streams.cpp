// Streams with and without an end, callbacks, loops, branches, remote buffers, several programs of an engine.
#include <algorithm>
#include <iostream>
#include <memory>
#include <poplar/DeviceManager.hpp>
#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>

using namespace poplar;
using namespace poplar::program;

class Squares : public StreamCallback {
 public:
  Squares() : next_(0) {}
  Result prefetch(void*) override { return Result::NotAvailable; }
  void fetch(void* buffer) override {
    int* numbers = static_cast<int*>(buffer);
    for (int i = 0; i < 3; ++i, ++next_) numbers[i] = next_ * next_;
  }
  void complete() override { std::cout << "used\n"; }

 private:
  int next_;
};

int main() {
  DeviceManager manager = DeviceManager::createDeviceManager();
  auto devices = manager.getDevices(TargetType::IPU, 1);
  auto found = std::find_if(devices.begin(), devices.end(), [](Device& d) { return d.attach(); });
  if (found == devices.end()) return 1;
  Device device = std::move(*found);

  Graph graph(device);
  Tensor x = graph.addVariable(INT, {3}, "x");
  Tensor going = graph.addVariable(BOOL, {}, "going");
  graph.setTileMapping(x, 0);
  graph.setTileMapping(going, 1);
  DataStream in = graph.addHostToDeviceFIFO("in", INT, 3);
  DataStream flags = graph.addHostToDeviceFIFO("flags", BOOL, 1);
  DataStream out = graph.addDeviceToHostFIFO("out", INT, x.numElements());
  RemoteBuffer far = graph.addRemoteBuffer("far", INT, 3, 2);
  Tensor rows = graph.addConstant<unsigned>(UNSIGNED_INT, {1}, {1});
  graph.setTileMapping(rows, 0);

  Sequence step({Copy(in, x), Copy(x, out)});
  std::vector<Program> programs;
  programs.push_back(Repeat(2, step));
  programs.push_back(RepeatWhileTrue(Copy(flags, going), going, step));
  programs.push_back(Sequence({Copy(flags, going), If(going, PrintTensor("yes", x), PrintTensor("no", x))}));
  programs.push_back(Sequence({Copy(x, far, rows), Copy(in, x), Copy(far, x, rows), Copy(x, out)}));
  Engine engine(graph, programs);
  engine.load(device);

  std::vector<int> results(3), all(6);
  auto show = [](const std::vector<int>& list) {
    for (int value : list) std::cout << value << " ";
    std::cout << "\n";
  };
  engine.connectStreamToCallback("in", std::unique_ptr<StreamCallback>(new Squares));
  engine.connectStream("out", all.data(), all.data() + all.size());
  engine.run(0);
  show(all);
  engine.connectStream("out", results.data());  // without an end: every transfer is here
  std::vector<char> going_on = {1, 1, 0};
  engine.connectStream("flags", going_on.data(), going_on.data() + 3);
  engine.run(1);
  show(results);
  char no = 0, yes = 1;
  engine.connectStream("flags", &no);
  engine.run(2);
  engine.connectStream("flags", &yes);
  engine.run(2);
  engine.run(3);
  show(results);
  int row[3] = {0, 0, 0};
  engine.copyFromRemoteBuffer("far", row, 1);
  std::cout << row[0] << " " << row[1] << " " << row[2] << "\n";
  return 0;
}
